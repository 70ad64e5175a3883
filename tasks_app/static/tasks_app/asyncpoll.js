/**
 * asyncpoll.js: wait for long-running tasks over plain HTTP, from a page. No dependencies; types in asyncpoll.d.ts.
 *
 *     import { Asyncpoll } from "/static/tasks_app/asyncpoll.js";
 *
 *     const poll = new Asyncpoll("/api/v1/");
 *     const { task_id, version } = await poll.submit("demo.dependency_report", { limit: 40 });
 *     for await (const answer of poll.watch(task_id, { after: version })) console.log(answer.status, answer.message);
 *
 * In three parts. `Gateway`, `Pace`, `Wait` and `ShortPoll` decide what to do next and know neither clock nor network:
 * they are told what came, and when. `Line` does it: one held request for all waits of a page. `Asyncpoll` is what pages
 * use, and `waitForTerminal` for endpoints that are not ours.
 */

/** What may be set, and what it is otherwise. Times are in milliseconds unless the name says seconds. */
export const DEFAULTS = Object.freeze({
  token: "", // sent as Authorization: Bearer …
  ticket: "", // a poll ticket, for pages that must not hold a token; each wait may have one of its own
  credentials: "omit",
  lifetimeMs: 600_000,
  holdSeconds: 25,
  lingerMs: 100, // with several waits: after the first news, this long for more in the same answer
  gapMs: 200, // between two requests that bring news, so that a burst of changes is no burst of requests
  hiddenMs: 15_000, // between looks of a hidden page, which holds nothing. Infinity: no looks; 0: as if it were seen
  baseDelayMs: 500,
  maxDelayMs: 15_000,
  budgets: Object.freeze({ errors: 12, refusals: 40, rollOvers: 1_000 }), // in a row
  onStalled: "raise", // or "wait", or a function of the answer, which may throw something of its own
  notify: null, // { inbox: true } or { webhook: "https://…" }: how to be told of the end of what outlives its wait
  onAttempt: null, // a function of what each request came to
});

/** The same for `waitForTerminal`. The first polls are `intervalMs` apart, then each pause is `growth` times the last. */
export const SHORT_POLL = Object.freeze({
  timeoutMs: 80_000,
  intervalMs: 400,
  maxIntervalMs: 5_000,
  growth: 1.8,
  firstPolls: 5,
  terminal: Object.freeze(["SUCCESS", "COMPLETED", "FAILED", "CANCELLED"]),
  heartbeat: false, // true: it is known to tell of progress, so that standing still is being stuck
  onStalled: "raise",
  headers: Object.freeze({}),
  credentials: "omit",
  onAttempt: null,
});

const MOST_TASKS = 100; // in one request, by the protocol
const MOST_TICKETS = 40; // in one request: with their tasks they stay below the 8 KB that gateways allow its first line
const GATHER_MS = 20; // waits that begin within it share their first request
const CALL_TIMEOUT_MS = 30_000; // of requests that do not hold
const NOTICE_MS = 10_000; // for asking to be notified when the time of a wait is up
const BACK_ONLINE_MS = 1_000; // devices that come back online together do not ask together
const LONGEST_REASON = 500; // of what a server says, in a message
const LONGEST_TIMER_MS = 2 ** 31 - 1; // browsers fire a longer one at once
const NEVER = new AbortController().signal;

// What can go wrong ---------------------------------------------------------------------------------------------------

/** The root of what this module throws. `sentence` is fit for an end user. */
export class PollError extends Error {
  constructor(message, { sentence = message, cause, ...facts } = {}) {
    super(message, { cause });
    this.name = new.target.name;
    Object.assign(this, { taskId: null, lastAnswer: null, attempts: 0, notified: false, sentence }, facts);
  }
}

/** The time is up. The task goes on: `taskId` finds it later. */
export class PollLifetimeExceeded extends PollError {}

/** Too many errors, refusals or roll-overs in a row. A task that was accepted goes on. */
export class PollGaveUp extends PollError {}

/** Stuck, not slow: whoever ran the task has stopped its heartbeat, or the answers do not change any more. */
export class StaleResponseError extends PollError {}

/** The server will not do it, however often it is asked: `status`, and `problem` where it sent such a document. */
export class RequestRefused extends PollError {}

const REDIRECTED = "a redirect, which is not followed, as the token would go along; give the final address";
const GOES_ON = "The work goes on in the background; you can come back for its result later.";
const WILL_BE_TOLD = "The work goes on in the background; its result will be in your message centre.";
const UNREACHABLE = "The server can't be reached at the moment. What it has accepted goes on in the background.";
const STOPPED = "The work has come to a halt for now; it will be taken up again in the background.";
const REFUSED = "This can't be seen or done from here, or not any more.";

// What to do next -----------------------------------------------------------------------------------------------------

