// SPDX-License-Identifier: Apache-2.0
// Overview: whether all is well, how much gets done, and where jobs wait.
import { h } from "../dom.js";
import { get } from "../api.js";
import { href, replace } from "../route.js";
import { mark, shape, stateOf, JOB_STATES } from "../state.js";
import { bars, legend, meter, slots, spark } from "../ui/chart.js";
import { flow } from "../ui/flow.js";
import { figures, panel } from "../ui/panel.js";
import { segments } from "../ui/field.js";
import { table } from "../ui/table.js";
import { empty, notice } from "../ui/notice.js";
import { clock, count, decimal, duration, percent, plural } from "../format.js";
import { verdict } from "../verdict.js";

const PERIODS = [["15m", "15 min"], ["1h", "1 h"], ["24h", "24 h"]];
const QUEUES_SHOWN = 8;

const periodOf = (params) => PERIODS.map(([p]) => p).find((p) => p === params.get("period")) ?? "15m";

async function load({ params, live }, signal) {
  const [counters, doctor, series] = await Promise.all([get("overview", null, signal),
    get("doctor", null, signal), get("series", { period: periodOf(params) }, signal)]);
  live.counters = counters;
  return { checks: doctor.checks, rows: series.series, step: series.period.step_s };
}

function verdictNotice(checks) {
  const v = verdict(checks);
  return notice(v.kind, v.text, { class: "verdict", detail: v.findings.length > 0 &&
    h("ul.findings", null, v.findings.map((c) => {
      const s = stateOf(c.kind);
      return h("li", { key: c.check, style: { "--c": `var(--${s.colour})` } }, shape(s.shape),
        h("span", null, h("strong", null, `${c.check}: `), c.detail),
        c.action && h("span.quiet", null, c.action));
    })) });
}

const sum = (rows, name) => rows.reduce((total, row) => total + (row[name] ?? 0), 0);

function totals(counters) {
  const of = {};
  for (const state of ["waiting", "scheduled", "available", "retryable", "running"]) {
    of[state] = count(sum(counters.queues, state),
      counters.queues.some((q) => q.estimated && q[state] > 0));
  }
  return of;
}

// The jobs that ended in the period, as far as known; the counters cover the last 15 min.
function ended({ rows, step }, counters, period) {
  if (period === "15m") {
    const { completed, discarded, minutes, estimated } = counters.finished.at(-1);
    return { all: completed + discarded, failed: discarded, seconds: minutes * 60, estimated };
  }
  const known = rows.filter((r) => r.completed !== null);
  return { all: sum(known, "completed") + sum(known, "discarded"), failed: sum(known, "discarded"),
    seconds: Math.max(known.length, 1) * step, estimated: known.some((r) => r.estimated) };
}

function waitFigure(rows, counters) {
  const waits = rows.map((r) => r.wait_p95_s);
  const oldest = duration(Math.max(0, ...counters.queues.map((q) => q.oldest_due_s ?? 0)));
  const last = waits.filter((w) => w !== null).at(-1);
  const chart = spark(waits, { label: "95th percentile of the waits, over the period" });
  return last === undefined
    ? { name: "Oldest due job waits", value: oldest, note: "no job has started yet", chart }
    : { name: "Wait, p95", value: duration(last), note: `oldest due job waits ${oldest}`, chart };
}

function head(data, counters, period) {
  const e = ended(data, counters, period);
  const live = counters.workers.filter((w) => w.state === "live" || w.state === "quiet");
  const values = (name) => data.rows.map((r) => r[name]);
  return figures([
    { name: "Finished", value: decimal(e.all / e.seconds), unit: "/s",
      note: `${count(e.all, e.estimated)} in ${duration(e.seconds)}`,
      chart: spark(values("completed"), { label: "completed jobs over the period" }) },
    { name: "Discarded", value: percent(e.all === 0 ? null : e.failed / e.all),
      note: plural(e.failed, "job"), chart: spark(values("discarded"),
        { label: "discarded jobs over the period", colour: "bad" }) },
    waitFigure(data.rows, counters),
    { name: "Slots in use", value: count(sum(live, "running")), unit: `of ${count(sum(live, "slots"))}`,
      note: plural(live.length, "live worker"), chart: slotsMeter(live) },
  ]);
}

const slotsMeter = (live) => h("div.spacer", null, meter(
  sum(live, "running") / Math.max(sum(live, "slots"), 1), percent(sum(live, "running") /
    Math.max(sum(live, "slots"), 1)), { colour: "running", label: "slots in use" }));

function finishedPanel({ rows, step }) {
  const parts = ["completed", "discarded", "cancelled"].map((name) =>
    ({ name, state: name, colour: name, values: rows.map((r) => r[name]) }));
  const first = rows.find((r) => r.completed !== null);
  return panel("Finished jobs", { tools: legend(parts),
    footer: first !== rows[0] && (first ? `Data since ${clock(first.at)}.` : "No data yet.") },
  bars(parts, rows.map((r) => clock(r.at)), { format: count,
    label: `finished jobs per ${duration(step)}` }));
}

