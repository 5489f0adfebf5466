// SPDX-License-Identifier: Apache-2.0
// Cluster: workers and what they run, schedulers, lock nodes, storage, and the last actions.
import { h } from "../dom.js";
import { act, get, getJobs } from "../api.js";
import { href } from "../route.js";
import { mark } from "../state.js";
import { button, iconButton } from "../ui/field.js";
import { slots } from "../ui/chart.js";
import { facts, panel } from "../ui/panel.js";
import { table } from "../ui/table.js";
import { confirmAct } from "../ui/dialog.js";
import { empty } from "../ui/notice.js";
import { actNow } from "../acts.js";
import { ago, bytes, count, duration, moment, plural } from "../format.js";

const RUNNING_SHOWN = 200;
const ACTS_SHOWN = 20;
const RUNNING = { state: "running", limit: RUNNING_SHOWN, columns: "id,kind,queue,attempted_at,worker_id" };

async function load({ session, live }, signal) {
  const [cluster, counters, running, nodes, audit] = await Promise.all([get("cluster", null, signal),
    get("overview", null, signal), getJobs(RUNNING, signal), get("lock-nodes", null, signal),
    session.role === "operator" ? get("audit", null, signal) : null]);
  live.counters = counters; // its workers have more columns and stay up to date
  const byWorker = new Map();
  running.jobs.forEach((j) => byWorker.set(j.worker_id, [...byWorker.get(j.worker_id) ?? [], j]));
  return { ...cluster, byWorker, nodes: nodes.lock_nodes, audit: audit?.audit.slice(0, ACTS_SHOWN), version: session.version };
}

const ASKS = {
  quiet: { text: "Quiet", says: "start no more jobs until it is resumed" },
  drain: { text: "Drain", says: "end its jobs and stop", isDanger: true },
};

async function ask(w, what, reload) {
  const path = `workers/${encodeURIComponent(w.worker_id)}/${what}`;
  const isWanted = what === "resume" || await confirmAct({ title: `${ASKS[what].text} ${w.host}`,
    verb: ASKS[what].text, isDanger: ASKS[what].isDanger, preview: async () => {
      const { asked } = await act("POST", path, { dry_run: true });
      return { isEmpty: asked.length === 0,
        text: `${plural(asked.length, "worker")} will ${ASKS[what].says}.`,
        detail: `${w.host}, pid ${w.pid}: ${plural(w.running, "job")} ${w.running === 1 ? "runs" : "run"}.` };
    } });
  if (isWanted && await actNow("POST", path, {}, `${w.host} (pid ${w.pid}) was asked: ${what}.`)) {
    reload();
  }
}

function workerActs(w, reload) {
  const isLive = ["live", "quiet"].includes(w.state);
  return isLive && h("div.row.end", null,
    button(w.state === "quiet" ? "Resume" : "Quiet", () =>
      ask(w, w.state === "quiet" ? "resume" : "quiet", reload), { class: "slim" }),
    button("Drain", () => ask(w, "drain", reload), { class: "slim danger" }));
}

function workersPanel({ byWorker }, { session, live: { counters: { workers } }, state, redraw, reload }) {
  state.open ??= new Set();
  const toggle = (id) => {
    state.open[state.open.has(id) ? "delete" : "add"](id);
    redraw();
  };
  const columns = [
    { name: "Host", class: "main", cell: (w) => h("div.row.nowrap", null,
      iconButton(state.open.has(w.worker_id) ? "down" : "right",
        `jobs running on ${w.host} ${w.pid}`, () => toggle(w.worker_id)),
      h("a", { href: href("jobs", null, { worker: w.worker_id, state: "running" }) }, w.host, " ",
        h("span.quiet", null, w.pid))) },
    { name: "State", cell: (w) => mark(w.state) },
    { name: "Slots", cell: (w) => h("div.slots-cell", null, slots(w.running, w.slots)) },
    { name: "Heartbeat", class: "number", cell: (w) => `${duration(w.beat_age_s)} ago` },
    { name: "Queues", class: "fill", cell: (w) => [
      h("div.clip", { title: w.queues }, w.queues?.replaceAll(",", ", ")),
      w.refused && mark("warn", { text: `refuses ${w.refused}` })] },
    { name: "Since", class: "number", cell: (w) => ago(w.started_at) },
    session.can_act && { name: "", label: "acts", class: "acts", cell: (w) => workerActs(w, reload) },
  ].filter(Boolean);
  return panel("Workers", { isFlush: true, footer: workersFooter(workers) },
    table("workers", columns, workers, { rowKey: (w) => w.worker_id,
      extra: (w) => state.open.has(w.worker_id) && runs(byWorker.get(w.worker_id) ?? []),
      empty: empty("No live workers.", "Start claimd-worker.") }));
}

const workersFooter = (workers) => [...new Set(workers.map((w) => w.version))].length > 1
  ? `Versions: ${[...new Set(workers.map((w) => w.version))].join(", ")}` : null;

function runs(jobs) {
  return jobs.length === 0 ? h("p.quiet.small", null, "Nothing is running.")
    : h("ul.runs", null, jobs.map((j) => h("li", { key: j.id },
      h("a", { href: href("jobs", j.id) }, j.kind, " ", h("span.quiet", null, `#${j.id}`)),
      h("span.quiet.small", null, `for ${ago(j.attempted_at).replace(" ago", "")}`))));
}

