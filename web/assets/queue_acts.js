// SPDX-License-Identifier: Apache-2.0
// Actions on queues, kinds and keys: pause, resume, limits, weight.
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

const QUEUE_FIELDS = [
  ["running", "Running at most", "no limit", (l) => l.max_running],
  ["rate", "Starts, such as 50/s or 600/m", "no limit", (l) => rateText(l.starts_per_s)],
  ["max_open", "Open jobs at most", "no limit", (l) => l.max_open],
  ["weight", "Weight, 1 to 100", "1", (l) => l.weight],
];
const KEY_FIELDS = [
  ["running", "Running at most", "1, or as a pattern says", (l) => l.max_running],
  ["rate", "Starts, such as 50/s or 600/m", "no limit", (l) => rateText(l.starts_per_s)],
];

const textsOf = (fields, limits) =>
  Object.fromEntries(fields.map(([name, , , of]) => [name, String(of(limits) ?? "")]));

// The fields that were changed, as the body of a request; an empty field means none.
function changes(before, now) {
  const value = (name) => (now[name] === "" ? "none" : name === "rate" ? now[name] : Number(now[name]));
  return Object.fromEntries(Object.keys(before).filter((name) => now[name] !== before[name])
    .map((name) => [name, value(name)]));
}

// A form of texts in `now`. Resolves with true if save() was called and did not fail.
function editForm(title, fields, now, save) {
  let wrong = null;
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
    return h("form.dialog", { onsubmit: submit }, h("h2", null, title),
      fields.map(([name, label, placeholder]) => textField(label, now[name],
        { placeholder, oninput: (e) => { now[name] = e.target.value.trim(); } })),
      wrong && h("p.wrong", { role: "alert" }, wrong),
      h("footer", null, button("Back", () => close(), { class: "plain" }),
        h("button.button.primary", { type: "submit" }, "Save")));
  }, { label: title });
}

// Edits the limits and the weight of a queue. Resolves with true if something was done.
export function editLimits(limits) {
  const before = textsOf(QUEUE_FIELDS, limits);
  const now = { ...before };
  return editForm(`Limits of queue ${limits.name}`, QUEUE_FIELDS, now, async () => {
    const { weight, ...others } = changes(before, now);
    if (Object.keys(others).length > 0) {
      await act("POST", path("queues", limits.name, "limit"), others);
    }
    if (weight !== undefined) {
      await act("POST", path("queues", limits.name, "weight"), { weight });
    }
    toast("ok", `Limits of queue ${limits.name} saved.`);
  });
}

// Edits the limits of a key or pattern; without one, asks for it, too. What a pattern or the default
// says is not shown as if it were set for the key. Resolves with true if something was done.
export function editKey(k) {
  const isOwn = k && !k.pattern;
  const before = textsOf(KEY_FIELDS, isOwn ? { ...k, max_running: k.max_running === 1 ? null
    : k.max_running } : {});
  const now = { key: "", ...before };
  const ask = ["key", "Key, or a pattern such as customer:*", "customer:7"];
  const title = k ? `Limits of key ${k.key}` : "Limit a key";
  return editForm(title, k ? KEY_FIELDS : [ask, ...KEY_FIELDS], now, async () => {
    const changed = changes(before, now);
    if (!k && (now.key === "" || Object.keys(changed).length === 0)) {
      throw new Error("Give a key and a limit.");
    }
    if (Object.keys(changed).length > 0) {
      await act("POST", path("keys", k?.key ?? now.key, "limit"), changed);
      toast("ok", `Limits of key ${k?.key ?? now.key} saved.`);
    }
  });
}

export async function removeKeyLimits(k) {
  const isPattern = k.key.endsWith("*");
  const isWanted = await confirmAct({ title: `Remove the limits of ${k.key}`, verb: "Remove",
    preview: async () => ({ text: isPattern ? "Its keys will have no limits but their own."
      : "One job with this key will run at a time, unless a pattern says otherwise.",
    detail: "Running jobs will finish as usual." }) });
  return isWanted && actNow("POST", path("keys", k.key, "limit"), { running: "none", rate: "none" },
    `Limits of key ${k.key} removed.`);
}
