// SPDX-License-Identifier: Apache-2.0
// Overview: is all well, how much is done, where does it wait.
import { h } from "../dom.js";
import { get, getIfAny } from "../api.js";
import { href, replace } from "../route.js";
import { mark, shape, stateOf, JOB_STATES } from "../state.js";
import { bars, legend, meter, slots, spark } from "../ui/chart.js";
import { flow } from "../ui/flow.js";
import { figures, panel } from "../ui/panel.js";
import { segments } from "../ui/field.js";
import { table } from "../ui/table.js";
import { empty, notice } from "../ui/notice.js";
import { clock, count, decimal, duration, percent, plural } from "../format.js";
import { seriesOfHistory } from "../history.js";
import { verdict } from "../verdict.js";

const PERIODS = [["15m", "15 min"], ["1h", "1 h"], ["24h", "24 h"]];
const SECONDS = { "15m": 900, "1h": 3600, "24h": 86400 };
const QUEUES_SHOWN = 8;

const periodOf = (params) => (SECONDS[params.get("period")] ? params.get("period") : "15m");

let hasSeries = true; // until the server says that it has none

async function load({ params, live }, signal) {
  const period = periodOf(params);
  const [counters, doctor, cluster, series] = await Promise.all([
    get("overview", null, signal), get("doctor", null, signal), get("cluster", null, signal),
    hasSeries ? getIfAny("series", { period }, signal) : null]);
  hasSeries = series !== null;
  live.counters = counters;
  return { doctor, series, cluster };
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

function numbers(series) {
  const known = (name) => series.rows.map((r) => r[name]).filter((v) => v !== null && v !== undefined);
  const total = (name) => known(name).reduce((a, b) => a + b, 0);
  const { completed, discarded } = series.totals ??
    { completed: total("completed"), discarded: total("discarded") };
  const waits = known("wait_p95_s");
  return { ended: completed + discarded, failed: discarded, seconds: series.seconds,
    wait: waits.at(-1) ?? null };
}

function head(series, counters, rows) {
  const n = numbers(series);
  const live = counters.workers.filter((w) => w.state === "live" || w.state === "quiet");
  const values = (name) => rows.map((r) => r[name] ?? null);
  const oldest = Math.max(0, ...counters.queues.map((q) => q.oldest_due_s ?? 0));
  const waitFigure = n.wait === null
    ? { name: "Oldest due job waits", value: duration(oldest), note: "over all queues",
      chart: spark(values("oldest_s"), { label: "oldest wait over the period" }) }
    : { name: "Wait, p95", value: duration(n.wait), note: `oldest due job waits ${duration(oldest)}`,
      chart: spark(values("wait_p95_s"), { label: "95th percentile of waits over the period" }) };
  return figures([
    { name: "Finished", value: decimal(n.ended / Math.max(n.seconds, 1)), unit: "/s",
      note: `${count(n.ended)} in ${duration(n.seconds)}`,
      chart: spark(values("ended"), { label: "finished jobs over the period" }) },
    { name: "Failed for good", value: percent(n.ended === 0 ? null : n.failed / n.ended),
      note: plural(n.failed, "job"), chart: spark(values("discarded"),
        { label: "failed jobs over the period", colour: "bad" }) },
    waitFigure,
    { name: "Slots in use", value: count(sum(live, "running")), unit: `of ${count(sum(live, "slots"))}`,
      note: plural(live.length, "live worker"),
      chart: slotsMeter(live) },
  ]);
}

const slotsMeter = (live) => h("div.spacer", null, meter(
  sum(live, "running") / Math.max(sum(live, "slots"), 1), percent(sum(live, "running") /
    Math.max(sum(live, "slots"), 1)), { colour: "running", label: "slots in use" }));

function finishedPanel(series, rows) {
  const parts = ["completed", "discarded", "cancelled"].map((name) =>
    ({ name, state: name, colour: name, values: rows.map((r) => r[name] ?? 0) }));
  if (!hasSeries) {
    return panel("Finished jobs", { footer: "In the minute before, since this page was opened." },
      spark(rows.map((r) => r.ended), { label: "finished jobs per minute", height: 144 }));
  }
  return panel("Finished jobs", { tools: legend(parts) },
    rows.length < 2 ? h("p.quiet", null, "Nothing is known yet.")
      : bars(parts, rows.map((r) => clock(r.at)), { format: count,
        label: `finished jobs per ${duration(series.step)}` }));
}

function flowPanel(counters) {
  const t = totals(counters);
  const last = counters.finished.at(-1) ?? {};
  const shown = (name) => t[name] ?? count(last[name], last.estimated);
  return panel("Jobs by state", { footer: `Ended jobs: those of the last ${last.minutes ?? 15} min.` },
    flow({ label: "jobs by state", total: shown,
      href: (name) => href("jobs", null, { state: name }), below: () => "" }),
    h("ul.unseen", null, Object.keys(JOB_STATES).map((name) => h("li", null, `${name} ${shown(name)}`))));
}

function queuePanel(counters) {
  const rows = [...counters.queues].sort((a, b) => (b.oldest_due_s ?? -1) - (a.oldest_due_s ?? -1))
    .slice(0, QUEUES_SHOWN);
  const top = Math.max(1, ...rows.map((q) => (q.paused ? 0 : q.oldest_due_s ?? 0)));
  return panel("Where it waits", { isFlush: true,
    tools: h("a.small", { href: href("queues") }, "All queues") },
  table("queues by oldest due job", [
    { name: "Queue", class: "main", cell: (q) => h("a", { href: href("queues", q.queue) }, q.queue) },
    { name: "Due", class: "number", cell: (q) => count(q.available, q.estimated) },
    { name: "Running", class: "number", cell: (q) => count(q.running, q.estimated) },
    { name: "Oldest due", class: "fill", cell: (q) => (q.paused ? mark("paused")
      : meter((q.oldest_due_s ?? 0) / top, duration(q.oldest_due_s), { label: "oldest due job",
        colour: (q.oldest_due_s ?? 0) > 60 ? "warn" : "accent" })) },
  ], rows, { rowKey: (q) => q.queue, isSlim: true, empty: empty("No queue yet.", "Enqueue a first job.") }));
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
      empty: empty("No worker lives.", "Start claimd-worker.") }));
}