/** What is known of a server and of the gateways before it. Everything on the page that talks to it shares one. */
export class Gateway {
  static #RETRIES = 10; // at once, over all waits; then one a second
  static #NO_HOLD_MS = 1_000; // what ended sooner was no hold that was cut
  static #SHORTEST_HOLD_MS = 500;
  static #SAFELY_BELOW = 0.5; // browsers send again what a reused connection did not answer: the age can be that of two
  static #ABOUT = 0.25; // ages that differ by less are about the same

  /** No hold asked for is longer. */
  longestHoldMs = Infinity;
  #cut = null;
  #budgetFullAt = -Infinity;

  /**
   * A request that asked for `holdMs` died when it was `ageMs` old. The second time at that age, holds get shorter,
   * and stay so. Those that were on their way when the first one died do not count: a server that goes down ends many
   * at a time.
   */
  cut(ageMs, holdMs, now) {
    const before = this.#cut;
    if (holdMs === 0 || ageMs < Gateway.#NO_HOLD_MS || now - ageMs < before?.now) return;
    this.#cut = { ageMs, now };
    if (!Gateway.#areAlike(ageMs, before?.ageMs)) return;
    const safe = Math.max(Gateway.#SHORTEST_HOLD_MS, Gateway.#SAFELY_BELOW * Math.min(ageMs, before.ageMs, holdMs));
    this.longestHoldMs = Math.min(this.longestHoldMs, safe);
  }

  /** A request was answered when it was `ageMs` old: whatever was cut sooner was not cut for its age. */
  lasted(ageMs) {
    const cut = this.#cut?.ageMs;
    if (ageMs > cut && !Gateway.#areAlike(ageMs, cut)) this.#cut = null;
  }

  /** How long a retry has to wait for its turn. It takes none where only `leftMs` are left, or others would wait for it. */
  retry(now, leftMs = Infinity) {
    const next = Math.max(this.#budgetFullAt, now - Gateway.#RETRIES * 1_000) + 1_000;
    const turn = Math.max(0, next - now);
    if (turn <= leftMs) this.#budgetFullAt = next;
    return turn;
  }

  static #areAlike(ageMs, other) {
    return Math.abs(ageMs - other) <= Gateway.#ABOUT * Math.max(ageMs, other);
  }
}

/** The rhythm of one line of requests. Told what came, it says how long to sleep, and which budget is spent. */
export class Pace {
  static #BURST = 2;
  static #TRAVEL_MS = 500; // the last hold ends so long before its wait, for its answer to arrive
  static #READ_MARGIN_MS = 10_000; // on top of the hold, until the server has said so itself
  static #LEAST_MARGIN_MS = 1_000; // whatever it says, or each hold that runs out would be taken for a silent gateway
  static #SLOW_HINT_MS = 250; // a hint of at least this is no invitation to a hot loop

  #gateway;
  #rules;
  #random;
  #readMarginMs = Pace.#READ_MARGIN_MS;
  #inARow = { errors: 0, refusals: 0, rollOvers: 0 };
  #instant = 0;
  #afterError = false;
  #hadAnswer = false;

  constructor(gateway, rules = DEFAULTS, random = Math.random) {
    this.#gateway = gateway;
    this.#rules = rules;
    this.#random = random;
  }

  /**
   * What to ask for when `leftMs` are left of the wait that ends first. The first after an error does not hold. Nor
   * does a page that is not seen: over HTTP/1.1, all tabs of a browser together have six connections to a host.
   */
  ask(leftMs, isSeen = true) {
    const { holdSeconds } = this.#rules;
    const longest = Math.min(holdSeconds * 1_000, this.#gateway.longestHoldMs, leftMs - Pace.#TRAVEL_MS);
    const holdMs = this.#afterError || !isSeen ? 0 : Math.max(0, longest);
    return { holdMs, timeoutMs: holdMs + this.#readMarginMs, pastCaches: this.#instant > 0 };
  }

  /** Is this an error page of something in between, where the server has answered before? */
  isPassing({ status, problem }) {
    return this.#hadAnswer && (status === 404 || status === 405) && typeof problem?.type !== "string";
  }

  /** An answer of ours. `news`: it taught something. A roll-over is no error, and waits as long as the server says. */
  answered({ outcome, news, ageMs, backoffMs, grantedMs, readTimeoutMs }) {
    this.#gateway.lasted(ageMs);
    this.#readMarginMs = Math.max(Pace.#LEAST_MARGIN_MS, readTimeoutMs - grantedMs);
    this.#afterError = false;
    this.#hadAnswer = true;
    this.#inARow.errors = 0;
    if (outcome === "SHED") return this.#spend("refusals", backoffMs);
    this.#inARow.refusals = 0;
    if (!news) return this.#spend("rollOvers", Math.max(backoffMs, this.#guard(backoffMs, ageMs, grantedMs)));
    this.#inARow.rollOvers = this.#instant = 0;
    return { sleepMs: Math.max(backoffMs, this.#rules.gapMs - ageMs) };
  }

  /** 429 or 503. The former asks for longer holds, not for short ones. */
  refused(came) {
    this.#learn(came);
    this.#afterError = came.status !== 429;
    return this.#tryAgain("refusals", came);
  }

  /** A network error, another 5xx, or something that is no answer of ours. */
  failed(came) {
    this.#learn(came);
    this.#afterError = true;
    return this.#tryAgain("errors", came);
  }

  /** The device is offline: nobody's fault, and no reason to give up. */
  offline() {
    this.#afterError = true;
    return { sleepMs: 0, offlineMs: this.#rules.maxDelayMs };
  }

  // A gateway that has no more patience hangs up, or answers with a page of its own. What our server says in its own
  // words, half an answer, and a page where an answer should be are other troubles.
  #learn({ status, problem, ageMs, holdMs, now }) {
    const isOurs = typeof problem?.type === "string";
    if (status === null || (status >= 500 && !isOurs)) this.#gateway.cut(ageMs, holdMs, now);
    else this.#gateway.lasted(ageMs);
  }

  #tryAgain(budget, { retryAfterMs, now, leftMs }) {
    const wanted = retryAfterMs === null ? this.#backoff(this.#inARow[budget]) : this.#jittered(retryAfterMs);
    const turn = this.#gateway.retry(now, leftMs);
    return this.#spend(budget, Math.min(Math.max(wanted, turn), leftMs));
  }

  #backoff(retry) {
    const { baseDelayMs, maxDelayMs } = this.#rules;
    const delay = Math.min(maxDelayMs, baseDelayMs * 2 ** retry);
    return delay + this.#random() * delay;
  }

  // Also one that has passed, or asks for nothing, is no reason to come back at once.
  #jittered(retryAfterMs) {
    const { baseDelayMs } = this.#rules;
    return Math.max(baseDelayMs, retryAfterMs) + this.#random() * Math.max(baseDelayMs, retryAfterMs / 4);
  }

  #spend(budget, sleepMs) {
    this.#inARow[budget] += 1;
    if (this.#inARow[budget] <= this.#rules.budgets[budget]) return { sleepMs };
    this.#inARow[budget] = 0;
    return { sleepMs, giveUp: budget };
  }

  // Something between us and the server that answers holds at once, a cache, must not be asked as fast as it answers.
  #guard(backoffMs, ageMs, grantedMs) {
    const isCalm = backoffMs >= Pace.#SLOW_HINT_MS || (grantedMs > 0 && ageMs >= grantedMs / 2);
    this.#instant = isCalm ? 0 : this.#instant + 1;
    const tooMany = this.#instant - Pace.#BURST;
    return tooMany > 0 ? this.#backoff(tooMany - 1) : 0;
  }
}

/** One wait for one task: its cursor, its deadline, and what it makes of an answer. */
export class Wait {
  attempts = 0;
  lastAnswer = null;

  /** @param version that the page knows already; 0 is none. */
  constructor(taskId, version, deadline) {
    Object.assign(this, { taskId, version, deadline, key: keyOf(taskId) });
  }

  /** What an answer says: "over", "stalled", "news", "reset" (go on from an earlier version), or "nothing". */
  read(answer) {
    const meaning = this.#meaning(answer);
    if (meaning === "nothing" && answer.version !== this.version) return meaning;
    this.version = answer.version;
    this.lastAnswer = answer;
    return meaning;
  }

  /** What every error says of this wait. */
  facts() {
    const { taskId, lastAnswer, attempts } = this;
    return { taskId, lastAnswer, attempts };
  }

  #meaning(answer) {
    if (answer.should_continue_polling === false) return "over";
    if (answer.reset === true) return "reset";
    // Caches and restored databases may bring versions that are older.
    if (answer.version < this.version) return "nothing";
    if (answer.stalled === true && this.lastAnswer?.stalled !== true) return "stalled";
    return answer.version > this.version ? "news" : "nothing";
  }
}

/** The rhythm of asking an endpoint that is not ours and only short-polls, and what its answers mean. */
export class ShortPoll {
  static #SAME = 3; // answers in a row that are the same byte for byte are no coincidence

  #rules;
  #terminal;
  #isArmed;
  #polls = 0;
  #before = null;
  #same = 0;

  constructor(rules = SHORT_POLL) {
    this.#rules = rules;
    this.#terminal = new Set(rules.terminal.map((word) => word.toUpperCase()));
    this.#isArmed = rules.heartbeat;
  }

  /** The status that an answer tells, in upper case; null if it tells none. */
  static statusIn({ status, state }) {
    const told = status ?? state;
    return typeof told === "string" ? told.toUpperCase() : null;
  }

  /** "over", "stuck" once for each time that it stands still, or "wait". */
  read(body, text) {
    this.#polls += 1;
    const isSame = text === this.#before;
    this.#isArmed ||= this.#before !== null && !isSame;
    this.#same = isSame ? this.#same + 1 : 1;
    this.#before = text;
    if (this.#terminal.has(ShortPoll.statusIn(body))) return "over";
    return this.#isArmed && this.#same === ShortPoll.#SAME ? "stuck" : "wait";
  }

  /** How long until the next one. */
  get pauseMs() {
    const { intervalMs, maxIntervalMs, growth, firstPolls } = this.#rules;
    return Math.min(maxIntervalMs, intervalMs * growth ** Math.max(0, this.#polls - firstPolls));
  }
}

// What came -----------------------------------------------------------------------------------------------------------

/** What a response is: an "answer", "refused" for now, "failed", or a "problem" that would stay one. */
export function classify({ status, text, retryAfter = null, date = null }, epochMs) {
  const body = parsed(text);
  if (status >= 200 && status < 300 && body !== null) return { kind: "answer", status, body, text };
  // All that a page is shown of a redirect.
  if (status === 0) return { kind: "problem", status, problem: { detail: REDIRECTED } };
  const later = { status, problem: body, retryAfterMs: retryAfterMs(retryAfter, date, epochMs) };
  if (status === 429 || status === 503) return { kind: "refused", ...later };
  if (status >= 500 || status < 400 || status === 408 || status === 425) return { kind: "failed", ...later };
  return { kind: "problem", status, problem: body };
}

/** Retry-After in milliseconds, given as seconds or as a date; null if it is neither. */
export function retryAfterMs(text, date, epochMs) {
  if (text === null) return null;
  if (/^\s*\d+(\.\d+)?\s*$/.test(text)) return Number(text) * 1_000;
  // By the server's own clock where it shows it: the device's may be hours off.
  const from = Date.parse(date ?? "") || epochMs;
  const until = Date.parse(text);
  return Number.isNaN(until) ? null : Math.max(0, until - from);
}

function parsed(text) {
  try {
    const body = JSON.parse(text);
    return typeof body === "object" && !Array.isArray(body) ? body : null;
  } catch {
    return null;
  }
}

/** What the rhythm of a line depends on; null if this is no answer of a poll for many tasks. */
function factsOf(body) {
  const { outcome, tasks, hold_granted_ms: grantedMs, client_read_timeout_ms: readTimeoutMs } = body;
  const areOurs = Array.isArray(tasks) && tasks.every(isTask);
  if (!areOurs || !Number.isFinite(grantedMs) || !Number.isFinite(readTimeoutMs)) return null;
  return { outcome, grantedMs, readTimeoutMs, backoffMs: Math.max(0, Number(body.recommended_client_backoff_ms) || 0) };
}

function isTask(body) {
  return typeof body?.task_id === "string" && Number.isInteger(body.version);
}

function keyOf(taskId) {
  return String(taskId).split(":")[0].replaceAll("-", "").toLowerCase();
}

// Doing it ------------------------------------------------------------------------------------------------------------

const now = () => performance.now(); // monotonic
const isOffline = () => globalThis.navigator?.onLine === false;

/** Wait for `ms`, or for the first of some events, each given as [target, name]. */
function until(ms, ...events) {
  const over = new AbortController();
  return new Promise((done) => {
    const timer = setTimeout(done, Math.min(ms, LONGEST_TIMER_MS));
    over.signal.addEventListener("abort", () => clearTimeout(timer));
    for (const [target, name] of events) {
      target.addEventListener(name, done, { signal: over.signal });
      if (target.aborted) done();
    }
  }).finally(() => over.abort());
}

/** Sleep as a step says. Offline, look now and then all the same: the server may be on the device itself. */
async function pause({ sleepMs, offlineMs = 0 }, signal = NEVER) {
  if (sleepMs > 0) await until(sleepMs, [signal, "abort"]);
  if (offlineMs === 0) return;
  if (isOffline()) await until(offlineMs, [globalThis, "online"], [signal, "abort"]);
  if (!isOffline()) await until(Math.random() * BACK_ONLINE_MS, [signal, "abort"]);
}

async function contentOf(response) {
  const { status, headers } = response;
  return { status, text: await response.text(), retryAfter: headers.get("Retry-After"), date: headers.get("Date") };
}

/** One request. Never throws: says what came, how long it took, and "abandoned" if `signal` ended it. */
async function exchange(url, init, { timeoutMs, signal }) {
  const began = now();
  let status = null; // of an answer of which only a part came
  const ending = new AbortController();
  const end = () => ending.abort();
  const timer = setTimeout(end, Math.min(timeoutMs, LONGEST_TIMER_MS));
  signal?.addEventListener("abort", end);
  try {
    const response = await fetch(url, { ...init, signal: ending.signal });
    status = response.status;
    return { ...classify(await contentOf(response), Date.now()), ageMs: now() - began };
  } catch (cause) {
    const kind = signal?.aborted ? "abandoned" : "failed";
    return { kind, status, retryAfterMs: null, cause, ageMs: now() - began };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  }
}

/** The page's side of a wait: keeps the latest answer until it is asked for, and ends once. */
class Waiter {
  #onStalled;
  #latest = [];
  #end = null;
  #wake = () => {};

  constructor(wait, { ticket, onStalled }) {
    this.wait = wait;
    this.ticket = ticket;
    this.#onStalled = onStalled;
  }

  get isOver() {
    return this.#end !== null;
  }

  /** Take an answer about the task; true if it taught something. */
  take(answer) {
    const meaning = this.wait.read(answer);
    if (meaning === "nothing" || this.isOver) return false;
    if (meaning === "stalled") this.#stall(answer);
    else this.#tell(answer, meaning === "over");
    return meaning !== "reset";
  }

  /** End with an error, and nothing before it, unless it has ended. */
  fail(error) {
    if (this.isOver) return;
    this.#end = { error };
    this.#latest = [];
    this.#wake();
  }

  async *answers() {
    for (;;) {
      while (this.#latest.length > 0) yield this.#latest.pop();
      if (this.#end?.error !== undefined) throw this.#end.error;
      if (this.isOver) return;
      await new Promise((wake) => (this.#wake = wake));
    }
  }

  #tell(answer, isLast = false) {
    this.#latest = [answer];
    if (isLast) this.#end ??= {};
    this.#wake();
  }

  #stall(answer) {
    try {
      const message = `Whoever ran the task ${this.wait.taskId} has stopped its heartbeat`;
      stall(this.#onStalled, answer, this.wait.facts(), message);
      this.#tell(answer);
    } catch (error) {
      this.fail(error);
    }
  }
}

/** One request after the other, each for every wait that there is. */
class Line {
  #api;
  #pace;
  #waiters = new Set();
  #call = new AbortController();
  #joined = new AbortController();
  #superseded = 0;
  #isRunning = false;

  constructor(api) {
    this.#api = api;
    this.#pace = api.pace();
  }

  /** Is there room for another one? */
  takes(waiter) {
    const [other = waiter] = this.#waiters;
    const most = waiter.ticket ? MOST_TICKETS : MOST_TASKS;
    return this.#waiters.size < most && Boolean(other.ticket) === Boolean(waiter.ticket);
  }

  join(waiter) {
    this.#waiters.add(waiter);
    this.#joined.abort();
    if (this.#isRunning) this.#askAgainSoon(this.#call);
    else this.#run();
  }

  leave(waiter) {
    this.#waiters.delete(waiter);
    if (this.#waiters.size === 0) this.#call.abort();
  }

  // Twice as long after each in a row, so that a page that keeps adding waits hears of the first ones all the same.
  async #askAgainSoon(call) {
    await until(GATHER_MS * 2 ** this.#superseded);
    if (call === this.#call && !call.signal.aborted) this.#superseded += 1;
    call.abort();
  }

  get #isUnseen() {
    return this.#api.rules.hiddenMs > 0 && globalThis.document?.visibilityState === "hidden";
  }

  async #run() {
    this.#isRunning = true;
    await until(GATHER_MS);
    while (this.#waiters.size > 0) await this.#rest(await this.#ask());
    this.#isRunning = false;
  }

  async #ask() {
    const waiters = [...this.#waiters];
    const leftMs = Math.min(...waiters.map(({ wait }) => wait.deadline)) - now();
    const { holdMs, timeoutMs, pastCaches } = this.#pace.ask(leftMs, !this.#isUnseen);
    for (const { wait } of waiters) wait.attempts += 1;
    [this.#call, this.#joined] = [new AbortController(), new AbortController()];
    const query = this.#query(waiters, holdMs);
    if (pastCaches) query.set("_", randomKey()); // a parameter that the server ignores and a cache does not know
    const report = await this.#api.send("GET", "tasks/long_poll", { query, timeoutMs, signal: this.#call.signal });
    if (report.kind === "abandoned") return { sleepMs: 0 };
    this.#superseded = 0;
    const step = this.#read(report, waiters, { holdMs, leftMs });
    this.#api.tried(report, { holdMs, tasks: waiters.length, ...step });
    return step;
  }

  #query(waiters, holdMs) {
    const query = new URLSearchParams();
    for (const { wait } of waiters) query.append("task", `${wait.taskId}:${wait.version}`);
    query.set("max_hold_seconds", (holdMs / 1_000).toFixed(3));
    if (waiters.length > 1) query.set("linger_ms", this.#api.rules.lingerMs);
    const tickets = new Set(waiters.map(({ ticket }) => ticket).filter(Boolean));
    for (const ticket of tickets) query.append("ticket", ticket);
    return query;
  }

  #read(report, waiters, facts) {
    if (report.kind === "problem" && !this.#pace.isPassing(report)) return this.#refuse(report, waiters);
    const step = this.#paced(report, waiters, facts);
    return step.giveUp ? this.#giveUp(step, report, waiters) : step;
  }

  #paced(report, waiters, facts) {
    const said = report.kind === "answer" ? factsOf(report.body) : null;
    if (said === null) return nextTry(this.#pace, report, facts);
    return this.#pace.answered({ ...said, ageMs: report.ageMs, news: this.#tell(report.body, waiters) });
  }

  /** Give each wait what is about its task; true if any of them learned something. */
  #tell({ tasks, problems = [] }, waiters) {
    const about = Map.groupBy(waiters, ({ wait }) => wait.key);
    const each = (taskId, give) => (about.get(keyOf(taskId)) ?? []).map(give).some(Boolean);
    const told = tasks.map((answer) => each(answer.task_id, (waiter) => waiter.take(answer)));
    // 503 is of a row that could not be read this time.
    const final = problems.filter(({ status }) => status !== 503);
    const failed = final.map((problem) => each(problem.task, (waiter) => refuse(waiter, problem.status, problem)));
    for (const waiter of waiters) if (waiter.isOver) this.leave(waiter);
    return [...told, ...failed].some(Boolean);
  }

  #refuse({ status, problem }, waiters) {
    for (const waiter of waiters) refuse(waiter, status, problem);
    return this.#drop(waiters);
  }

  #giveUp({ giveUp, sleepMs }, report, waiters) {
    for (const waiter of waiters) waiter.fail(givenUp(giveUp, report, waiter.wait.facts()));
    return this.#drop(waiters, sleepMs);
  }

  #drop(waiters, sleepMs = 0) {
    for (const waiter of waiters) this.leave(waiter);
    return { sleepMs };
  }

  // Seeing the page again, or a new wait, ends a hidden one's longer pause, but no backoff.
  async #rest(step) {
    await pause(step);
    if (this.#isUnseen && this.#waiters.size > 0) {
      await until(this.#api.rules.hiddenMs, [document, "visibilitychange"], [this.#joined.signal, "abort"]);
    }
  }
}

function refuse(waiter, status, problem) {
  waiter.fail(refusal(status, problem, waiter.wait.facts()));
  return true;
}

function refusal(status, problem, facts) {
  const message = `Refused with ${status}: ${reasonIn(problem)}`;
  return new RequestRefused(message, { sentence: REFUSED, status, problem, ...facts });
}

function reasonIn(problem) {
  return String(problem?.detail ?? problem?.title ?? "it did not say why").slice(0, LONGEST_REASON);
}

/** What the caller chose to do about a task that is stuck. */
function stall(onStalled, answer, facts, message) {
  if (onStalled === "raise") throw new StaleResponseError(message, { sentence: STOPPED, ...facts });
  if (onStalled !== "wait") onStalled(answer);
}

function nextTry(pace, report, facts) {
  const came = { retryAfterMs: null, ...report, ...facts, now: now() };
  if (report.kind === "refused") return pace.refused(came);
  return report.cause !== undefined && isOffline() ? pace.offline() : pace.failed(came);
}

/** The API at one address: sends requests, and sends those that do not wait until one is answered. */
class Server {
  #base;
  #gateway;

  constructor(baseUrl, rules) {
    this.#base = new URL(baseUrl.endsWith("/") ? baseUrl : `${baseUrl}/`, globalThis.location?.href);
    this.#gateway = gatewayOf(this.#base.origin);
    this.rules = rules;
  }

  pace() {
    return new Pace(this.#gateway, this.rules);
  }

  /** One request; see `exchange`. */
  send(method, path, { query, body, headers = {}, redirect = "manual", timeoutMs, signal }) {
    const url = new URL(path, this.#base);
    if (query !== undefined) url.search = query;
    const { token, credentials } = this.rules;
    if (token) headers = { ...headers, Authorization: `Bearer ${token}` };
    // By the Fetch standard, no-store also sends Cache-Control: no-cache and Pragma: no-cache.
    const init = { method, headers, body, credentials, cache: "no-store", redirect };
    return exchange(url, init, { timeoutMs, signal });
  }

  /** Tell the page's hook what a request came to. */
  tried({ kind, status, ageMs }, more) {
    try {
      this.rules.onAttempt?.({ kind, status, ageMs, ...more });
    } catch (error) {
      reportError(error);
    }
  }

  /** The body of the answer to a request that may be repeated, and is, by the same rules. */
  async persist(method, path, request) {
    return (await this.answer(method, path, request)).body;
  }

  /** The answer itself, by `deadline` and if `isAnswer` says that its body is one. `facts` counts the attempts. */
  async answer(method, path, { lifetimeMs = this.rules.lifetimeMs, deadline = now() + lifetimeMs, ...request }) {
    const { signal, facts = {}, isAnswer = () => true, ...sent } = request;
    for (const pace = this.pace(); ; ) {
      signal?.throwIfAborted();
      const timeoutMs = Math.min(CALL_TIMEOUT_MS, deadline - now());
      facts.attempts = (facts.attempts ?? 0) + 1;
      const report = await this.send(method, path, { ...sent, timeoutMs, signal });
      signal?.throwIfAborted();
      if (report.kind === "answer" && isAnswer(report.body)) return report;
      if (report.kind === "problem") throw refusal(report.status, report.problem, facts);
      const step = nextTry(pace, report, { holdMs: 0, leftMs: deadline - now() });
      this.tried(report, { holdMs: 0, tasks: 1, ...step });
      if (step.giveUp) throw givenUp(step.giveUp, report, facts);
      await pause(step, signal);
      if (now() >= deadline) throw expired(lifetimeMs, facts);
    }
  }
}

const gateways = new Map();

function gatewayOf(origin) {
  if (!gateways.has(origin)) gateways.set(origin, new Gateway());
  return gateways.get(origin);
}

function givenUp(budget, { status, problem, cause }, facts) {
  const sentence = budget === "rollOvers" ? GOES_ON : UNREACHABLE;
  const last = cause?.message ?? `${status}, ${reasonIn(problem)}`;
  return new PollGaveUp(`Gave up after too many ${budget} in a row; the last one: ${last}`, { sentence, cause, ...facts });
}

function expired(lifetimeMs, facts) {
  const message = `Gave up after ${lifetimeMs / 1_000} s, the lifetime of this wait`;
  return new PollLifetimeExceeded(message, { sentence: GOES_ON, ...facts });
}

// What pages use ------------------------------------------------------------------------------------------------------

/** A server's tasks: submits, waits, watches, cancels. All waits of one object share one held request for each 100. */
export class Asyncpoll {
  #server;
  #lines = [];
  #promised = new Set(); // tasks whose end the server has accepted to put into the message centre

  /** @param options what is in `DEFAULTS`; each call may have its own lifetimeMs and onStalled. */
  constructor(baseUrl = "/api/v1/", options = {}) {
    this.#server = new Server(baseUrl, checked(options));
  }

  /** Submit a task: once, however often the request has to be sent. Gives the task, with its `poll_ticket`. */
  async submit(task, kwargs = {}, { idempotencyKey = randomKey(), signal, lifetimeMs, ...fields } = {}) {
    const headers = { "Content-Type": "application/json", "Idempotency-Key": idempotencyKey };
    const body = JSON.stringify({ task, kwargs, ...fields });
    const submitted = await this.#server.persist("POST", "tasks", { body, headers, signal, lifetimeMs });
    this.#accepted(submitted.task_id, fields.notify);
    return submitted;
  }

  /** The task as it is now. */
  get(taskId, { ticket = this.#server.rules.ticket, ...options } = {}) {
    return this.#server.persist("GET", pathOf(taskId), { query: ticketed({}, ticket), facts: { taskId }, ...options });
  }

  /** Ask for a task to be cancelled. Asking twice changes nothing. */
  cancel(taskId, options = {}) {
    return this.#server.persist("POST", `${pathOf(taskId)}/cancel`, { facts: { taskId }, ...options });
  }

  /** Ask to be told of the end, also if it has come: `{ inbox: true }` or `{ webhook }`. May be asked again. */
  async notify(taskId, wanted = { inbox: true }, options = {}) {
    const headers = { "Content-Type": "application/json" };
    const request = { headers, body: JSON.stringify(wanted), facts: { taskId }, ...options };
    const promised = await this.#server.persist("POST", `${pathOf(taskId)}/notify`, request);
    this.#accepted(taskId, wanted);
    return promised;
  }

  /** Wait for the end of a task, and give its last answer. A task that failed is an answer, too. */
  async wait(taskId, options = {}) {
    let last = null;
    for await (last of this.watch(taskId, options));
    return last;
  }

  /**
   * Every answer that says something new, until the task is over. With `milestones`, each has `events`: all that
   * happened since the one before, also what happened between two requests. `after` is the version known already.
   */
  async *watch(taskId, { after = 0, signal, milestones = false, ...own } = {}) {
    signal?.throwIfAborted();
    const rules = checked({ ...this.#server.rules, ...own });
    const waiter = new Waiter(new Wait(taskId, after, now() + rules.lifetimeMs), rules);
    const line = this.#lineFor(waiter);
    const end = (error) => (waiter.fail(error), line.leave(waiter));
    const abort = () => end(signal.reason);
    const timer = setTimeout(() => end(expired(rules.lifetimeMs, waiter.wait.facts())), rules.lifetimeMs);
    signal?.addEventListener("abort", abort);
    try {
      line.join(waiter);
      yield* milestones ? this.#withMilestones(waiter, after, signal) : waiter.answers();
    } catch (error) {
      if (error instanceof PollLifetimeExceeded) await this.#leaveClaimCheck(error, rules.notify);
      throw error;
    } finally {
      line.leave(waiter);
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }

  /** Only who was accepted is promised the message centre: an inbox, as a webhook is for programs. */
  async #leaveClaimCheck(error, wanted) {
    try {
      if (wanted) await this.notify(error.taskId, wanted, { lifetimeMs: NOTICE_MS });
    } catch (refusal) {
      error.cause = refusal;
    }
    error.notified = this.#promised.has(keyOf(error.taskId));
    if (error.notified) error.sentence = WILL_BE_TOLD;
  }

  #accepted(taskId, wanted) {
    if (wanted?.inbox) this.#promised.add(keyOf(taskId));
  }

  async *#withMilestones(waiter, after, signal) {
    let [told, goesOn] = [after, true];
    for await (const answer of waiter.answers()) {
      if (answer.reset) told = 0;
      const isOver = answer.should_continue_polling === false;
      if (answer.version === told && (answer.stalled || isOver)) yield { ...answer, events: [] };
      while (goesOn && answer.version > told) {
        const page = await this.#events(waiter, told, signal);
        yield page;
        [told, goesOn] = [page.next_after, page.should_continue_polling];
      }
      if (!goesOn) return;
    }
  }

  #events({ wait, ticket }, after, signal) {
    const query = ticketed({ after, max_hold_seconds: 0 }, ticket);
    const request = { query, signal, lifetimeMs: Math.max(0, wait.deadline - now()), facts: wait.facts() };
    return this.#server.persist("GET", `${pathOf(wait.taskId)}/events`, request);
  }

  #lineFor(waiter) {
    const free = this.#lines.find((line) => line.takes(waiter));
    if (free !== undefined) return free;
    const line = new Line(this.#server);
    this.#lines.push(line);
    return line;
  }
}

/**
 * Wait for an endpoint that is not ours and only short-polls, until the `status` (or `state`) in its JSON is one of
 * `terminal`. Gives that JSON. Three answers in a row that are the same byte for byte are a task that is stuck, once two
 * unfinished ones have differed, or if `heartbeat` says that it tells of progress. Takes what is in `SHORT_POLL`.
 */
export async function waitForTerminal(url, { signal, ...options } = {}) {
  const rules = checkedRhythm(options);
  const { href, origin, pathname } = new URL(url, globalThis.location?.href);
  const [poll, server] = [new ShortPoll(rules), new Server(origin, { ...DEFAULTS, ...rules })];
  const facts = { taskId: origin + pathname, lastAnswer: null, attempts: 0 };
  const times = { lifetimeMs: rules.timeoutMs, deadline: now() + rules.timeoutMs };
  const request = { ...times, signal, facts, headers: rules.headers, redirect: "follow", isAnswer: ShortPoll.statusIn };
  for (;;) {
    const { body, text } = await server.answer("GET", href, request);
    facts.lastAnswer = body;
    const meaning = poll.read(body, text);
    if (meaning === "over") return body;
    if (meaning === "stuck") stall(rules.onStalled, body, facts, `${facts.taskId} gives the same answer again and again`);
    await pause({ sleepMs: Math.min(poll.pauseMs, times.deadline - now()) }, signal);
    if (now() >= times.deadline) throw expired(rules.timeoutMs, facts);
  }
}

function pathOf(taskId) {
  return `tasks/${encodeURIComponent(taskId)}`;
}

function ticketed(parameters, ticket) {
  return new URLSearchParams(ticket ? { ...parameters, ticket } : parameters);
}

function randomKey() {
  // Not randomUUID(), which there is only where pages are secure.
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function checked(options) {
  const rules = { ...known(options, DEFAULTS), budgets: known(options.budgets ?? {}, DEFAULTS.budgets) };
  checkDelays(rules, "baseDelayMs", "maxDelayMs");
  return checkLifetime(rules, "lifetimeMs");
}

function checkedRhythm(options) {
  const rules = known(options, SHORT_POLL);
  checkDelays(rules, "intervalMs", "maxIntervalMs");
  if (rules.growth < 1) throw new RangeError(`growth is ${rules.growth}; it must be a number from 1 up`);
  return checkLifetime(rules, "timeoutMs");
}

function known(options, defaults) {
  const unknown = Object.keys(options).find((name) => !(name in defaults));
  if (unknown !== undefined) throw new TypeError(`${unknown} is none of ${Object.keys(defaults).join(", ")}`);
  for (const [name, value] of Object.entries(options)) {
    if (typeof defaults[name] === "number" && !(value >= 0)) {
      throw new RangeError(`${name} is ${value}; it must be a number from 0 up`);
    }
  }
  return { ...defaults, ...options };
}

// Without pauses they would be a storm, and nobody switches that rule off.
function checkDelays(rules, ...names) {
  const none = names.find((name) => rules[name] < 1);
  if (none !== undefined) throw new RangeError(`${none} is ${rules[none]}; pauses must have 1 millisecond or more`);
}

function checkLifetime(rules, name) {
  if (rules[name] <= LONGEST_TIMER_MS) return Object.freeze(rules);
  throw new RangeError(`${name} is ${rules[name]}; it can be ${LONGEST_TIMER_MS} at most`);
}
