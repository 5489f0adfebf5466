// SPDX-License-Identifier: Apache-2.0
import { h } from "../dom.js";
import { get } from "../api.js";
import { go, href } from "../route.js";
import { mark } from "../state.js";
import { button } from "../ui/field.js";
import { panel } from "../ui/panel.js";
import { table } from "../ui/table.js";
import { empty } from "../ui/notice.js";
import { cronText } from "../cron.js";
import { pauseSchedule, runSchedule } from "../schedule_acts.js";
import { ago, capital, moment } from "../format.js";

const load = (context, signal) => get("schedules", null, signal);

const when = (text) => text && h("span", { title: moment(text) }, ago(text));

function acts(s, reload) {
  return h("div.row.end", null,
    button("Run now", async () => {
      const id = await runSchedule(s);
      if (id) {
        go(href("jobs", id));
      }
    }, { class: "slim" }),
    button(s.state === "paused" ? "Resume" : "Pause", async () => (await pauseSchedule(s)) && reload(),
      { class: "slim", icon: s.state === "paused" ? "play" : "pause" }));
}

function draw(data, { session, reload }) {
  const columns = [
    { name: "Schedule", class: "main", cell: (s) => h("a", { href: href("schedules", s.name) }, s.name) },
    { name: "State", cell: (s) => mark(s.state, { title: s.error }) },
    { name: "Runs", class: "fill", cell: (s) => [h("div", { title: s.cron }, capital(cronText(s.cron)),
      !/^every /.test(s.cron) && h("span.quiet", null, ` ${s.zone}`)),
    s.error && h("div.clip.quiet", { title: s.error }, s.error)] },
    { name: "Kind", cell: (s) => h("a.quiet", { href: href("kinds", s.kind) }, s.kind) },
    { name: "Next", class: "number", cell: (s) => (s.state === "paused" ? "–" : when(s.next_at)) },
    { name: "Last fired", class: "number", cell: (s) => when(s.fired_at) ?? "never" },
    session.can_act && { name: "", label: "acts", class: "acts", cell: (s) => acts(s, reload) },
  ].filter(Boolean);
  return [h("div.page-head", null, h("h1", null, "Schedules")),
    panel(null, { isFlush: true }, table("schedules", columns, data.schedules, { rowKey: (s) => s.name,
      empty: empty("No schedules.", "Create one: claimctl schedules set NAME KIND '30 2 * * *'") }))];
}

export const schedules = { title: () => "Schedules", topics: ["schedulers"], load, draw };
