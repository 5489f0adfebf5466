// SPDX-License-Identifier: Apache-2.0
// Dialogs, on top of the browser's <dialog>, which traps the focus and restores it.
import { h, render } from "../dom.js";
import { button } from "./field.js";

// draw(close, redraw) returns the contents; resolves with what close() was given, or undefined.
export function openDialog(draw, { label, isWide = false } = {}) {
  return new Promise((resolve) => {
    const dom = document.createElement("dialog");
    dom.className = isWide ? "wide" : "";
    dom.setAttribute("aria-label", label);
    let answer;
    const close = (value) => {
      answer = value;
      dom.close();
    };
    const redraw = () => render(dom, draw(close, redraw));
    dom.onclose = () => {
      dom.remove();
      resolve(answer);
    };
    dom.onclick = (e) => { // on the backdrop
      if (e.target === dom) {
        dom.close();
      }
    };
    document.body.append(dom);
    redraw();
    dom.showModal();
    dom.querySelector("textarea")?.setSelectionRange(0, 0);
  });
}

// Asks before an action. preview() resolves with {text, rows, isEmpty}: what would happen. Resolves
// with true if the user confirms.
export function confirmAct({ title, verb, isDanger = false, preview }) {
  let found = null;
  let isAsked = false;
  return openDialog((close, redraw) => {
    if (!isAsked) {
      isAsked = true;
      Promise.resolve(preview()).then((p) => { found = p; }, (error) => {
        found = { text: error.message, detail: error.hint, isEmpty: true, isWrong: true };
      }).finally(redraw);
    }
    return h("div.dialog", null, h("h2", null, title), previewBox(found),
      h("footer", null,
        button("Back", () => close(false), { class: "plain" }),
        button(found?.verb ?? verb, () => close(true), {
          class: isDanger ? "primary danger" : "primary", isDisabled: !found || found.isEmpty })));
  }, { label: title });
}

function previewBox(found) {
  if (!found) {
    return h("div.preview.quiet", { "aria-busy": "true" }, "Counting the affected jobs…");
  }
  return h("div.preview.stack", { role: found.isWrong ? "alert" : "status" },
    h("strong", null, found.text), found.detail && h("span.quiet", null, found.detail), found.rows);
}
