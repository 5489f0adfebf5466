// SPDX-License-Identifier: Apache-2.0
// Queues: depth, rate and waits; pause and resume; keys with limits.
import { h } from "../dom.js";
import { get } from "../api.js";
import { href } from "../route.js";
import { mark } from "../state.js";
import { button } from "../ui/field.js";
import { panel } from "../ui/panel.js";
import { table } from "../ui/table.js";
import { spark } from "../ui/chart.js";
import { empty } from "../ui/notice.js";
import { editKey, pauseQueue, removeKeyLimits } from "../queue_acts.js";
import { count, decimal, duration } from "../format.js";

const LATE_S = 60;

async function load({ live }, signal) {
  const [counters, { keys }] = await Promise.all([get("overview", null, signal),
    get("keys", null, signal)]);
  live.counters = counters;
  return { keys };
}

const link = (q, state) => h("a.plain", { href: href("jobs", null, { queue: q.queue, state }) },
  count(q[state], q.estimated));

function columns({ session, live, reload }) {
  const rates = (name) => live.history.slice(-60).map(({ counters }) =>
    counters.queues.find((q) => q.queue === name)?.per_s ?? null);
  const hasWaiting = live.counters.queues.some((q) => q.waiting > 0);
  return [
    { name: "Queue", class: "main short", cell: (q) => h("a", { href: href("queues", q.queue),
      title: q.queue }, q.queue) },
    { name: "State", cell: (q) => mark(q.paused ? "paused" : q.workers > 0 ? "active" : "unserved") },
    { name: "Due", class: "number", cell: (q) => link(q, "available") },
    { name: "Running", class: "number", cell: (q) => link(q, "running") },
    { name: "Scheduled", class: "number", cell: (q) => link(q, "scheduled") },
    { name: "Retryable", class: "number", cell: (q) => link(q, "retryable") },
    hasWaiting && { name: "Waiting", class: "number", cell: (q) => link(q, "waiting") },
    { name: "Oldest due", class: "number", cell: (q) => ((q.oldest_due_s ?? 0) > LATE_S && !q.paused
      ? mark("warn", { text: duration(q.oldest_due_s) }) : duration(q.oldest_due_s)) },
    { name: "Wait p95", class: "number", cell: (q) => duration(q.wait_p95_s) },
    { name: "Ended", class: "number", cell: (q) => `${decimal(q.per_s)} /s` },
    { name: "Rate", class: "rate", cell: (q) => spark(rates(q.queue), { label: "jobs ended per second" }) },
    { name: "Workers", class: "number", cell: (q) => count(q.workers) },
    session.can_act && { name: "", label: "acts", class: "acts", cell: (q) =>
      button(q.paused ? "Resume" : "Pause", async () => (await pauseQueue(q)) && reload(),
        { class: "slim", icon: q.paused ? "play" : "pause" }) },
  ].filter(Boolean);
}

function keysPanel({ keys }, { session, reload }) {
  const after = async (isDone) => (await isDone) && reload();
  const isSet = (k) => !k.pattern && (k.max_running > 1 || k.starts_per_s || k.key.endsWith("*"));
  const tools = session.can_act && button("Limit a key", () => after(editKey()),
    { class: "slim", icon: "keys" });
  return (keys.length > 0 || tools) && panel("Keys with limits or in use", { isFlush: true, tools },
    table("keys", [
    { name: "Key", class: "main fill", cell: (k) => h("div.clip", { title: k.key }, k.key) },
    { name: "Limited by", cell: (k) => k.pattern && h("span.quiet", null, `pattern ${k.pattern}`) },
    { name: "Running", class: "number", cell: (k) => (k.running === null ? `${count(k.max_running)} each`
      : `${count(k.running)} of ${count(k.max_running)}`) },
    { name: "Starts", class: "number", cell: (k) =>
      (k.starts_per_s ? `${decimal(k.starts_per_s)} /s` : "–") },
    { name: "May start now", class: "number", cell: (k) => count(k.may_start_now) },
    session.can_act && { name: "", label: "acts", class: "acts", cell: (k) => h("div.row.end", null,
      button("Change", () => after(editKey(k)), { class: "slim", icon: "edit" }),
      isSet(k) && button("Remove", () => after(removeKeyLimits(k)), { class: "slim" })) },
  ].filter(Boolean), keys, { rowKey: (k) => k.key,
    empty: empty("No keys in use.", "A job with an exclusive key runs alone, unless its key has a limit.") }));
}

function draw(data, context) {
  const queues = [...context.live.counters.queues].sort((a, b) => (a.queue < b.queue ? -1 : 1));
  return [h("div.page-head", null, h("h1", null, "Queues")),
    panel(null, { isFlush: true, footer: "~ marks an estimate. Ended: in the last minute. Wait p95: " +
      "95 % of the jobs that ended in the last 15 minutes waited less." },
      table("queues", columns(context), queues, { rowKey: (q) => q.queue,
        empty: empty("No queues yet.", "A queue appears with its first job.") })),
    keysPanel(data, context)];
}

export const queues = { title: () => "Queues", topics: ["queues", "jobs"], load, draw };
