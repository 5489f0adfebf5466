// SPDX-License-Identifier: Apache-2.0
// Actions on queues and kinds: pause, resume, limits, weight.
import { h } from "./dom.js";
import { act } from "./api.js";
import { actNow } from "./acts.js";
import { openDialog, confirmAct } from "./ui/dialog.js";
import { button, textField } from "./ui/field.js";
import { toast } from "./ui/notice.js";
import { count, plural } from "./format.js";

const path = (what, name, verb) => `${what}/${encodeURIComponent(name)}/${verb}`;

// Resolves with true if something was done.
export async function pauseQueue(q) {
  if (q.paused) {
    return actNow("POST", path("queues", q.queue, "resume"), {}, `Queue ${q.queue} resumed.`);
  }
  const isWanted = await confirmAct({ title: `Pause queue ${q.queue}`, verb: "Pause",
    preview: async () => ({ text: `${count(q.available, q.estimated)} due jobs will wait.`,
      detail: `${plural(q.running, "running job")} will finish as usual.` }) });
  return isWanted && actNow("POST", path("queues", q.queue, "pause"), {}, `Queue ${q.queue} paused.`);
}

export async function pauseKind(k) {
  if (k.paused) {
    return actNow("POST", path("kinds", k.kind, "resume"), {}, `Kind ${k.kind} resumed.`);
  }
  const isWanted = await confirmAct({ title: `Pause kind ${k.kind}`, verb: "Pause",
    preview: async () => ({ text: `No job of kind ${k.kind} will start, in any queue.`,
      detail: "Running jobs will finish as usual." }) });
  return isWanted && actNow("POST", path("kinds", k.kind, "pause"), {}, `Kind ${k.kind} paused.`);
}

const rateText = (perSecond) => {
  if (perSecond === null || perSecond === undefined) {
    return "";
  }
  const [n, unit] = [[1, "s"], [60, "m"], [3600, "h"]].find(([k]) =>
    Number.isInteger(Math.round(perSecond * k * 1000) / 1000)) ?? [3600, "h"];
  return `${Math.round(perSecond * n)}/${unit}`;
};

const FIELDS = [
  ["running", "Running at most", "no limit", (l) => l.max_running],
  ["rate", "Starts, such as 50/s or 600/m", "no limit", (l) => rateText(l.starts_per_s)],
  ["max_open", "Open jobs at most", "no limit", (l) => l.max_open],
  ["weight", "Weight, 1 to 100", "1", (l) => l.weight],
];

// Edits the limits and the weight of a queue; an empty field means none. Resolves with true if
// something was done.
export function editLimits(limits) {
  const before = Object.fromEntries(FIELDS.map(([name, , , of]) => [name, String(of(limits) ?? "")]));
  const now = { ...before };
  let wrong = null;
  const save = async () => {
    const changed = FIELDS.map(([name]) => name).filter((name) => now[name] !== before[name]);
    const value = (name) => (now[name] === "" ? "none"
      : name === "rate" ? now[name] : Number(now[name]));
    const limitsChanged = changed.filter((name) => name !== "weight");
    if (limitsChanged.length > 0) {
      await act("POST", path("queues", limits.name, "limit"),
        Object.fromEntries(limitsChanged.map((name) => [name, value(name)])));
    }
    if (changed.includes("weight")) {
      await act("POST", path("queues", limits.name, "weight"), { weight: value("weight") });
    }
    if (changed.length > 0) {
      toast("ok", `Limits of queue ${limits.name} saved.`);
    }
  };
  return openDialog((close, redraw) => {
    const submit = async (e) => {
      e.preventDefault();
      try {
        await save();
        close(true);
      } catch (error) {
        wrong = [error.message, error.hint].filter(Boolean).join(" ");
        redraw();
      }
    };
    return h("form.dialog", { onsubmit: submit }, h("h2", null, `Limits of queue ${limits.name}`),
      FIELDS.map(([name, label, placeholder]) => textField(label, now[name],
        { placeholder, oninput: (e) => { now[name] = e.target.value.trim(); } })),
      wrong && h("p.wrong", { role: "alert" }, wrong),
      h("footer", null, button("Back", () => close(), { class: "plain" }),
        h("button.button.primary", { type: "submit" }, "Save")));
  }, { label: `limits of queue ${limits.name}` });
}
