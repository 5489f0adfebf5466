// SPDX-License-Identifier: Apache-2.0
// Two dialogs: edit a queued job, and enqueue a copy of a job.
import { h } from "./dom.js";
import { act } from "./api.js";
import { openDialog } from "./ui/dialog.js";
import { button, textField } from "./ui/field.js";
import { toast } from "./ui/notice.js";

const REFUSALS = {
  version_conflict: "Somebody else edited this job in the meantime. Go back to see the new version.",
};

// fields: {args, queue, priority, delay} as texts. Resolves with what save(body) returns.
function jobDialog({ title, verb, fields, save }) {
  const values = { ...fields };
  let wrong = null;
  let isBusy = false;
  return openDialog((close, redraw) => {
    const submit = async (e) => {
      e.preventDefault();
      try {
        isBusy = true;
        wrong = null;
        redraw();
        close(await save(bodyOf(values, fields)));
      } catch (error) {
        wrong = REFUSALS[error.code] ?? [error.message, error.hint].filter(Boolean).join(" ");
      }
      isBusy = false;
      redraw();
    };
    const set = (name) => (e) => { values[name] = e.target.value; };
    return h("form.dialog", { onsubmit: submit }, h("h2", null, title),
      h("label.field", null, h("span", null, "Args (JSON)"),
        h("textarea", { rows: "10", spellcheck: "false", value: values.args, oninput: set("args") })),
      h("div.row.wide", null, textField("Queue", values.queue, { oninput: set("queue") }),
        textField("Priority, 0 first", values.priority, { oninput: set("priority"), type: "number",
          min: "0", max: "9" }),
        textField("Delay from now", values.delay, { oninput: set("delay"), placeholder: "90s, 2h" })),
      wrong && h("p.wrong", { role: "alert" }, wrong),
      h("footer", null, button("Back", () => close(), { class: "plain" }),
        h("button.button.primary", { type: "submit", disabled: isBusy }, verb)));
  }, { label: title, isWide: true });
}

// Returns only what was changed.
function bodyOf(values, before) {
  const body = {};
  if (values.args !== before.args) {
    try {
      body.args = JSON.parse(values.args);
    } catch (error) {
      throw new Error(`The args are not JSON: ${error.message}`);
    }
  }
  if (values.queue !== before.queue) {
    body.queue = values.queue;
  }
  if (values.priority !== before.priority) {
    body.priority = Number(values.priority);
  }
  if (values.delay) {
    body.delay = values.delay;
  }
  return body;
}

const fieldsOf = (job) => ({ args: JSON.stringify(job.args ?? {}, null, 2), queue: job.queue,
  priority: String(job.priority), delay: "" });

export function editJob(job) {
  return jobDialog({ title: `Edit job ${job.id}`, verb: "Save", fields: fieldsOf(job),
    save: async (body) => {
      if (Object.keys(body).length > 0) {
        await act("PATCH", `jobs/${job.id}`, body, job.version);
        toast("ok", `Job ${job.id} saved.`);
      }
      return true;
    } });
}

export function copyJob(job) {
  const fields = fieldsOf(job);
  return jobDialog({ title: `Enqueue a copy of job ${job.id}`, verb: "Enqueue", fields,
    save: async (body) => {
      const made = await act("POST", "jobs", { kind: job.kind, args: job.args ?? {}, queue: job.queue,
        priority: job.priority, ...body });
      toast("ok", `Job ${made.job.id} enqueued.`);
      return made.job.id;
    } });
}
