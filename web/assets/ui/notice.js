// SPDX-License-Identifier: Apache-2.0
// Notices: verdict, banners, empty lists, toasts.
import { h, render } from "../dom.js";
import { shape, stateOf } from "../state.js";
import { iconButton } from "./field.js";

// kind: the name of a state: ok, warn, fail.
export function notice(kind, text, { detail, tools, class: name, role = "status" } = {}) {
  const s = stateOf(kind);
  return h("div.notice", { class: name, role, style: { "--c": `var(--${s.colour})` } },
    shape(s.shape, 20), h("strong", null, text), tools ?? h("span"),
    detail && h("div.detail", null, detail));
}

export function empty(title, text, tool) {
  return h("div.empty", null, h("b", null, title), text && h("span", null, text), tool);
}

const toasts = [];
const TOAST_MS = 6000;

// Failures stay until the user closes them.
export function toast(kind, text, detail) {
  const one = { kind, text, detail, id: Symbol("toast") };
  toasts.push(one);
  if (kind === "ok") {
    setTimeout(() => dropToast(one), TOAST_MS);
  }
  showToasts();
}

function dropToast(one) {
  const at = toasts.indexOf(one);
  if (at >= 0) {
    toasts.splice(at, 1);
    showToasts();
  }
}

function showToasts() {
  const root = document.getElementById("toasts");
  render(root, toasts.slice(-4).map((one) => h("div", { key: one.id },
    notice(one.kind, one.text, { detail: one.detail, role: one.kind === "ok" ? "status" : "alert",
      tools: iconButton("close", "close", () => dropToast(one)) }))));
}
