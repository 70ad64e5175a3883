// Runs tasks that are declared with external_task(): claims them over HTTP, and reports on them. Node 20, nothing else.
//   ASYNCPOLL_TOKEN=… node worker.mjs http://127.0.0.1:8000 elsewhere
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const [server, queue] = process.argv.slice(2);
const token = process.env.ASYNCPOLL_TOKEN;
const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
const stopping = new AbortController();
for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => stopping.abort());

// The work, by the task's name. `signal` is aborted once nobody wants the result any more.
const handlers = {
  async "shop.render"({ pages, dpi = 72 }, report, signal) {
    for (const [done, page] of pages.entries()) {
      await sleep(dpi, undefined, { signal });
      await report(done / pages.length, `rendered ${page}`);
    }
    return { rendered: pages.length };
  },
};

// The same request again until it is answered: a claim and an end can be repeated without harm.
async function post(path, body, signal) {
  for (let pause = 100; !signal?.aborted; pause = Math.min(2 * pause, 5_000)) {
    const limit = AbortSignal.any([AbortSignal.timeout(40_000), ...(signal ? [signal] : [])]);
    const request = { method: "POST", headers, body: JSON.stringify(body), signal: limit };
    const response = await fetch(server + path, request).catch(() => null);
    const answer = await response?.json().catch(() => null);
    if (answer && response.status < 500 && response.status !== 429) return { ...answer, ok: response.ok };
    await sleep(pause * (0.5 + Math.random() / 2));
  }
}

async function run(task) {
  const unwanted = new AbortController();
  const step = async (body) => {
    const answer = await post(`/api/v1/tasks/${task.task_id}/steps`, { lease_token: task.lease_token, ...body });
    if (!answer.ok || answer.cancel_requested) unwanted.abort(); // not ours any more, or to be cancelled
  };
  if (!Object.hasOwn(handlers, task.task)) {
    const error = `This executor knows no task ${task.task}`;
    return step({ status: "FAILED", error, retryable: false }); // another attempt would find the same
  }
  const heartbeat = setInterval(step, (1_000 * task.lease_seconds) / 3, {});
  try {
    const report = (progress, message) => step({ progress, message });
    const result = await handlers[task.task](task.kwargs, report, unwanted.signal);
    await step({ status: "SUCCESS", result });
  } catch (error) {
    const failure = { status: "FAILED", error: { type: error.name, message: error.message } };
    await step(unwanted.signal.aborted ? { status: "CANCELLED" } : failure);
  } finally {
    clearInterval(heartbeat);
  }
}

while (!stopping.signal.aborted) {
  const body = { claim_id: randomUUID(), limit: 10, max_hold_seconds: 25 };
  const claim = await post(`/api/v1/queues/${encodeURIComponent(queue)}/claim`, body, stopping.signal);
  if (claim && !claim.ok) throw new Error(claim.detail);
  await Promise.all((claim?.tasks ?? []).map(run));
  await sleep(claim?.recommended_client_backoff_ms ?? 0);
}
