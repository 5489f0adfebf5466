// SPDX-License-Identifier: Apache-2.0
// Actions on jobs: their names, the states that allow them, and the question that comes first.
import { h } from "./dom.js";
import { act } from "./api.js";
import { mark } from "./state.js";
import { confirmAct } from "./ui/dialog.js";
import { toast } from "./ui/notice.js";
import { count, plural } from "./format.js";

const OPEN = ["waiting", "scheduled", "available", "retryable"];
const ENDED = ["completed", "discarded", "cancelled"];

export const JOB_ACTS = {
  retry: { text: "Retry", icon: "retry", will: "run again", done: "will run again",
    states: ["discarded", "cancelled", "retryable", "scheduled"] },
  cancel: { text: "Cancel", icon: "cancel", will: "be cancelled", done: "cancelled",
    states: [...OPEN, "running"], isDanger: true },
  delete: { text: "Delete", icon: "delete", will: "be deleted, with their history",
    done: "deleted", states: ENDED, isDanger: true },
};

const BULK_MAX = 10000;
const IDS_MAX = 1000;

function countsByState(jobs) {
  const counts = new Map();
  jobs.forEach((j) => counts.set(j.state, (counts.get(j.state) ?? 0) + 1));
  return h("div.row.wide", null, [...counts].map(([state, n]) =>
    mark(state, { text: `${count(n)} ${state}` })));
}

function preview(name, n, jobs, isPart) {
  const a = JOB_ACTS[name];
  const unfit = jobs.filter((j) => !a.states.includes(j.state)).length;
  return { isEmpty: n === 0, verb: `${a.text} ${plural(n, "job")}`,
    text: n === 0 ? "No jobs match any more." : `${plural(n, "job")} will ${a.will}.`,
    detail: unfit > 0 ? `${plural(unfit, "job")} ${isPart ? "of the first 100 " : ""}` +
      `cannot be changed in ${unfit === 1 ? "its" : "their"} state.` : null,
    rows: jobs.length > 0 && countsByState(jobs) };
}

// Acts on the given jobs. Resolves with true if something may have changed.
export async function actOnJobs(name, jobs) {
  const a = JOB_ACTS[name];
  const title = jobs.length === 1 ? `${a.text} job ${jobs[0].id}` : `${a.text} jobs`;
  const isWanted = await confirmAct({ title, verb: a.text, isDanger: a.isDanger,
    preview: async () => preview(name, jobs.length, jobs, false) });
  if (!isWanted) {
    return false;
  }
  return told(a, async () => {
    const results = [];
    for (let i = 0; i < jobs.length; i += IDS_MAX) {
      const ids = jobs.slice(i, i + IDS_MAX).map((j) => j.id);
      results.push(...(await act("POST", "jobs/bulk", { act: name, ids })).jobs);
    }
    const failed = results.filter((r) => r.error);
    return { done: results.length - failed.length, failed };
  });
}

// Acts on all jobs that match a filter, once the server has counted them.
export async function actOnFilter(name, filter) {
  const a = JOB_ACTS[name];
  const isWanted = await confirmAct({ title: `${a.text} all that match`, verb: a.text,
    isDanger: a.isDanger, preview: async () => {
      const { jobs, summary } = await act("POST", "jobs/bulk",
        { act: name, filter, dry_run: true, limit: BULK_MAX });
      const p = preview(name, summary.matched, jobs, summary.matched > jobs.length);
      return summary.is_cut ? { ...p, text: `At least ${p.text}` } : p;
    } });
  return isWanted && told(a, () => repeat(name, filter));
}

// The server stops at its limits; the same request then continues.
async function repeat(name, filter) {
  const all = { done: 0, failed: [] };
  for (;;) {
    const { failed, summary } = await act("POST", "jobs/bulk",
      { act: name, filter, dry_run: false, limit: BULK_MAX });
    all.done += summary.done;
    all.failed.push(...failed);
    if (!summary.is_cut || summary.done === 0) {
      return all;
    }
  }
}

async function told(a, run) {
  try {
    const { done, failed } = await run();
    if (failed.length === 0) {
      toast("ok", `${plural(done, "job")} ${a.done}.`);
    } else {
      toast("warn", `${plural(done, "job")} ${a.done}, ${count(failed.length)} refused.`,
        `${failed[0].id}: ${failed[0].error}`);
    }
    return true;
  } catch (error) {
    tellFailure(error);
    return true;
  }
}

export function tellFailure(error) {
  const unknown = error.code === "unknown"
    ? "The connection was lost, so it may or may not have happened. Check before you try again." : null;
  toast("fail", unknown ?? error.message, error.hint);
}

// Acts without a question, such as to resume a queue. Resolves with true on success.
export async function actNow(method, path, body, done) {
  try {
    await act(method, path, body);
    toast("ok", done);
    return true;
  } catch (error) {
    tellFailure(error);
    return false;
  }
}
