// SPDX-License-Identifier: Apache-2.0
// Dialogs: one at a time, over the browser's own <dialog>, which keeps the focus inside and gives it
// back.
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
    dom.onclick = (e) => { // beside it
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

// Asks before an act. preview(): a promise of {text, rows, isEmpty}, which says what would happen; the
// button waits for it. Resolves with true if the act is wanted.
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
    return h("div.preview.quiet", { "aria-busy": "true" }, "Counting what this concerns…");
  }
  return h("div.preview.stack", { role: found.isWrong ? "alert" : "status" },
    h("strong", null, found.text), found.detail && h("span.quiet", null, found.detail), found.rows);
}
