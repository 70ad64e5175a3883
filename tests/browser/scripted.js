/** Plays a server inside the page, by the page's own clock: what `fetch` gives, and what it was asked. */
import { Asyncpoll } from "/asyncpoll.js";
export * from "/asyncpoll.js";

Math.random = () => 0.5; // that it matters is shown where chance is given
const began = performance.now();
const HOLD = { hold_granted_ms: 24_000, client_read_timeout_ms: 34_000, hold_duration_ms: 1 };

/** Every request so far; `at` is in milliseconds since the script began. */
export const asked = [];

/** A client whose requests get `answers` one after the other, and the last one for ever. Each is a function. */
export function play(answers, options = {}) {
  globalThis.fetch = (url, init) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)];
    const request = read(new URL(url), init);
    asked.push(request);
    return respond(answer(request), init.signal);
  };
  return new Asyncpoll("/api/v1/", options);
}

function read({ pathname, searchParams }, init) {
  const query = Object.fromEntries(searchParams);
  const hold = "max_hold_seconds" in query ? Number(query.max_hold_seconds) : null;
  const { method, headers, body, credentials, redirect } = init;
  const [tasks, tickets] = ["task", "ticket"].map((name) => searchParams.getAll(name));
  return { at: now(), method, path: pathname, headers, body, credentials, redirect, query, hold, tasks, tickets };
}

function respond({ after = 0, cut = false, torn = false, status = 200, headers = {}, body = "" }, signal) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return new Promise((answer, fail) => {
    signal.addEventListener("abort", () => fail(signal.reason));
    // No Response, whose text takes a moment of the real clock.
    const whole = async () => (torn ? Promise.reject(new TypeError("network error")) : text);
    const response = { status, headers: new Headers(headers), text: whole };
    setTimeout(() => (cut ? fail(new TypeError("Failed to fetch")) : answer(response)), after);
  });
}

export function now() {
  return Math.round(performance.now() - began);
}

/** An answer of our server's about these tasks. */
export function poll(tasks, { after = 0, ...more } = {}) {
  const outcome = tasks.length > 0 ? "CHANGED" : "STILL_RUNNING";
  const body = { tasks, problems: [], outcome, recommended_client_backoff_ms: 0, ...HOLD, ...more };
  return { after, body };
}

export function task(id, version, more = {}) {
  return { task_id: id, version, status: "RUNNING", stalled: false, should_continue_polling: true, ...more };
}

export function done(id, version, result = 42) {
  return task(id, version, { status: "SUCCESS", should_continue_polling: false, result });
}

/** The hold ran out. */
export function rolledOver({ hold }) {
  const after = hold * 950;
  return poll([], { after, recommended_client_backoff_ms: 100, hold_granted_ms: after });
}

export function cut(after = 0) {
  return () => ({ after, cut: true });
}

/** What a promise came to, and when. */
export async function ending(promise) {
  try {
    return { value: await promise, at: now() };
  } catch (error) {
    const { name, message, ...facts } = error;
    return { error: { name, message, ...facts }, at: now() };
  }
}

/** Be seen or not, and tell the page. */
export function turn(visibility) {
  Object.defineProperty(document, "visibilityState", { value: visibility, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}

/** Lose the network or get it back, and tell the page. */
export function connect(isOnline) {
  Object.defineProperty(navigator, "onLine", { value: isOnline, configurable: true });
  dispatchEvent(new Event(isOnline ? "online" : "offline"));
}
