// SPDX-License-Identifier: Apache-2.0
import { h } from "../dom.js";
import { get } from "../api.js";
import { href } from "../route.js";
import { mark } from "../state.js";
import { button } from "../ui/field.js";
import { crumbHead } from "../ui/crumb.js";
import { meter, slots, spark } from "../ui/chart.js";
import { facts, figures, panel } from "../ui/panel.js";
import { table } from "../ui/table.js";
import { empty } from "../ui/notice.js";
import { editLimits, pauseQueue } from "../queue_acts.js";
import { ago, count, decimal, duration } from "../format.js";

const load = ({ id }, signal) => get(`queues/${encodeURIComponent(id)}`, null, signal);

function head({ queue: q }, { live }) {
  const of = (name) => live.history.slice(-90).map(({ counters }) =>
    counters.queues.find((x) => x.queue === q.queue)?.[name] ?? null);
  return figures([
    { name: "Due", value: count(q.available, q.estimated), note: `${count(q.running, q.estimated)} running`,
      chart: spark(of("available"), { label: "due jobs since this page was opened" }) },
    { name: "Oldest due", value: duration(q.oldest_due_s), note: q.wait_p95_s === null
      ? "waiting for a worker" : `p95 of waits ${duration(q.wait_p95_s)}`,
      chart: spark(of("oldest_due_s"), { label: "oldest wait", colour: "warn" }) },
    { name: "Ended", value: decimal(q.per_s), unit: "/s", note: "in the last minute",
      chart: spark(of("per_s"), { label: "jobs ended per second" }) },
    { name: "Later", value: count(q.scheduled + q.retryable, q.estimated),
      note: `${count(q.retryable)} to retry, ${count(q.waiting)} wait for others`,
      chart: spark(of("retryable"), { label: "retryable jobs", colour: "retryable" }) }]);
}

function used(taken, most, unit) {
  return most === null || most === undefined ? "no limit"
    : taken === null || taken === undefined ? `${count(most)}${unit}`
      : meter(taken / most, `${count(taken)} of ${count(most)}${unit}`);
}

function limitsPanel({ limits: l, retention }, { session, reload }) {
  return panel("Limits", { tools: session.can_act && button("Change", async () =>
    (await editLimits(l)) && reload(), { class: "slim", icon: "edit" }) }, facts([
    ["Running", used(l.places_taken, l.max_running, "")],
    ["Starts", l.starts_per_s === null ? "no limit"
      : `${decimal(l.starts_per_s)} /s, ${count(l.may_start_now)} may start now`],
    ["Open jobs", used(l.open_jobs, l.max_open, "")],
    ["Weight", String(l.weight ?? "1")],
    ["Paused", l.paused ? `${ago(l.paused_at)}${l.paused_by ? ` by ${l.paused_by}` : ""}` : null],
    ["Kept", retention.length === 0 ? "default"
      : retention.map((r) => `${r.state ?? "all"} ${count(r.days)} d`).join(", ")]]));
}

function kindsPanel({ queue, kinds, runs }) {
  const run = (kind) => runs.find((r) => r.kind === kind);
  return panel("Kinds", { isFlush: true }, table("kinds of this queue", [
    { name: "Kind", class: "main", cell: (k) => h("a", { href: href("jobs", null,
      { queue: queue.queue, kind: k.kind }) }, k.kind) },
    { name: "Priority", class: "number", cell: (k) => String(k.priority) },
    { name: "Due", class: "number", cell: (k) => count(k.available) },
    { name: "Running", class: "number", cell: (k) => count(k.running) },
    { name: "Retryable", class: "number", cell: (k) => count(k.retryable) },
    { name: "p50", class: "number", cell: (k) => duration(run(k.kind)?.p50_s) },
    { name: "p95", class: "number", cell: (k) => duration(run(k.kind)?.p95_s) },
    { name: "", label: "state", cell: (k) => k.paused && mark("paused") },
  ], kinds, { rowKey: (k) => `${k.kind}/${k.priority}`, empty: empty("No open jobs.") }));
}

function workersPanel({ workers }) {
  return panel("Workers", { isFlush: true }, table("workers of this queue", [
    { name: "Host", class: "main", cell: (w) => h("a", { href: href("jobs", null,
      { worker: w.worker_id, state: "running" }) }, w.host, " ", h("span.quiet", null, w.pid)) },
    { name: "Slots", class: "fill", cell: (w) => slots(w.running, w.slots) },
  ], workers, { rowKey: (w) => w.worker_id, isSlim: true,
    empty: empty("No workers.", "Its jobs wait until a worker serves this queue.") }));
}

function draw(data, context) {
  const { queue: q } = data;
  return [
    crumbHead("queues", "Queues", q.queue, { state: q.paused ? "paused" : "active",
      tools: [h("a.button", { href: href("jobs", null, { queue: q.queue }) }, "Show jobs"),
        context.session.can_act && button(q.paused ? "Resume" : "Pause", async () =>
          (await pauseQueue(q)) && context.reload(), { icon: q.paused ? "play" : "pause" })] }),
    head(data, context),
    h("div.columns", null, h("div.span8.stack", null, kindsPanel(data)),
      h("div.span4.stack", null, limitsPanel(data, context), workersPanel(data)))];
}

export const queue = { title: (at) => `Queue ${at.id}`, topics: ["queues", "jobs"], load, draw };
