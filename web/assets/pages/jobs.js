// SPDX-License-Identifier: Apache-2.0
// Jobs: a search box, states with counts, filters in the URL, and actions on rows or on all matches.
import { h } from "../dom.js";
import { get, getIfAny, getJobs } from "../api.js";
import { go, href, replace } from "../route.js";
import { JOB_STATES } from "../state.js";
import { button, iconButton, pills } from "../ui/field.js";
import { searchBox } from "../ui/search.js";
import { table } from "../ui/table.js";
import { panel } from "../ui/panel.js";
import { empty, notice } from "../ui/notice.js";
import { jobColumns } from "../ui/job_list.js";
import { FILTERS, filtersOf, meanings, valuesOf, withFilter, withoutFilter } from "../find.js";
import { JOB_ACTS, actOnFilter, actOnJobs } from "../acts.js";
import { count, plural } from "../format.js";

const PAGE = 50;
const SEARCHED_MAX = 10000;
const COLUMNS = "id,kind,queue,state,attempt,created_at,ready_at,attempted_at,finalized_at,error";

function query(params) {
  const filters = Object.fromEntries(filtersOf(params));
  const after = params.get("after");
  return { ...filters, ...(after && { after }), limit: params.get("limit") ?? PAGE, columns: COLUMNS };
}

async function load({ params, live, state }, signal) {
  const one = (path, name) => name && getIfAny(`${path}/${encodeURIComponent(name)}`, null, signal);
  const [list, counters, batch, map] = await Promise.all([getJobs(query(params), signal),
    (live.mode !== "off" && live.counters) || get("overview", null, signal),
    one("batches", params.get("batch")), one("maps", params.get("map"))]);
  live.counters = counters;
  const shown = new Set(list.jobs.map((j) => j.id));
  state.chosen = new Set([...state.chosen ?? []].filter((id) => shown.has(id)));
  return { ...list, batch: batch?.batch, map: map?.map };
}

const toFilters = (params) => go(href("jobs", null, params));

function statePills(params, counters) {
  const on = valuesOf(params, "state");
  const total = (name) => {
    const rows = counters?.queues.filter((q) => q[name] !== undefined) ?? [];
    return rows.length === 0 ? undefined : rows.reduce((n, q) => n + (q[name] ?? 0), 0);
  };
  return pills("states", Object.keys(JOB_STATES).map((name) => ({ name, isOn: on.includes(name),
    total: total(name), isEstimate: counters?.queues.some((q) => q.estimated && q[name] > 0) })),
  (name) => toFilters(on.includes(name) ? withoutFilter(params, "state", name)
    : withFilter(params, "state", name)));
}

function chips(params) {
  const list = filtersOf(params).filter(([name]) => name !== "state");
  return list.length > 0 && h("div.pills", { "aria-label": "filters", role: "group" },
    list.map(([name, value]) => h("button.pill.filter", { key: name, type: "button",
      "aria-label": `remove the filter ${FILTERS[name]}: ${value}`,
      onclick: () => toFilters(withoutFilter(params, name)) },
    h("span.quiet", null, FILTERS[name]), h("span.clip", null, value), h("span", null, "×"))),
    button("Clear", () => toFilters({}), { class: "plain slim" }));
}

function finder({ params, session, live, state, redraw }) {
  const names = (name) => [...new Set((live.counters?.queues ?? []).flatMap((q) =>
    (q[name] ?? "").split(",")))].filter(Boolean);
  state.search ??= {};
  return searchBox({ state: state.search, redraw, placeholder: session.shows_args ? "Find by id, kind, queue, error, args…"
      : "Find by id, kind, queue, error, tag…",
    suggest: (text) => meanings(text, { kinds: names("kinds"), queues: names("queue"),
      hasArgs: session.shows_args }),
    take: (s) => (s.job ? go(href("jobs", s.job)) : toFilters(withFilter(params, s.name, s.value))) });
}

function acts(run) {
  return Object.entries(JOB_ACTS).map(([name, a]) =>
    button(a.text, () => run(name), { icon: a.icon, class: a.isDanger ? "danger" : "" }));
}

function bar(data, context) {
  const { state, session, params, reload, redraw } = context;
  if (!session.can_act || state.chosen.size === 0) {
    return null;
  }
  const isWhole = state.chosen.size === data.jobs.length;
  const hasFilter = filtersOf(params).length > 0 && !params.has("q"); // a search ends early
  const jobs = data.jobs.filter((j) => state.chosen.has(j.id));
  const after = (isDone) => {
    if (isDone) {
      state.chosen = new Set();
      state.isAll = false;
      reload();
    }
  };
  const run = async (name) => after(await (state.isAll
    ? actOnFilter(name, Object.fromEntries(filtersOf(params))) : actOnJobs(name, jobs)));
  return h("div.bar", { role: "region", "aria-label": "actions for the selected jobs" },
    h("strong", null, state.isAll ? "All that match" : `${plural(jobs.length, "job")} selected`),
    isWhole && !state.isAll && hasFilter && data.page.next_after !== null &&
      button("Select all that match", () => {
        state.isAll = true;
        redraw();
      }, { class: "plain slim" }),
    h("div.row.push", null, acts(run), iconButton("close", "select none", () => {
      state.chosen = new Set();
      state.isAll = false;
      redraw();
    })));
}

