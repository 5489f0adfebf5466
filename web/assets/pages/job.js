// SPDX-License-Identifier: Apache-2.0
// Job: its path through the states, why it waits, attempts with logs, args, and what can be done.
import { h } from "../dom.js";
import { get } from "../api.js";
import { go, href } from "../route.js";
import { mark } from "../state.js";
import { button } from "../ui/field.js";
import { meter, timeline } from "../ui/chart.js";
import { flow } from "../ui/flow.js";
import { facts, growingLog, json, log, panel } from "../ui/panel.js";
import { table } from "../ui/table.js";
import { notice } from "../ui/notice.js";
import { JOB_ACTS, actOnJobs } from "../acts.js";
import { copyJob, editJob } from "../job_edit.js";
import { wayOf } from "../way.js";
import { ago, capital, clock, count, duration, moment, plural } from "../format.js";

const EDITABLE = ["waiting", "scheduled", "available", "retryable"];
const FINAL = ["completed", "discarded", "cancelled"];

const load = ({ id }, signal) => get(`jobs/${encodeURIComponent(id)}`, null, signal);

function tools(data, { session, reload }) {
  if (!session.can_act) {
    return null;
  }
  const { job } = data;
  const run = async (name) => {
    if (await actOnJobs(name, [job])) {
      if (name === "delete") {
        go(href("jobs"));
      } else {
        reload();
      }
    }
  };
  return h("div.row.push", null,
    EDITABLE.includes(job.state) && button("Edit", async () => (await editJob(job)) && reload(),
      { icon: "edit" }),
    button("Enqueue a copy", async () => {
      const id = await copyJob(job);
      if (id) {
        go(href("jobs", id));
      }
    }, { icon: "copy" }),
    Object.entries(JOB_ACTS).filter(([, a]) => a.states.includes(job.state)).map(([name, a]) =>
      button(a.text, () => run(name), { icon: a.icon, class: a.isDanger ? "danger" : "" })));
}

function situation({ job }) {
  const kind = { discarded: "fail", retryable: "warn", completed: "completed", running: "running" };
  const text = FINAL.includes(job.state) ? `${job.state} ${ago(job.finalized_at)}` : job.situation;
  return notice(kind[job.state] ?? job.state, capital(text ?? job.state),
    { detail: job.error && [!FINAL.includes(job.state) && "The last attempt failed: ",
      h("span.mono", null, job.error)] });
}

function progress({ job }) {
  if (job.state !== "running" || (job.progress === null && job.doing === null)) {
    return null;
  }
  return panel("Progress", {}, h("div.stack", null,
    job.progress !== null && meter(job.progress / 100, `${job.progress} %`, { colour: "running" }),
    job.doing && h("span.quiet", null, job.doing)));
}

function liveLog({ job }) {
  return job.log && panel("Log", { footer: "Its last 4 KiB, at most a second old while it is being written." },
    growingLog(job.log, "log of the running attempt"));
}

function wayPanel({ job, timeline: events, after }) {
  const way = wayOf(job, events, after);
  return panel("States", {}, flow({ label: "the states of this job", here: way.here,
    passed: way.passed, below: (name) => {
      if (FINAL.includes(name)) {
        return name === way.here && job.finalized_at ? ago(job.finalized_at) : "";
      }
      return way.spent[name] === undefined ? "" : duration(way.spent[name]);
    } }));
}

const EVENTS = {
  created: ["available", "Enqueued"], due: ["available", "Due"], edited: ["waiting", "Edited"],
  started: ["running", "Started"], retried: ["retryable", "Retried by hand"],
};

function eventsPanel({ timeline: events }) {
  return panel("Events", {},
    timeline(events.map((e) => {
      const [state, title] = EVENTS[e.event] ??
        [e.event, capital(e.event)];
      const later = `+${duration(e.after_s)} · ${clock(e.at, true)}`;
      return { state, title: e.attempt ? `Attempt ${e.attempt} ${title.toLowerCase()}` : title,
        note: e.host, time: e.after_s === 0 ? moment(e.at) : later,
        hint: moment(e.at, true), detail: e.detail };
    })));
}

function attemptsPanel({ attempts }, { state, redraw }) {
  if (attempts.length === 0) {
    return null;
  }
  state.open ??= new Set([attempts.length - 1]);
  const toggle = (i) => {
    state.open[state.open.has(i) ? "delete" : "add"](i);
    redraw();
  };
  const rows = attempts.map((a, i) => ({ ...a, i }));
  return panel("Unsuccessful attempts", { isFlush: true },
    table("attempts", [
      { name: "Attempt", class: "main", cell: (a) => String(a.attempt) },
      { name: "Outcome", cell: (a) => mark(a.outcome) },
      { name: "Host", cell: (a) => a.host },
      { name: "Ran", class: "number", cell: (a) => duration(a.ran_s) },
      { name: "Fence", class: "number", cell: (a) => count(a.fence) },
      { name: "Error", class: "fill", cell: (a) => h("div.clip.quiet", { title: a.error }, a.error) },
      { name: "", label: "log", class: "acts", cell: (a) => a.log_tail &&
        h("button.button.slim", { type: "button", "aria-expanded": String(state.open.has(a.i)),
          "aria-label": `log of attempt ${a.attempt}`, onclick: () => toggle(a.i) }, "Log") },
    ], rows, { rowKey: (a) => `${a.generation}.${a.attempt}.${a.fence}` }),
    rows.filter((a) => state.open.has(a.i) && a.log_tail).map((a) =>
      h("div.log-of", { key: a.i }, h("h3.quiet.small", null, `Log of attempt ${a.attempt} (tail)`),
        log(a.log_tail, `log of attempt ${a.attempt}`))));
}