function controlPanel(counters, cluster) {
  const leader = cluster?.schedulers.find((s) => s.state === "leader");
  const one = leader ?? cluster?.schedulers[0];
  const health = counters.health;
  return panel("Control", {}, h("ul.stack", null,
    h("li.row", null, mark(health.leaders > 0 ? "leading" : "fail",
      { text: health.leaders > 0 ? `Leader ${leader?.host ?? ""}` : "No leader" }),
    h("span.quiet", null, plural(health.schedulers, "scheduler"))),
    one && h("li.row", null, mark(one.lock_nodes_voting === one.lock_nodes ? "voting"
      : one.lock_nodes_voting * 2 > one.lock_nodes ? "warn" : "fail",
    { text: `${one.lock_nodes_voting ?? 0} of ${one.lock_nodes ?? "?"} lock nodes vote` })),
    cluster && h("li.row", null, mark("ok", { text: "PostgreSQL answers" }),
      h("span.quiet", null, cluster.cluster.postgres?.split(" ")[0] ?? "")),
    health.trouble && h("li", null, mark("warn", { text: health.trouble }))));
}

function draw(data, { params, live }) {
  const counters = live.counters;
  const period = periodOf(params);
  const series = seriesOfHistory(data.series, live.history, SECONDS[period]);
  const rows = series.rows;
  return [
    h("div.page-head", null, h("h1", null, "Overview"),
      data.series && h("div.push", null,
        segments("period", PERIODS, period, (p) => replace(href("overview", null, { period: p }))))),
    verdictNotice(data.doctor.checks),
    head(series, counters, rows),
    h("div.columns", null,
      h("div.span8", null, finishedPanel(series, rows)),
      h("div.span4", null, controlPanel(counters, data.cluster)),
      h("div.span12", null, flowPanel(counters)),
      h("div.span7", null, queuePanel(counters)),
      h("div.span5", null, hostPanel(counters)))];
}

export const overview = { title: () => "Overview", topics: ["jobs", "queues", "workers", "schedulers"],
  load, draw };
