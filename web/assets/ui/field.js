// SPDX-License-Identifier: Apache-2.0
// Buttons and fields.
import { h } from "../dom.js";
import { icon } from "../icons.js";
import { shape, stateOf } from "../state.js";
import { count } from "../format.js";

export function button(text, onclick, { icon: name, class: kind = "", title, isDisabled } = {}) {
  return h("button.button", { type: "button", class: kind, onclick, title, disabled: isDisabled },
    name && icon(name), text);
}

export function iconButton(name, label, onclick, kind = "plain") {
  return h("button.button.only", { type: "button", class: kind, onclick, title: label,
    "aria-label": label }, icon(name));
}

// A choice among few: [[value, text], …].
export function segments(label, choices, chosen, onchoose) {
  return h("div.segments", { role: "group", "aria-label": label }, choices.map(([value, text]) =>
    h("button", { key: value, type: "button", "aria-pressed": String(value === chosen),
      onclick: () => onchoose(value) }, text)));
}

// Toggles for states: [{name, total, isEstimate, isOn}].
export function pills(label, list, ontoggle) {
  return h("div.pills", { role: "group", "aria-label": label }, list.map((p) => {
    const s = stateOf(p.name);
    return h("button.pill", { key: p.name, type: "button", "aria-pressed": String(p.isOn),
      style: { "--c": `var(--${s.colour})` }, title: s.says, onclick: () => ontoggle(p.name) },
    shape(s.shape), s.text,
    p.total !== undefined && h("span.quiet", null, count(p.total, p.isEstimate)));
  }));
}

export function select(label, choices, chosen, onchoose) {
  return h("label.field", null, h("span", null, label),
    h("select", { value: chosen, onchange: (e) => onchoose(e.target.value) },
      choices.map(([value, text]) => h("option", { value, selected: value === chosen }, text))));
}

export function textField(label, value, { oninput, wrong, hint, type = "text", ...more } = {}) {
  return h("label.field", null, h("span", null, label),
    h("input", { type, value, oninput, "aria-invalid": wrong ? "true" : null, ...more }),
    wrong ? h("span.wrong", { role: "alert" }, wrong) : hint && h("span", null, hint));
}
