// SPDX-License-Identifier: Apache-2.0
import { h } from "../dom.js";
import { get } from "../api.js";
import { go, href } from "../route.js";
import { mark } from "../state.js";
import { button } from "../ui/field.js";
import { crumbHead } from "../ui/crumb.js";
import { facts, json, panel } from "../ui/panel.js";
import { table } from "../ui/table.js";
import { empty, notice } from "../ui/notice.js";
import { cronText } from "../cron.js";
import { pauseSchedule, runSchedule } from "../schedule_acts.js";
import { ago, capital, count, duration, moment } from "../format.js";

const load = ({ id }, signal) => get(`schedules/${encodeURIComponent(id)}`, null, signal);

function tools(s, { session, reload }) {
  return session.can_act && [
    button("Run now", async () => {
      const id = await runSchedule(s);
      if (id) {
        go(href("jobs", id));
      }
    }, { icon: "play" }),
    button(s.state === "paused" ? "Resume" : "Pause", async () => (await pauseSchedule(s)) && reload(),
      { icon: s.state === "paused" ? "play" : "pause" })];
}

function nextPanel({ next, schedule: s }) {
  return panel(s.state === "paused" ? "Next ticks, if resumed" : "Next ticks", { isFlush: true },
    table("next ticks", [
      { name: "When", class: "main", cell: (n) => moment(n.due_at) },
      { name: "Local time", cell: (n) => h("span.quiet", null, n.local_time) },
      { name: "In", class: "number", cell: (n) => ago(n.due_at) },
    ], next, { rowKey: (n) => n.due_at, empty: empty("No next tick.") }));
}

function firesPanel({ fires }) {
  return panel("Recent ticks", { isFlush: true }, table("last ticks", [
    { name: "Tick", class: "main", cell: (f) => h("span", { title: ago(f.due_at) }, moment(f.due_at)) },
    { name: "Outcome", cell: (f) => mark(f.outcome) },
    { name: "Job", cell: (f) => f.job_id && h("a", { href: href("jobs", f.job_id) }, `#${f.job_id}`) },
    { name: "Its state", cell: (f) => f.job_state && mark(f.job_state) },
    { name: "Late", class: "number", cell: (f) => duration(f.late_s) },
  ], fires, { rowKey: (f) => `${f.due_at} ${f.job_id}`, empty: empty("Never fired.") }));
}

function factsPanel({ schedule: s }) {
  return panel("Facts", {}, facts([
    ["Times", h("code", null, s.cron)], ["Zone", s.zone],
    ["Kind", h("a", { href: href("kinds", s.kind) }, s.kind)],
    ["Queue", h("a", { href: href("queues", s.queue) }, s.queue)], ["Priority", String(s.priority)],
    ["Missed", `${s.missed}${s.missed_window_s ? `, within ${duration(s.missed_window_s)}` : ""}`],
    ["Overlap", s.overlap], ["Jitter", s.jitter_s ? duration(s.jitter_s) : null],
    ["Attempts", s.max_attempts === null ? null : count(s.max_attempts)],
    ["Timeout", s.timeout_s === null ? null : duration(s.timeout_s)], ["Tags", s.tags],
    ["Exclusive key", s.exclusive_key], ["Unique key", s.unique_key], ["Backoff", s.backoff],
    ["Created", moment(s.created_at)], ["Changed", moment(s.updated_at)]]));
}

function draw(data, context) {
  const s = data.schedule;
  return [
    crumbHead("schedules", "Schedules", s.name, { state: s.state, tools: tools(s, context) }),
    h("p", null, capital(cronText(s.cron)), /^every /.test(s.cron) ? "." : ` (${s.zone}).`,
      s.state === "paused" ? " Paused." : ` Next ${ago(s.next_at)}.`),
    s.error && notice("fail", "Its last tick failed.", { detail: s.error }),
    h("div.columns", null,
      h("div.span8.stack", null, nextPanel(data), firesPanel(data)),
      h("div.span4.stack", null, factsPanel(data),
        s.args !== null && s.args !== undefined && panel("Args", {}, json(s.args, "args"))))];
}

export const schedule = { title: (at) => `Schedule ${at.id}`, topics: ["schedulers"], load, draw };
