// SPDX-License-Identifier: Apache-2.0
// Every component in both themes, for visual review.
import { h, render } from "./dom.js";
import { JOB_STATES, mark } from "./state.js";
import { button, iconButton, pills, segments, select, textField } from "./ui/field.js";
import { facts, figures, json, log, panel } from "./ui/panel.js";
import { table } from "./ui/table.js";
import { bars, legend, meter, slots, spark, timeline } from "./ui/chart.js";
import { flow } from "./ui/flow.js";
import { empty, notice } from "./ui/notice.js";
import { icon } from "./icons.js";

const TOKENS = ["ground", "sunken", "surface", "raised", "line", "edge", "ink", "quiet", "accent",
  "accent-tint", ...Object.keys(JOB_STATES), "good", "warn", "bad"];
const SCALE = [["title", "Title 20"], ["head", "Heading 16"], ["strong", "Strong 14"],
  ["text", "Text 14"], ["small", "Small 12"], ["code", "Code 12"]];
const WAVE = Array.from({ length: 45 }, (_, i) => 40 + 22 * Math.sin(i / 4) + (i * 7) % 11);
const nothing = () => {};

const sample = (title, ...body) => h("section.sample", null, h("h2", null, title), body);

const tokens = () => sample("Tokens",
  h("div.swatches", null, TOKENS.map((name) =>
    h("div.small", null, h("i", { style: { "--c": `var(--${name})` } }), name))),
  h("div.panel", null, h("div.body.row.wide", null, h("span", { style: { font: "var(--t-figure)" } },
    "1,204"), SCALE.map(([name, text]) =>
    h("span", { style: { font: `var(--t-${name})` } }, text)))));

const marks = () => sample("1 Mark", h("div.row.wide", null,
  Object.keys(JOB_STATES).map((name) => mark(name))), h("div.row", null,
  ["live", "quiet", "draining", "stale", "dead", "voting", "quarantined", "unreachable", "paused"]
    .map((name) => h("span.mark.chip", { style: mark(name).props.style }, mark(name).children))));

const buttons = () => sample("2 Button", h("div.row", null,
  button("Retry 1,204 jobs", nothing, { class: "primary" }),
  button("Pause", nothing, { icon: "pause" }), button("Delete", nothing, { class: "danger" }),
  button("Drain host", nothing, { class: "primary danger" }),
  button("Cancel", nothing, { class: "plain" }), button("Run now", nothing, { isDisabled: true }),
  button("Slim", nothing, { class: "slim" }), iconButton("moon", "theme", nothing)));

const fields = () => sample("3 Field",
  h("div.row", null, h("label.search", null, icon("search"),
    h("input", { type: "search", placeholder: "Find by id, kind, error…", "aria-label": "search" }),
    h("kbd", null, "/")),
  segments("period", [["15m", "15 min"], ["1h", "1 h"], ["24h", "24 h"]], "1h", nothing)),
  pills("states", Object.keys(JOB_STATES).map((name, i) =>
    ({ name, total: (i * 7919) % 12043, isEstimate: i === 5, isOn: name === "retryable" })), nothing),
  h("div.row.wide", null, select("Queue", [["", "any"], ["mail", "mail"]], "", nothing),
    textField("Rate", "50/x", { wrong: "write a rate as 50/s, 50/m or 50/h" }),
    textField("Running at most", "12"),
    h("label.row", null, h("input", { type: "checkbox", checked: true }), "all that match")));

const panels = () => sample("4 Panel",
  figures([
    { name: "Finished per second", value: "412", unit: "/s", note: "370 k in the last 15 min",
      chart: spark(WAVE, { label: "throughput" }) },
    { name: "Failed", value: "0.3 %", note: "1,110 of 370 k", chart: spark(WAVE.map((v, i) =>
      (i % 9 < 7 ? 2 : v)), { label: "failures", colour: "bad" }) },
    { name: "Wait, p95", value: "84", unit: "ms", note: "oldest due 2.1 s", chart: spark(WAVE.map((v) =>
      90 - v), { label: "wait" }) }]),
  panel("Arguments", { tools: button("Edit", nothing, { icon: "edit", class: "slim" }) },
    json({ to: "anna@example.org", template: 7, urgent: true, note: null, script: "<script>" },
      "arguments")),
  panel("Facts", { footer: "read 2 s ago" }, facts([["Queue", "mail"], ["Worker", "app-3 · pid 4711"],
    ["Fence", "88,213,442"], ["Runs for", "2 m 4 s"]]), log("connected\nsent 120 of 400\n", "log")));