function batchNotice(b) {
  const kind = b.failed > 0 ? "warn" : b.open > 0 ? "running" : "ok";
  return notice(kind, `Batch ${b.id}${b.name ? ` ${b.name}` : ""}: ${b.state}`, {
    detail: `${plural(b.jobs, "job")}: ${count(b.open)} open, ${count(b.succeeded)} succeeded, ` +
      `${count(b.failed)} failed, ${count(b.cancelled)} cancelled.`,
    tools: b.follow_up_job && h("a.button.slim", { href: href("jobs", b.follow_up_job) }, "Follow-up") });
}

function mapNotice(m) {
  const kind = m.failed > 0 ? "warn" : m.open > 0 ? "running" : "ok";
  return notice(kind, `Map ${m.name}: ${m.state}`, {
    detail: `${plural(m.rows, "row")}: ${count(m.open)} open, ${count(m.running)} of them running, ` +
      `${count(m.completed)} completed, ${count(m.failed)} failed, ${count(m.cancelled)} cancelled.` });
}

function list(data, { session, state, params, redraw }) {
  const choose = (change) => {
    state.isAll = false;
    change();
    redraw();
  };
  return table("jobs", Object.values(jobColumns), data.jobs, {
    rowKey: (j) => j.id,
    chosen: session.can_act ? state.chosen : undefined,
    onchoose: (id, isOn) => choose(() => (isOn ? state.chosen.add(id) : state.chosen.delete(id))),
    onchooseAll: (isOn) => choose(() => {
      state.chosen = new Set(isOn ? data.jobs.map((j) => j.id) : []);
    }),
    empty: empty("No matching jobs.", filtersOf(params).length > 0
      ? "Remove a filter, or look further back." : "Enqueue your first job.",
    filtersOf(params).length > 0 && button("Clear filters", () => toFilters({}))),
  });
}

// What a search in args has read, for it ends early.
function searchNotice({ page }, params) {
  if (!params.has("q")) {
    return null;
  }
  const what = `for “${params.get("q")}” in their args`;
  const from = params.has("after") ? ", from an older one on" : "";
  if (!page.is_cut) {
    return h("p.quiet", { role: "status" },
      `${plural(page.searched, "job")} ${page.searched === 1 ? "was" : "were"} searched ${what}${from}.`);
  }
  const after = { ...Object.fromEntries(params), after: page.next_after };
  return notice("warn", page.searched >= SEARCHED_MAX
    ? `Only the newest ${count(page.searched)} jobs were searched${from}.`
    : `The search was stopped after 2 s, at ${plural(page.searched, "job")}${from}.`, {
    detail: `They were searched ${what}. More filters, such as a kind or a state, choose other jobs.`,
    tools: h("a.button.slim", { href: href("jobs", null, after) }, "Search older") });
}

// The server walks running jobs from the oldest up: a backlog is younger than they are.
function isOldestFirst(params) {
  return params.get("state") === "running" && !params.has("q");
}

function pager(data, params) {
  const next = data.page.next_after;
  const isCut = next !== null && !params.has("q") && data.jobs.length < Number(params.get("limit") ?? PAGE);
  const to = (after) => href("jobs", null, { ...Object.fromEntries(params), after });
  const [first, more] = isOldestFirst(params) ? ["Oldest", "Newer"] : ["Newest", "Older"];
  return [
    isCut && notice("warn", "The search was stopped after 1 s.",
      { tools: h("a.button.slim", { href: to(next) }, "Continue") }),
    h("nav.row", { "aria-label": "pages of jobs" },
      params.has("after") && h("a.button", { href: href("jobs", null, withoutFilter(params, "after")) },
        first),
      next !== null && h("a.button.push", { href: to(next), rel: "next" }, more))];
}

// Also shown when the list cannot be loaded, so that a refused filter can be removed.
function drawHead(context) {
  return [h("div.page-head", null, h("h1", null, "Jobs"), finder(context)),
    statePills(context.params, context.live.counters), chips(context.params)];
}

function draw(data, context) {
  const { params, state } = context;
  if (params.has("find")) { // the key / was pressed on another page
    replace(href("jobs", null, withoutFilter(params, "find")));
    setTimeout(() => document.querySelector("main input[type=search]")?.focus());
  }
  state.chosen ??= new Set();
  return [
    drawHead(context),
    data.batch && batchNotice(data.batch), data.map && mapNotice(data.map), searchNotice(data, params),
    panel(null, { isFlush: true }, list(data, context)),
    pager(data, params), bar(data, context)];
}

export const jobs = { title: () => "Jobs", topics: ["jobs"], load, draw, drawHead };
