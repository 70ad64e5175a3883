/** Plays a server inside the page, by the page's own clock: what `fetch` gives, and what it was asked. */
import { Asyncpoll } from "/asyncpoll.js";
export * from "/asyncpoll.js";

export const asked = [];

/** The poll's client, with `answers` one after the other, the last one for ever. Each is a function of the request. */
export function play(answers, options = {}) {
  globalThis.fetch = (url, init) => {
    const request = read(url, init);
    asked.push(request);
    return respond(answers[Math.min(asked.length, answers.length) - 1](request), init.signal);
  };
  return new Asyncpoll("/api/v1/", options);
}

function read(url, { method, headers, body, cache }) {
  const query = new URL(url).searchParams;
  const hold = query.get("max_hold_seconds");
  return { at: performance.now(), path: new URL(url).pathname, method, headers, body, cache, tasks: query.getAll("task"), linger: query.get("linger_ms"), ticket: query.get("ticket"), hold: hold === null ? null : Number(hold) };
}

function respond({ after = 0, cut = false, status = 200, headers = {}, body }, signal) {
  return new Promise((answer, fail) => {
    signal.addEventListener("abort", () => fail(signal.reason));
    setTimeout(() => {
      if (cut) fail(new TypeError("Failed to fetch"));
      else answer(new Response(typeof body === "string" ? body : JSON.stringify(body), { status, headers }));
    }, after);
  });
}

const HOLD = { hold_granted_ms: 24_000, client_read_timeout_ms: 34_000, hold_duration_ms: 1 };

/** An answer of our server's with these tasks. */
export function poll(tasks, more = {}) {
  const goesOn = tasks.length === 0 || tasks.some((task) => task.should_continue_polling);
  const body = { tasks, problems: [], outcome: tasks.length > 0 ? "CHANGED" : "STILL_RUNNING", recommended_client_backoff_ms: 0, should_continue_polling: goesOn, ...HOLD, ...more };
  return { body };
}

export function task(id, version, more = {}) {
  return { task_id: id, version, status: "RUNNING", outcome: "CHANGED", stalled: false, should_continue_polling: true, result: null, ...more };
}

export function done(id, version, result = 42) {
  return task(id, version, { status: "SUCCESS", outcome: "TERMINAL", should_continue_polling: false, result });
}

/** The hold ran out. */
export function rolledOver({ hold }, more = {}) {
  return { after: hold * 950, ...poll([], { recommended_client_backoff_ms: 100, hold_granted_ms: hold * 950, ...more }) };
}

/** What a promise came to. */
export async function ending(promise) {
  try {
    return { value: await promise };
  } catch (error) {
    const { name, message, sentence, taskId, lastAnswer, attempts, status } = error;
    return { error: { name, message, sentence, taskId, lastAnswer, attempts, status }, at: performance.now() };
  }
}