function dataPanels({ job }, { session }) {
  const hidden = h("p.quiet", null, "Hidden from readers (web.show_args).");
  return [
    panel("Args", {}, job.args === null && !session.shows_args ? hidden : json(job.args, "args")),
    job.result !== null && job.result !== undefined && panel("Result", {}, json(job.result, "result")),
    job.checkpoint !== null && job.checkpoint !== undefined &&
      panel("Checkpoint", {}, json(job.checkpoint, "checkpoint")),
    job.metadata && panel("Metadata", {}, json(job.metadata, "metadata"))];
}

function factsPanel({ job }) {
  const place = job.host && h("a", { href: href("jobs", null, { worker: job.worker_id ?? job.host,
    state: "running" }) }, `${job.host}${job.pid ? ` · pid ${job.pid}` : ""}`);
  const map = job.unique_key?.match(/^map:([^:]+):/)?.[1];
  return panel("Facts", {}, facts([
    ["Kind", h("a", { href: href("kinds", job.kind) }, job.kind)],
    ["Queue", h("a", { href: href("queues", job.queue) }, job.queue)],
    ["Priority", String(job.priority)],
    ["Attempt", `${job.attempt} of ${job.max_attempts}`],
    ["Crashes", job.crashes ? `${job.crashes} of ${job.max_crashes}` : null],
    ["Worker", place], ["Fence", job.fence === null ? null : count(job.fence)],
    ["Enqueued", moment(job.created_at)], ["Due", job.scheduled_at && moment(job.scheduled_at)],
    ["Ended", job.finalized_at && moment(job.finalized_at)],
    ["Timeout", job.timeout_s === null ? null : duration(job.timeout_s)],
    ["Backoff", job.backoff], ["Exclusive key", job.exclusive_key], ["Second key", job.second_key],
    ["Unique key", job.unique_key], ["Tenant", job.share_key], ["Tags", tags(job.tags)],
    ["Batch", job.batch && h("a", { href: href("jobs", null, { batch: job.batch }) }, `#${job.batch}`)],
    ["Map", map && h("a", { href: href("jobs", null, { map }) }, map)],
    ["Owner", job.owner], ["Version", String(job.version)],
    ["Generation", job.generation ? String(job.generation) : null]]));
}

// {month,"two words"}, as PostgreSQL writes an array, or without the braces.
const tagsOf = (text) => (text.match(/"(?:\\.|[^"\\])*"|[^{},]+/g) ?? []).map((tag) =>
  (tag.startsWith('"') ? tag.slice(1, -1).replace(/\\(.)/g, "$1") : tag));

const tags = (text) => text && tagsOf(text).map((tag, i) =>
  [i > 0 && ", ", h("a", { href: href("jobs", null, { tag }) }, tag)]);

function relatives(title, rows) {
  return rows?.length > 0 && panel(title, { isFlush: true }, table(title, [
    { name: "Job", class: "main", cell: (r) => h("a", { href: href("jobs", r.job) }, r.kind, " ",
      h("span.quiet", null, `#${r.job}`)) },
    { name: "State", cell: (r) => mark(r.state) }], rows, { rowKey: (r) => r.job, isSlim: true }));
}

function editsPanel({ edits }) {
  return edits.length > 0 && panel("Edits", { footer: plural(edits.length, "edit") },
    timeline(edits.map((e) => ({ state: "waiting", title: `Version ${e.version}`,
      note: e.edited_by ? `by ${e.edited_by}` : null, time: ago(e.edited_at), hint: moment(e.edited_at),
      detail: e.after && h("code", null, JSON.stringify(e.before), " → ", JSON.stringify(e.after)) }))));
}

function draw(data, context) {
  const { job } = data;
  return [
    h("div.page-head", null,
      h("h1", null, h("a.back", { href: href("jobs"), "aria-label": "all jobs" }, "Jobs"),
        h("span.quiet", null, " / "), job.kind, " ", h("span.quiet", null, `#${job.id}`)),
      h("span.mark.chip", { style: mark(job.state).props.style }, mark(job.state).children),
      tools(data, context)),
    situation(data), wayPanel(data),
    h("div.columns", null,
      h("div.span8.stack", null, progress(data), liveLog(data), attemptsPanel(data, context),
        dataPanels(data, context)),
      h("div.span4.stack", null, factsPanel(data), relatives("Waits for", data.after),
        relatives("Awaited by", data.awaited_by), eventsPanel(data), editsPanel(data)))];
}

export const job = { title: (at) => `Job ${at.id}`, topics: ["jobs"], load, draw,
  moves: ({ job: { state } }) => state === "running" };
