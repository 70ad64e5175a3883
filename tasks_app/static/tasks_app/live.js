/**
 * Pages of the admin that keep up without a reload: a poll is held until something has changed, then the page is
 * fetched as it is now and takes the place of what is shown.
 *
 * The element #asyncpoll-live says how: `data-url` is what is polled, `data-after` the version of a task that is shown,
 * and `data-over` that nothing will change any more. Elsewhere the last answer says what the next poll comes `after`.
 */
"use strict";
(() => {
  const GAP_MS = 1_000; // between two fetches of a page, however much changes
  const READ_MARGIN_MS = 45_000; // longer than any hold that this page is given
  const LONGEST_PAUSE_MS = 30_000;
  const CONTENT = "#content"; // with the buttons, which Django 6.1 has beside #content-main

  const mark = () => document.getElementById("asyncpoll-live");
  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
  const backoff = (failures) => Math.min(LONGEST_PAUSE_MS, 500 * 2 ** failures) * (0.5 + Math.random() / 2);

  /** A page that is not seen holds nothing: all tabs of a browser share six connections to a host. */
  const seen = () =>
    document.hidden ? new Promise((done) => document.addEventListener("visibilitychange", done, { once: true })) : null;

  async function get(url) {
    const response = await fetch(url, { signal: AbortSignal.timeout(READ_MARGIN_MS), redirect: "error" });
    if (response.status === 403 || response.status === 404 || response.status === 410) throw new Ended(response.status);
    if (!response.ok) throw new Error(String(response.status));
    return response;
  }

  class Ended extends Error {}

  let latest = "";

  async function poll() {
    const { url, after = latest } = mark().dataset;
    const answer = await (await get(`${url}?after=${after}`)).json();
    latest = answer.after ?? "";
    return answer;
  }

  /** What somebody has opened stays open, and what has the focus keeps it. */
  async function refresh() {
    const html = await (await get(location.href)).text();
    const fresh = new DOMParser().parseFromString(html, "text/html").querySelector(CONTENT);
    if (fresh === null) throw new Ended(403);
    const focused = document.activeElement?.id;
    for (const open of document.querySelectorAll(`${CONTENT} details[open][id]`)) {
      fresh.querySelector(`#${CSS.escape(open.id)}`)?.setAttribute("open", "");
    }
    document.querySelector(CONTENT).replaceWith(document.adoptNode(fresh));
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    document.dispatchEvent(new CustomEvent("asyncpoll:refreshed"));
  }

  async function follow() {
    for (let failures = 0; mark() && mark().dataset.over === undefined; ) {
      await seen();
      const began = performance.now();
      try {
        const { outcome } = await poll();
        if (outcome !== "DRAINING") await refresh();
        const gap = outcome === "SHED" ? LONGEST_PAUSE_MS / 6 : GAP_MS - (performance.now() - began);
        failures = 0;
        await sleep(Math.max(0, gap));
      } catch (error) {
        if (error instanceof Ended) return say("This page no longer keeps up. Load it again.");
        failures += 1;
        if (failures > 2) say("The server can't be reached; trying again.");
        await sleep(backoff(failures));
      }
    }
  }

  function say(sentence) {
    const place = mark();
    if (place) place.textContent = sentence;
  }

  document.addEventListener("DOMContentLoaded", follow);
})();
