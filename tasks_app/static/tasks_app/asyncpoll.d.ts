/** Types of asyncpoll.js. What answers contain is described in docs/protocol.md. */

export type Status = "PENDING" | "RUNNING" | "SUCCESS" | "FAILED" | "CANCELLED";
export type Outcome = "CHANGED" | "TERMINAL" | "STILL_RUNNING" | "DRAINING" | "SHED";
export type Budget = "errors" | "refusals" | "rollOvers";

/** A task as the API shows it. */
export interface Task<Result = unknown> {
  readonly task_id: string;
  readonly task: string;
  readonly status: Status;
  readonly version: number;
  readonly progress: number | null;
  readonly message: string;
  readonly attempt: number;
  readonly result: Result | null;
  readonly error: { readonly type: string; readonly message: string } | null;
  readonly stalled: boolean;
}

/** What submitting gives. */
export interface Submitted<Result = unknown> extends Task<Result> {
  readonly poll_ticket: string;
}

/** What a wait is told. */
export interface Answer<Result = unknown> extends Task<Result> {
  readonly outcome: Outcome;
  readonly should_continue_polling: boolean;
  /** The version known was none of this task's: go on from this answer's. */
  readonly reset?: boolean;
}

/** One thing that happened to a task. */
export interface Milestone {
  readonly version: number;
  readonly kind: string;
  readonly at: string;
  readonly attempt: number;
  readonly progress: number | null;
  readonly message: string;
  readonly data: unknown;
}

/** An answer with everything that happened since the one before. */
export interface Milestones<Result = unknown> extends Answer<Result> {
  readonly events: readonly Milestone[];
  /** Earlier ones are not kept any more. */
  readonly gap?: boolean;
}

/** What a request came to, for `onAttempt`. */
export interface Attempt {
  readonly kind: "answer" | "refused" | "failed" | "problem";
  readonly status: number | null;
  readonly ageMs: number;
  readonly holdMs: number;
  readonly tasks: number;
  readonly sleepMs: number;
  readonly giveUp?: Budget;
}

/** How to be told of the end. */
export type Notice = { inbox: true } | { webhook: string };

export interface Options {
  token?: string;
  ticket?: string;
  credentials?: "omit" | "same-origin" | "include";
  lifetimeMs?: number;
  holdSeconds?: number;
  lingerMs?: number;
  gapMs?: number;
  hiddenMs?: number;
  baseDelayMs?: number;
  maxDelayMs?: number;
  budgets?: Partial<Record<Budget, number>>;
  onStalled?: "raise" | "wait" | ((answer: Answer) => void);
  notify?: Notice | null;
  onAttempt?: ((attempt: Attempt) => void) | null;
}

export const DEFAULTS: Readonly<Required<Options>>;

export interface CallOptions {
  signal?: AbortSignal;
  lifetimeMs?: number;
}

export interface SubmitOptions extends CallOptions {
  idempotencyKey?: string;
  queue?: string;
  priority?: number;
  run_at?: string | null;
  max_attempts?: number;
  timeout_seconds?: number;
  /** To be told of the end. */
  notify?: Notice;
}

export interface WaitOptions extends CallOptions {
  /** The version known already: nothing up to it is told again. */
  after?: number;
  ticket?: string;
  onStalled?: Options["onStalled"];
  notify?: Notice | null;
  milestones?: boolean;
}

/** How to ask an endpoint that is not ours. */
export interface ShortPollOptions {
  timeoutMs?: number;
  intervalMs?: number;
  maxIntervalMs?: number;
  growth?: number;
  firstPolls?: number;
  /** The words for the end, in any case. */
  terminal?: readonly string[];
  /** It is known to tell of progress: three answers that are the same mean that the task is stuck. */
  heartbeat?: boolean;
  onStalled?: "raise" | "wait" | ((answer: object) => void);
  headers?: Readonly<Record<string, string>>;
  credentials?: "omit" | "same-origin" | "include";
  onAttempt?: ((attempt: Attempt) => void) | null;
}

export const SHORT_POLL: Readonly<Required<ShortPollOptions>>;

