// SPDX-License-Identifier: Apache-2.0
// The states of jobs, workers, nodes and schedules: text, colour (a token) and shape, so that colour is
// never the only difference.
import { h } from "./dom.js";

// Paths in a box of 16 × 16. `fill`: filled, not stroked.
const SHAPES = {
  ring: { d: "M8 3.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9" },
  dashed: { d: "M8 3.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9", dash: "2.2 2.5" },
  clock: { d: "M8 2.75a5.25 5.25 0 1 0 0 10.5a5.25 5.25 0 1 0 0-10.5M8 5.25V8l2 1.5" },
  play: { d: "M4.5 3v10l8.5-5z", fill: true },
  again: { d: "M12.6 6.2A5 5 0 1 0 13 8.6M12.9 2.9v3.4H9.5" },
  check: { d: "M3.25 8.5l3.25 3.25l6.25-7" },
  slash: { d: "M8 3a5 5 0 1 0 0 10a5 5 0 1 0 0-10M4.6 11.4l6.8-6.8" },
  cross: { d: "M4 4l8 8M12 4l-8 8" },
  bars: { d: "M5.5 3.5v9M10.5 3.5v9" },
  dot: { d: "M8 4a4 4 0 1 0 0 8a4 4 0 1 0 0-8", fill: true },
  half: { d: "M8 3.5a4.5 4.5 0 1 0 0 9zM8 3.5a4.5 4.5 0 1 1 0 9", fill: false },
  alert: { d: "M8 2.5L14 13H2zM8 6.5v3M8 11.2v.3" },
};

const state = (text, colour, shape, says) => ({ text, colour, shape, says });

export const JOB_STATES = {
  waiting: state("waiting", "waiting", "dashed", "waits for other jobs"),
  scheduled: state("scheduled", "scheduled", "clock", "due later"),
  available: state("available", "available", "ring", "due, and waits for a worker"),
  running: state("running", "running", "play", "a worker runs it"),
  retryable: state("retryable", "retryable", "again", "failed, and is tried again later"),
  completed: state("completed", "completed", "check", "ended well"),
  discarded: state("discarded", "discarded", "cross", "failed for good"),
  cancelled: state("cancelled", "cancelled", "slash", "cancelled by someone"),
};

const STATES = {
  ...JOB_STATES,
  failed: state("failed", "bad", "cross"),
  crashed: state("crashed", "bad", "alert"),
  lost: state("lost", "bad", "alert"),
  released: state("released", "waiting", "slash"),
  snoozed: state("snoozed", "scheduled", "clock"),
  ok: state("ok", "good", "check"),
  live: state("live", "good", "dot"),
  active: state("active", "good", "dot"),
  leading: state("leading", "accent", "dot"),
  standby: state("standby", "waiting", "ring"),
  quiet: state("quiet", "warn", "bars"),
  draining: state("draining", "warn", "half"),
  unserved: state("no worker", "warn", "alert", "no live worker serves it"),
  rescued: state("rescued", "waiting", "slash"),
  silent: state("silent", "bad", "alert"),
  failing: state("failing", "bad", "alert"),
  fired: state("fired", "good", "check"),
  skipped: state("skipped", "waiting", "slash"),
  run: state("run by hand", "accent", "play"),
  paused: state("paused", "warn", "bars"),
  stale: state("stale", "bad", "alert"),
  dead: state("dead", "bad", "cross"),
  stopped: state("stopped", "waiting", "slash"),
  voting: state("voting", "good", "check"),
  quarantined: state("quarantined", "warn", "clock"),
  unfit: state("unfit", "bad", "cross", "it cannot be a lock node"),
  unreachable: state("unreachable", "bad", "cross"),
  warn: state("warn", "warn", "alert"),
  fail: state("fail", "bad", "cross"),
};

export function stateOf(name) {
  return STATES[name] ?? state(name ?? "unknown", "waiting", "ring");
}

export function shapePath(name) {
  const s = SHAPES[name];
  return h("path", { d: s.d, class: s.fill ? "filled" : "drawn", "stroke-dasharray": s.dash });
}

export function shape(name, size = 16) {
  return h("svg.shape", { viewBox: "0 0 16 16", width: size, height: size, "aria-hidden": "true" },
    shapePath(name));
}

// Returns the mark of a state: its shape and text. isBare: the text is for screen readers only.
export function mark(name, { text, tag = "span", isBare = false, title } = {}) {
  const s = stateOf(name);
  return h(`${tag}.mark`, { style: { "--c": `var(--${s.colour})` }, title: title ?? s.says },
    shape(s.shape),
    isBare ? h("span.unseen", null, text ?? s.text) : h("span", null, text ?? s.text));
}
