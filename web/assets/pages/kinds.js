// SPDX-License-Identifier: Apache-2.0
import { h } from "../dom.js";
import { get } from "../api.js";
import { href } from "../route.js";
import { mark } from "../state.js";
import { button } from "../ui/field.js";
import { panel } from "../ui/panel.js";
import { table } from "../ui/table.js";
import { empty } from "../ui/notice.js";
import { pauseKind } from "../queue_acts.js";
import { count, duration, percent } from "../format.js";

const load = (context, signal) => get("kinds", null, signal);

const FAILED_MANY = 5; // percent
const FOOTER = "p50, p95: how long runs take, in the last hour or two. Failed: the share of the runs of " +
  "jobs that ended in the last hour.";

const failed = ({ failed_percent: p }) => (p !== null && p >= FAILED_MANY
  ? mark("warn", { text: percent(p / 100) }) : percent(p === null ? null : p / 100));

function draw(data, { session, reload }) {
  const isSet = data.kinds.some((k) => k.set_by_hand);
  const columns = [
    { name: "Kind", class: "main", cell: (k) => h("a", { href: href("kinds", k.kind) }, k.kind) },
    { name: "State", cell: (k) => mark(k.paused ? "paused" : k.workers > 0 ? "active" : "unserved") },
    { name: "Plugin", class: "fill", cell: (k) => k.plugin && h("div.clip.quiet",
      { title: `${k.plugin} ${k.version ?? ""}` }, `${k.plugin} ${k.version ?? ""}`) },
    { name: "Workers", class: "number", cell: (k) => count(k.workers) },
    { name: "p50", class: "number", cell: (k) => duration(k.p50_s) },
    { name: "p95", class: "number", cell: (k) => duration(k.p95_s) },
    { name: "Failed", class: "number", cell: failed },
    { name: "Timeout", class: "number", cell: (k) => duration(k.timeout_s) },
    { name: "Attempts", class: "number", cell: (k) => count(k.max_attempts) },
    isSet && { name: "Overridden", cell: (k) => k.set_by_hand && h("span.quiet", null, k.set_by_hand) },
    session.can_act && { name: "", label: "acts", class: "acts", cell: (k) =>
      button(k.paused ? "Resume" : "Pause", async () => (await pauseKind(k)) && reload(),
        { class: "slim", icon: k.paused ? "play" : "pause" }) },
  ].filter(Boolean);
  return [h("div.page-head", null, h("h1", null, "Kinds")),
    panel(null, { isFlush: true, footer: FOOTER }, table("kinds", columns, data.kinds, { rowKey: (k) => k.kind,
      empty: empty("No kinds yet.", "A worker announces its kinds when it starts.") }))];
}

export const kinds = { title: () => "Kinds", topics: ["workers"], load, draw };