function schedulersPanel({ schedulers }) {
  return panel("Schedulers", { isFlush: true }, table("schedulers", [
    { name: "Host", class: "main", cell: (s) => [s.host, " ", h("span.quiet", null, s.pid)] },
    { name: "State", cell: (s) => mark(s.state === "leader" ? "leading" : s.state) },
    { name: "Leads", class: "number", cell: (s) => duration(s.leads_s) },
    { name: "Heartbeat", class: "number", cell: (s) => `${duration(s.beat_age_s)} ago` },
    { name: "Lock nodes", class: "number", cell: votes },
    { name: "Error", class: "fill", cell: (s) => s.last_error &&
      h("div.clip", { title: s.last_error }, s.last_error) },
  ], schedulers, { rowKey: (s) => `${s.host}/${s.pid}`,
    empty: empty("No schedulers.", "Start claimd-scheduler.") }));
}

// The last two parts of the path identify a socket.
const shortNode = (node) => node.replace(/^unix:.*\/([^/]+\/[^/]+)$/, "unix:…/$1");

const votes = (s) => `${s.lock_nodes_voting ?? "?"} of ${s.lock_nodes ?? "?"}`;

const SLOW_S = 0.05;
const CLOCK_OFF_S = 1;

const marked = (isBad, text) => (isBad ? mark("warn", { text }) : text);
const signed = (s) => (s === null ? "–" : `${s < 0 ? "−" : "+"}${duration(s)}`);

// What claimd-web found when it asked the nodes; without its own list, what the cluster has.
function nodesPanel({ cluster, schedulers, nodes }) {
  const one = schedulers.find((s) => s.state === "leader") ?? schedulers[0];
  const known = String(cluster.lock_nodes ?? "").split(",").filter(Boolean).map((node) => ({ node }));
  return panel("Lock nodes", { isFlush: true, tools: one && mark(
    one.lock_nodes_voting === one.lock_nodes ? "voting" : "warn", { text: `${votes(one)} vote` }),
  footer: nodes.length > 0 && "As claimd-web sees them: how long an answer takes, and how far their " +
    "clock is ahead of its own." },
  table("lock nodes", [
    { name: "Node", class: "main fill", cell: (n) => h("div.clip.mono", { title: n.node },
      shortNode(n.node)) },
    { name: "State", cell: (n) => n.state && mark(n.state, { title: n.why }) },
    { name: "Latency", class: "number", cell: (n) => marked(n.latency_s > SLOW_S, duration(n.latency_s)) },
    { name: "Clock", class: "number", cell: (n) => marked(Math.abs(n.clock_s) > CLOCK_OFF_S,
      signed(n.clock_s ?? null)) },
    { name: "Up", class: "number", cell: (n) => duration(n.uptime_s) },
    { name: "Version", cell: (n) => n.version && h("span.quiet", null, n.version) },
  ], nodes.length > 0 ? nodes : known, { rowKey: (n) => n.node, empty: empty("No lock nodes.") }));
}

function storePanel({ cluster: c, version }) {
  return panel("Store", {}, facts([["PostgreSQL", c.postgres?.split(" ")[0]],
    ["Schema", String(c.schema_version)], ["Open jobs", bytes(c.job_table_bytes)],
    ["History", bytes(c.history_bytes)],
    ["Owners", c.owners ? "jobs belong to roles" : "off"], ["claimd-web", version]]));
}

function auditPanel({ audit }) {
  return audit && panel("Recent actions", { isFlush: true }, table("recent actions", [
    { name: "When", class: "main", cell: (a) => h("span", { title: moment(a.at) }, ago(a.at)) },
    { name: "Who", cell: (a) => [a.who ?? "–", " ", h("span.quiet", null, a.address)] },
    { name: "Action", class: "fill", cell: (a) => h("div.clip.mono", { title: a.body },
      `${a.method} ${a.path.replace(/^.*\/api\/v1\//, "")}`) },
    { name: "Status", cell: (a) => mark(a.status === null ? "stale" : a.status < 300 ? "ok" : "fail",
      { text: a.status === null ? "unknown" : String(a.status) }) },
  ], audit, { rowKey: (a) => a.id, empty: empty("No actions yet.") }));
}

function draw(data, context) {
  const live = context.live.counters.workers.filter((w) => ["live", "quiet"].includes(w.state));
  return [
    h("div.page-head", null, h("h1", null, "Cluster"), h("span.quiet", null,
      `${plural(live.length, "live worker")}, ${count(live.reduce((n, w) => n + w.running, 0))} of ` +
      `${plural(live.reduce((n, w) => n + w.slots, 0), "slot")} taken`)),
    workersPanel(data, context),
    h("div.columns", null, h("div.span12", null, schedulersPanel(data)),
      h("div.span8", null, nodesPanel(data)), h("div.span4", null, storePanel(data))),
    auditPanel(data)];
}

export const cluster = { title: () => "Cluster", topics: ["workers", "schedulers"], load, draw };