const ROWS = [["88213442", "mail_send", "mail", "running", "2 s", ""],
  ["88213431", "invoice_render", "billing", "retryable", "in 12 s", "connection refused: 10.0.0.7:443"],
  ["88213420", "mail_send", "mail", "completed", "1 m ago", ""],
  ["88213402", "thumbnail_of_a_video", "media", "discarded", "3 m ago",
    "exit 1: ffmpeg: moov atom not found in the input that came from the bucket"]];
const COLUMNS = [
  { name: "Job", class: "main", cell: (r) => h("a.nowrap", { href: "#" }, `${r[1]} `,
    h("span.quiet", null, r[0])) },
  { name: "State", cell: (r) => mark(r[3]) },
  { name: "Queue", cell: (r) => r[2] },
  { name: "Error", class: "fill", cell: (r) => r[5] && h("div.clip.quiet", null, r[5]) },
  { name: "When", class: "number", cell: (r) => h("span.nowrap", null, r[4]) }];

const tables = () => sample("5 Table", panel(null, { isFlush: true },
  table("jobs", COLUMNS, ROWS, { rowKey: (r) => r[0], chosen: new Set(["88213431"]),
    onchoose: nothing, onchooseAll: nothing })));

function charts() {
  const series = [
    { name: "completed", state: "completed", colour: "completed", values: WAVE },
    { name: "discarded", state: "discarded", colour: "discarded", values: WAVE.map((v, i) =>
      (i % 11 === 0 ? 9 : 0)) }];
  const times = WAVE.map((_, i) => `${14 + Math.floor(i / 30)}:${String((i * 2) % 60).padStart(2, "0")}`);
  return sample("6 Chart",
    panel("Finished", { tools: legend(series) },
      bars(series, times, { label: "jobs per 2 min", format: String })),
    panel("Flow", {}, flow({ label: "jobs by state", href: () => "#",
      total: (name) => ({ running: "96", available: "12,043", completed: "370 k" }[name] ?? "0") })),
    panel("One job's way", {}, flow({ label: "states of the job", here: "running",
      below: (name) => ({ available: "for 84 ms", running: "for 2 m 4 s" }[name]),
      passed: new Set(["available", "running", "available>running"]) })),
    panel("Slots and shares", {}, h("div.stack", null, slots(5, 16), meter(0.72, "72 of 100"),
      meter(0.97, "oldest 41 s", { colour: "warn" }))),
    panel("Timeline", {}, timeline([
      { state: "scheduled", title: "Enqueued", note: "by shop", time: "21:04:05.120" },
      { state: "failed", title: "Attempt 1 failed", note: "app-2, 1.2 s", time: "21:04:06.301",
        detail: "connection refused: 10.0.0.7:443" },
      { state: "running", title: "Attempt 2 runs", note: "app-3", time: "21:04:21.330" }])));
}

const notices = () => sample("7 Notice",
  notice("ok", "All is well.", { class: "verdict", detail: "14 checks, read 3 s ago" }),
  notice("warn", "2 jobs of kind 'resize' have no worker.", { detail: "Start a worker with its plugin.",
    tools: button("Show", nothing, { class: "slim" }) }),
  notice("fail", "Cannot reach PostgreSQL.", { tools: iconButton("close", "close", nothing) }),
  panel(null, { isFlush: true }, empty("No matching jobs.", "Remove a filter, or look further back.",
    button("Clear filters", nothing))));

const dialogs = () => sample("8 Dialog", h("dialog", { open: true, "aria-label": "retry" },
  h("div.dialog", null, h("h2", null, "Retry jobs"),
    h("div.preview.stack", null, h("strong", null, "1,204 jobs will run again."),
      h("span.quiet", null, "1,180 discarded, 24 retryable, of kinds mail_send and invoice_render.")),
    h("footer", null, button("Back", nothing, { class: "plain" }),
      button("Retry 1,204 jobs", nothing, { class: "primary" })))));

const theme = (name) => h("section.theme", { class: name, "aria-label": name },
  h("h1", null, name === "light" ? "Components, light" : "Components, dark"),
  tokens(), marks(), buttons(), fields(), panels(), tables(), charts(), notices(), dialogs());

render(document.getElementById("gallery"), theme("light"), theme("dark"));
