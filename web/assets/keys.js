// SPDX-License-Identifier: Apache-2.0
// Keyboard shortcuts; HELP lists them.
import { h } from "./dom.js";
import { openDialog } from "./ui/dialog.js";
import { button } from "./ui/field.js";
import { go, href } from "./route.js";

const PAGES = { o: "overview", j: "jobs", q: "queues", s: "schedules", k: "kinds", c: "cluster" };
const HELP = [
  ["/", "find"], ["j", "next row"], ["k", "previous row"], ["Enter", "open the row"],
  ["x", "select the row"], ["Esc", "leave the field, close"], ["r", "read again"],
  ["g o", "Overview"], ["g j", "Jobs"], ["g q", "Queues"], ["g s", "Schedules"], ["g k", "Kinds"],
  ["g c", "Cluster"], ["?", "this list"],
];

let isGoing = false;

function rows() {
  return [...document.querySelectorAll("main tr[data-row]")];
}

function step(by) {
  const all = rows();
  if (all.length === 0) {
    return;
  }
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
  const target = next.querySelector("a") ?? next.querySelector("button, input");
  target?.focus();
  next.scrollIntoView({ block: "nearest" });
}

function selectRow() {
  document.activeElement.closest("tr[data-row]")?.querySelector("input[type=checkbox]")?.click();
}

function focusSearch() {
  const field = document.querySelector("main input[type=search]");
  if (field) {
    field.focus();
    field.select();
  } else {
    go(href("jobs", null, { find: "" }));
  }
}

export function showHelp() {
  openDialog((close) => h("div.dialog", null, h("h2", null, "Keys"),
    h("dl.facts", null, HELP.map(([key, text]) =>
      [h("dt", null, key.split(" ").map((k) => [h("kbd", null, k), " "])), h("dd", null, text)])),
    h("footer", null, button("Close", () => close(), { class: "primary" }))), { label: "keys" });
}

export function startKeys({ reload }) {
  const acts = { "/": focusSearch, j: () => step(1), k: () => step(-1), x: selectRow, r: reload,
    "?": showHelp };
  document.addEventListener("keydown", (e) => {
    const isTyping = e.target.closest?.("input:not([type=checkbox]), textarea, select");
    if (e.key === "Escape" && isTyping) {
      e.target.blur();
    }
    if (isTyping || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) {
      return;
    }
    const act = isGoing && PAGES[e.key] ? () => go(href(PAGES[e.key])) : acts[e.key];
    isGoing = e.key === "g";
    if (act) {
      e.preventDefault();
      act();
    }
  });
}
