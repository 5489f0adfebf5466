// SPDX-License-Identifier: Apache-2.0
// A search box with suggestions (the combobox pattern).
import { h } from "../dom.js";
import { icon } from "../icons.js";

// state: {text, at, isOpen}, kept by the page. suggest(text) → [{text, hint}]; take(suggestion).
export function searchBox({ state, suggest, take, redraw, placeholder }) {
  const found = state.isOpen ? suggest(state.text ?? "") : [];
  const at = Math.min(state.at ?? 0, found.length - 1);
  const chosen = (s) => {
    Object.assign(state, { text: "", at: 0, isOpen: false });
    take(s);
  };
  const onkeydown = (e) => {
    const now = suggest(e.target.value); // what is drawn may lag behind the keyboard
    if (e.key === "Enter" && now.length > 0) {
      e.target.value = "";
      chosen(now[Math.min(state.at ?? 0, now.length - 1)]);
    } else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      state.at = (at + (e.key === "ArrowDown" ? 1 : -1) + now.length) % Math.max(now.length, 1);
    } else if (e.key === "Escape") {
      state.isOpen = false;
    } else {
      return;
    }
    e.preventDefault();
    redraw();
  };
  return h("div.search", null, icon("search"),
    h("input", { type: "search", role: "combobox", "aria-label": placeholder, placeholder,
      "aria-expanded": String(found.length > 0), "aria-controls": "suggestions",
      "aria-activedescendant": found.length > 0 ? `suggestion-${at}` : null, autocomplete: "off",
      spellcheck: "false", onkeydown,
      oninput: (e) => {
        Object.assign(state, { text: e.target.value, at: 0, isOpen: true });
        redraw();
      },
      onblur: () => setTimeout(() => {
        state.isOpen = false;
        redraw();
      }, 150) }),
    h("kbd", { "aria-hidden": "true" }, "/"),
    found.length > 0 && h("ul.suggest", { id: "suggestions", role: "listbox", "aria-label": "meanings" },
      found.map((s, i) => h("li", { key: `${s.hint}:${s.text}`, id: `suggestion-${i}`, role: "option",
        "aria-selected": String(i === at), onmousedown: (e) => {
          e.preventDefault();
          chosen(s);
        } }, h("span.clip", null, s.text), h("span.quiet.small.nowrap", null, s.hint)))));
}
