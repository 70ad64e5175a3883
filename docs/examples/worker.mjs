// Runs tasks that are declared with external_task(): claims them over HTTP, and reports on them. Node 20, nothing else.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const [server, queue] = process.argv.slice(2), token = process.env.ASYNCPOLL_TOKEN;
const end = (code, reason) => process.exit(code, console.error(reason));
if (!queue) end(2, "usage: ASYNCPOLL_TOKEN=… node worker.mjs http://127.0.0.1:8000 elsewhere");
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
    const response = await fetch(server + path, request).catch((error) => ({ error: error.cause?.code ?? error.cause ?? error }));
    const answer = await response.json?.().catch(() => null);
    if (answer && response.status < 500 && response.status !== 429) return { ...answer, ok: response.ok };
    if (!signal?.aborted) console.error(`${server + path}: ${response.status ?? response.error}; trying again`);
    await sleep(pause * (0.5 + Math.random() / 2));
  }
}

async function run({ task_id, lease_token, lease_seconds, task, kwargs }) {
  const unwanted = new AbortController();
  const step = async (body) => {
    const answer = await post(`/api/v1/tasks/${task_id}/steps`, { lease_token, ...body });
    if (!answer.ok || answer.cancel_requested) unwanted.abort(); // not ours any more, or to be cancelled
  };
  const unknown = { status: "FAILED", error: `This executor knows no task ${task}`, retryable: false };
  if (!Object.hasOwn(handlers, task)) return step(unknown); // for good: another attempt would find the same
  const heartbeat = setInterval(step, (1_000 * lease_seconds) / 3, {});
  const report = (progress, message) => step({ progress, message });
  await step(await handlers[task](kwargs, report, unwanted.signal).then(
    (result) => ({ status: "SUCCESS", result }),
    ({ name: type, message }) =>
      unwanted.signal.aborted ? { status: "CANCELLED" } : { status: "FAILED", error: { type, message } },
  ));
  clearInterval(heartbeat);
}

while (!stopping.signal.aborted) {
  const body = { claim_id: randomUUID(), limit: 10, max_hold_seconds: 25 };
  const claim = await post(`/api/v1/queues/${encodeURIComponent(queue)}/claim`, body, stopping.signal);
  if (claim && !claim.ok) end(1, claim.detail ?? "The claim was refused.");
  await Promise.all((claim?.tasks ?? []).map(run));
  await sleep(claim?.recommended_client_backoff_ms ?? 0);
}
