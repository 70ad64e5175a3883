/**
 * Pages of the admin that keep up without a reload: a poll is held until something has changed, then the page is
 * fetched as it is now and takes the place of what is shown.
 *
 * The element #asyncpoll-live says how: `data-url` is what is polled, `data-after` the version of a task that is shown,
 * `data-said` what is read out when it changes, and `data-over` that nothing will change any more. Elsewhere the last
 * answer says what the next poll comes `after`.
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
  let voice; // outside of what is replaced: a live region is read out when its text changes, not when it is new

  async function poll() {
    const { url, after = latest } = mark().dataset;
    const answer = await (await get(`${url}?after=${after}`)).json();
    latest = answer.after ?? "";
    return answer;
  }

  /** Where an element of the content will be again once that is replaced. */
  function place(element) {
    if (!element?.closest(CONTENT)) return "";
    if (element.id) return `#${CSS.escape(element.id)}`;
    const href = element.getAttribute("href");
    const which = href === null ? "" : `[href="${CSS.escape(href)}"]`;
    return `#${CSS.escape(element.closest("[id]").id)} ${element.localName}${which}`;
  }

  /** Text that somebody is about to copy is not taken away. */
  async function unselected() {
    const isSelected = () => document.getSelection().toString() !== "";
    if (!isSelected()) return;
    say("Not kept up to date while text is selected.");
    while (isSelected()) await new Promise((done) => document.addEventListener("selectionchange", done, { once: true }));
  }

  /** What somebody has opened stays open, and what has the focus keeps it. */
  async function refresh() {
    await unselected();
    const html = await (await get(location.href)).text();
    const fresh = new DOMParser().parseFromString(html, "text/html").querySelector(CONTENT);
    if (fresh === null) throw new Ended(403);
    const focused = place(document.activeElement);
    const before = mark().dataset.said;
    for (const open of document.querySelectorAll(`${CONTENT} details[open][id]`)) {
      fresh.querySelector(`#${CSS.escape(open.id)}`)?.setAttribute("open", "");
    }
    document.querySelector(CONTENT).replaceWith(document.adoptNode(fresh));
    if (focused) document.querySelector(focused)?.focus({ preventScroll: true });
    const { said } = mark()?.dataset ?? {};
    if (said !== before) voice.textContent = said;
    document.dispatchEvent(new CustomEvent("asyncpoll:refreshed"));
  }

  async function follow() {
    for (let failures = 0; mark() && mark().dataset.over === undefined; ) {
      await seen();
      const began = performance.now();
      try {
        const { outcome } = await poll();
        if (outcome === "GONE") return say("This task was deleted.");
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
    mark().textContent = voice.textContent = sentence;
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (!mark()) return;
    voice = document.createElement("p");
    voice.className = "asyncpoll-voice";
    voice.setAttribute("role", "status");
    document.body.append(voice);
    follow();
  });
})();