export function waitForTerminal<Body = Record<string, unknown>>(
  url: string,
  options?: ShortPollOptions & { signal?: AbortSignal },
): Promise<Body>;

export class Asyncpoll {
  constructor(baseUrl?: string, options?: Options);
  submit<Result = unknown>(
    task: string,
    kwargs?: Record<string, unknown>,
    options?: SubmitOptions,
  ): Promise<Submitted<Result>>;
  get<Result = unknown>(taskId: string, options?: CallOptions & { ticket?: string }): Promise<Task<Result>>;
  cancel(taskId: string, options?: CallOptions): Promise<Task>;
  notify(taskId: string, wanted?: Notice, options?: CallOptions): Promise<object>;
  wait<Result = unknown>(taskId: string, options?: WaitOptions): Promise<Answer<Result>>;
  watch<Result = unknown>(
    taskId: string,
    options: WaitOptions & { milestones: true },
  ): AsyncGenerator<Milestones<Result>, void, void>;
  watch<Result = unknown>(taskId: string, options?: WaitOptions): AsyncGenerator<Answer<Result>, void, void>;
}

/** What went wrong. `sentence` is fit for an end user. */
export class PollError extends Error {
  readonly taskId: string | null;
  /** Of an endpoint that is not ours: the JSON that came. */
  readonly lastAnswer: Answer | Readonly<Record<string, unknown>> | null;
  readonly attempts: number;
  /** The server has accepted to put the end into the message centre. */
  readonly notified: boolean;
  readonly sentence: string;
}
export class PollLifetimeExceeded extends PollError {}
export class PollGaveUp extends PollError {}
export class StaleResponseError extends PollError {}
export class RequestRefused extends PollError {
  readonly status: number;
  readonly problem: Readonly<Record<string, unknown>> | null;
}

// What decides, for tests and for whoever drives it otherwise ---------------------------------------------------------

export type Step = { readonly sleepMs: number; readonly giveUp?: Budget; readonly offlineMs?: number };

export class Gateway {
  longestHoldMs: number;
  cut(ageMs: number, holdMs: number, now: number): void;
  lasted(ageMs: number): void;
  retry(now: number, leftMs?: number): number;
}

/** A request that was not answered, or not by our server's own word. */
export interface Trouble {
  /** null: there was no answer. */
  status: number | null;
  problem: object | null;
  ageMs: number;
  holdMs: number;
  retryAfterMs: number | null;
  now: number;
  leftMs: number;
}

export class Pace {
  constructor(gateway: Gateway, rules?: Readonly<Required<Options>>, random?: () => number);
  ask(leftMs: number, isSeen?: boolean): { readonly holdMs: number; readonly timeoutMs: number; readonly pastCaches: boolean };
  answered(came: {
    outcome: Outcome;
    news: boolean;
    ageMs: number;
    backoffMs: number;
    grantedMs: number;
    readTimeoutMs: number;
  }): Step;
  refused(came: Trouble): Step;
  failed(came: Trouble): Step;
  offline(): Step;
  isPassing(came: { status: number; problem: object | null }): boolean;
}

export class Wait {
  readonly taskId: string;
  readonly key: string;
  readonly deadline: number;
  version: number;
  attempts: number;
  lastAnswer: Answer | null;
  constructor(taskId: string, version: number, deadline: number);
  read(answer: Answer): "over" | "stalled" | "news" | "reset" | "nothing";
  facts(): Pick<PollError, "taskId" | "lastAnswer" | "attempts">;
}

export class ShortPoll {
  constructor(rules?: Readonly<Required<ShortPollOptions>>);
  static statusIn(body: object): string | null;
  read(body: object, text: string): "over" | "stuck" | "wait";
  readonly pauseMs: number;
}

export function classify(
  response: { status: number; text: string; retryAfter?: string | null; date?: string | null },
  epochMs: number,
): { kind: Attempt["kind"]; status: number; body?: object; text?: string; problem?: object | null; retryAfterMs?: number | null };

export function retryAfterMs(text: string | null, date: string | null, epochMs: number): number | null;
