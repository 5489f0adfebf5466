// SPDX-License-Identifier: Apache-2.0
// The path of a job through its states, derived from its timeline.

const FINAL = ["completed", "discarded", "cancelled"];

// Returns {here, passed, spent}: the current state, the states and edges passed, and the seconds spent
// in each state up to `now`.
export function wayOf(job, timeline, after, now = Date.now()) {
  const passed = new Set();
  const spent = {};
  let at = firstState(job, timeline, after);
  let since = Date.parse(timeline[0]?.at ?? job.created_at);
  passed.add(at);
  const enter = (state, time) => {
    spent[at] = (spent[at] ?? 0) + Math.max(0, (time - since) / 1000);
    passed.add(`${at}>${state}`).add(state);
    at = state;
    since = time;
  };
  timeline.forEach((e, i) => step(e, timeline[i + 1], at, (state) => enter(state, Date.parse(e.at))));
  if (at !== job.state) {
    enter(job.state, since);
  }
  if (!FINAL.includes(at)) {
    spent[at] = (spent[at] ?? 0) + Math.max(0, (now - since) / 1000);
  }
  return { here: job.state, passed, spent };
}

function firstState(job, timeline, after) {
  if (after.length > 0 || job.state === "waiting") {
    return "waiting";
  }
  // The time when it was due is known for the last attempt only.
  const next = timeline.find((e) => e.event === "due" || e.event === "started");
  const isLater = next ? next.event === "due" && next.after_s > 1 : job.state === "scheduled";
  return isLater ? "scheduled" : "available";
}

function step({ event, at: time }, next, at, enter) {
  if (event === "due" || event === "retried") {
    if (at !== "available" && at !== "running") {
      enter("available", time);
    }
  } else if (event === "started") {
    if (at !== "available" && at !== "running") {
      enter("available", time);
    }
    if (at !== "running") {
      enter("running", time);
    }
  } else if (FINAL.includes(event)) {
    enter(event, time);
  } else if (at === "running" && !FINAL.includes(next?.event)) {
    enter("retryable", time); // an attempt ended, but not the job
  }
}
