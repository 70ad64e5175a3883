/** The demo page: submits the demo task, shows what happens to it, and goes on with it after a reload. */
import { Asyncpoll } from "../static/tasks_app/asyncpoll.js";

const KEPT = "asyncpoll.demo";
const SHOWN_MILESTONES = 500;
const ENDS = new Set(["succeeded", "failed", "cancelled"]);
const part = (id) => document.getElementById(id);

let answers = 0;
const poll = new Asyncpoll(new URL("../api/v1/", import.meta.url).href, { onStalled: "wait", onAttempt: count });

/** The task that this tab watches, with the milestones it has shown: what it needs to go on. */
let watched = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
let leaving = new AbortController();

part("form").addEventListener("submit", (event) => {
  event.preventDefault();
  start().catch(show);
});
part("cancel").addEventListener("click", () => poll.cancel(watched.id).catch(show));
if (watched !== null) follow().catch(show);

async function start() {
  const limit = part("limit").valueAsNumber;
  part("start").disabled = true;
  try {
    const task = await poll.submit("demo.dependency_report", Number.isNaN(limit) ? {} : { limit });
    watched = { id: task.task_id, version: 0, milestones: [] };
  } finally {
    part("start").disabled = false;
  }
  await follow();
}

async function follow() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const { id, version: after } = watched;
  part("id").textContent = id;
  part("task").hidden = false;
  part("outcome").hidden = true;
  part("milestones").replaceChildren(...watched.milestones.map(row));
  for await (const answer of poll.watch(id, { after, signal, milestones: true })) {
    remember(answer);
    render(answer);
  }
}

function remember({ version, next_after, events }) {
  const milestones = [...events.toReversed(), ...watched.milestones].slice(0, SHOWN_MILESTONES);
  watched = { ...watched, version: next_after ?? version, milestones };
  sessionStorage.setItem(KEPT, JSON.stringify(watched));
}

function render(answer) {
  const { status, progress, message, error, stalled, events } = answer;
  part("task").dataset.status = part("status").textContent = status;
  document.title = `${status.toLowerCase()} · asyncpoll demo`;
  part("percent").textContent = percent(progress);
  // Said aloud at each quarter, not at each change.
  part("spoken").textContent = `${status.toLowerCase()} ${percent(progress && Math.floor(progress * 4) / 4)}`;
  if (progress === null) part("progress").removeAttribute("value");
  else part("progress").value = progress;
  part("message").textContent = error === null ? message : `${error.type}: ${error.message}`;
  if (stalled) part("message").textContent = "The worker has stopped; another one will take over.";
  part("milestones").prepend(...events.toReversed().map(row));
  const isOver = !answer.should_continue_polling;
  part("cancel").disabled = isOver;
  if (isOver) finish(answer);
}

function finish({ result }) {
  if (part("progress").position < 0) part("progress").value = 0;
  part("outcome").hidden = result === null;
  if (result === null) return;
  part("summary").replaceChildren(...facts(result.summary).flatMap(([name, number]) => [
    element("dt", name),
    element("dd", number.toLocaleString("en")),
  ]));
  part("json").textContent = JSON.stringify(result, null, 2);
}

function facts({ distributions_inspected, files_listed, without_findings, counts }) {
  const found = Object.entries(counts).filter(([, number]) => number > 0);
  return [
    ["Packages inspected", distributions_inspected],
    ["Files compared", files_listed],
    ["Packages without findings", without_findings],
    ...found.map(([kind, number]) => [`Findings: ${kind}`, number]),
  ];
}

function row({ version, kind, message, progress, at }) {
  // A task that is over keeps its last message, which was said before.
  const own = ENDS.has(kind) ? "" : message;
  const said = own || (kind === "progress" ? percent(progress) : kind.replaceAll("_", " "));
  const item = element("li");
  item.append(...[version, new Date(at).toLocaleTimeString("en-GB"), said].map((text) => element("span", text)));
  return item;
}

function percent(progress) {
  return progress === null ? "" : `${Math.floor(progress * 100 + 1e-9)} %`;
}

function element(name, text = "") {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

function count() {
  answers += 1;
  part("requests").textContent = `${answers} answers to held requests so far ·`;
}

function show(error) {
  if (error.name === "AbortError") return; // another task is watched now
  if (error.name === "RequestRefused") sessionStorage.removeItem(KEPT);
  part("task").hidden = false;
  part("message").textContent = error.sentence ?? String(error);
}
