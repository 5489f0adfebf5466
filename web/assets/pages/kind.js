// SPDX-License-Identifier: Apache-2.0
import { h } from "../dom.js";
import { get, getJobs } from "../api.js";
import { href } from "../route.js";
import { button } from "../ui/field.js";
import { crumbHead } from "../ui/crumb.js";
import { facts, figures, json, panel } from "../ui/panel.js";
import { table } from "../ui/table.js";
import { jobColumns } from "../ui/job_list.js";
import { empty } from "../ui/notice.js";
import { pauseKind } from "../queue_acts.js";
import { ago, count, decimal, duration, percent, plural } from "../format.js";

const ERRORS_SHOWN = 8;

async function load({ id }, signal) {
  const [kind, failed, { kinds }] = await Promise.all([
    get(`kinds/${encodeURIComponent(id)}`, null, signal),
    getJobs({ kind: id, state: "discarded,retryable", limit: ERRORS_SHOWN }, signal),
    get("kinds", null, signal)]);
  const share = kinds.find((k) => k.kind === id)?.failed_percent ?? null;
  return { ...kind, failed: failed.jobs, share: share === null ? null : share / 100 };
}

function settings({ kind: k, retention }) {
  return panel("Settings", {}, facts([
    ["Attempts", `at most ${count(k.max_attempts)}`], ["Crashes", `at most ${count(k.max_crashes)}`],
    ["Timeout", duration(k.timeout_s)], ["Grace", k.grace_s === null ? null : duration(k.grace_s)],
    ["Backoff", k.backoff ?? "default"], ["Log kept", k.keep_log],
    ["At most once", k.at_most_once ? "yes" : null],
    ["Running", k.max_running === null ? null : `at most ${count(k.max_running)}`],
    ["Starts", k.starts_per_s === null ? null : `${decimal(k.starts_per_s)} /s`],
    ["Overridden", k.set_by_hand],
    ["Paused", k.paused ? `${ago(k.paused_at)}${k.paused_by ? ` by ${k.paused_by}` : ""}` : null],
    ["Kept", retention.length === 0 ? "default"
      : retention.map((r) => `${r.state ?? "all"} ${count(r.days)} d`).join(", ")]]));
}

function errors({ failed }) {
  const { job, state, error, when } = jobColumns;
  return panel("Newest errors", { isFlush: true, tools: failed.length > 0 && h("a.small",
    { href: href("jobs", null, { kind: failed[0].kind, state: "discarded,retryable" }) }, "All") },
  table("newest errors", [job, state, error, when], failed, { rowKey: (j) => j.id,
    empty: empty("No failed jobs.", "None is retryable or discarded.") }));
}

function draw(data, { session, reload }) {
  const k = data.kind;
  return [
    crumbHead("kinds", "Kinds", k.kind, { state: k.paused ? "paused" : k.workers > 0 ? "active" : "unserved",
      tools: [h("a.button", { href: href("jobs", null, { kind: k.kind }) }, "Show jobs"),
        session.can_act && button(k.paused ? "Resume" : "Pause", async () =>
          (await pauseKind(k)) && reload(), { icon: k.paused ? "play" : "pause" })] }),
    figures([
      { name: "Duration, p50", value: duration(k.p50_s),
        note: k.runs === null ? "not measured yet"
          : `${plural(k.runs, "run")}, the first ${ago(k.since_at)}` },
      { name: "Duration, p95", value: duration(k.p95_s), note: `mean ${duration(k.mean_s)}` },
      { name: "Failed", value: percent(data.share), note: "of the runs of jobs that ended in the last hour" },
      { name: "Workers", value: count(k.workers),
        note: `${k.plugin ?? ""} ${k.version ?? ""}` }]),
    h("div.columns", null, h("div.span8.stack", null, errors(data)),
      h("div.span4.stack", null, settings(data),
        k.of_plugin && Object.keys(k.of_plugin).length > 0 &&
          panel("Plugin defaults", {}, json(k.of_plugin, "plugin defaults"))))];
}

export const kind = { title: (at) => `Kind ${at.id}`, topics: ["jobs"], load, draw };