function flowPanel(counters) {
  const t = totals(counters);
  const last = counters.finished.at(-1) ?? {};
  const shown = (name) => t[name] ?? count(last[name], last.estimated);
  const footer = `Completed, discarded and cancelled: in the last ${last.minutes ?? 15} min.`;
  return panel("Jobs by state", { footer },
    flow({ label: "jobs by state", total: shown,
      href: (name) => href("jobs", null, { state: name }), below: () => "" }),
    h("ul.unseen", null, Object.keys(JOB_STATES).map((name) => h("li", null, `${name} ${shown(name)}`))));
}

function queuePanel(counters) {
  const rows = [...counters.queues].sort((a, b) => (b.oldest_due_s ?? -1) - (a.oldest_due_s ?? -1))
    .slice(0, QUEUES_SHOWN);
  const top = Math.max(1, ...rows.map((q) => (q.paused ? 0 : q.oldest_due_s ?? 0)));
  return panel("Oldest due jobs", { isFlush: true,
    tools: h("a.small", { href: href("queues") }, "All queues") },
  table("queues by oldest due job", [
    { name: "Queue", class: "main", cell: (q) => h("a", { href: href("queues", q.queue) }, q.queue) },
    { name: "Due", class: "number", cell: (q) => count(q.available, q.estimated) },
    { name: "Running", class: "number", cell: (q) => count(q.running, q.estimated) },
    { name: "Oldest due", class: "fill", cell: (q) => (q.paused ? mark("paused")
      : meter((q.oldest_due_s ?? 0) / top, duration(q.oldest_due_s), { label: "oldest due job",
        colour: (q.oldest_due_s ?? 0) > 60 ? "warn" : "accent" })) },
  ], rows, { rowKey: (q) => q.queue, isSlim: true,
    empty: empty("No queues yet.", "Enqueue your first job.") }));
}

function hostPanel(counters) {
  const rows = counters.workers.slice(0, QUEUES_SHOWN);
  return panel("Workers", { isFlush: true, tools: h("a.small", { href: href("cluster") }, "Cluster") },
    table("workers", [
      { name: "Host", class: "main", cell: (w) => h("a", { href: href("jobs", null,
        { worker: w.worker_id ?? w.host, state: "running" }) }, w.host, " ",
      h("span.quiet", null, w.pid)) },
      { name: "State", cell: (w) => mark(w.state) },
      { name: "Slots", class: "fill", cell: (w) => slots(w.running, w.slots) },
    ], rows, { rowKey: (w) => w.worker_id ?? `${w.host}/${w.pid}`, isSlim: true,
      empty: empty("No live workers.", "Start claimd-worker.") }));
}

function controlPanel({ health }, checks) {
  const { lock_nodes: nodes, lock_nodes_voting: votes } = health;
  const postgres = checks.find((c) => c.check === "postgresql");
  const quorum = votes === nodes ? "voting" : votes * 2 > nodes ? "warn" : "fail";
  return panel("Control", {}, h("ul.stack", null,
    h("li.row", null, mark(health.leaders > 0 ? "leading" : "fail",
      { text: health.leaders > 0 ? `Leader ${health.leader ?? ""}` : "No leader" }),
    h("span.quiet", null, health.leads_s === null ? plural(health.schedulers, "scheduler")
      : `for ${duration(Math.floor(health.leads_s))}, ${plural(health.schedulers, "scheduler")}`)),
    nodes !== null && h("li.row", null, mark(quorum, { text: `${votes} of ${nodes} lock nodes vote` })),
    postgres && h("li.row", null, mark(postgres.result.toLowerCase(), { text: "PostgreSQL" }),
      h("span.quiet", null, postgres.detail)),
    health.trouble && h("li", null, mark("warn", { text: health.trouble }))));
}

function draw(data, { params, live }) {
  const counters = live.counters;
  const period = periodOf(params);
  return [
    h("div.page-head", null, h("h1", null, "Overview"),
      h("div.push", null, segments("period", PERIODS, period, (p) =>
        replace(href("overview", null, { period: p }))))),
    verdictNotice(data.checks),
    head(data, counters, period),
    h("div.columns", null,
      h("div.span8", null, finishedPanel(data)),
      h("div.span4", null, controlPanel(counters, data.checks)),
      h("div.span12", null, flowPanel(counters)),
      h("div.span7", null, queuePanel(counters)),
      h("div.span5", null, hostPanel(counters)))];
}

export const overview = { title: () => "Overview", topics: ["jobs", "queues", "workers", "schedulers"],
  load, draw };
