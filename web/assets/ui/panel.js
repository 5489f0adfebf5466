// SPDX-License-Identifier: Apache-2.0
// Panels and what they hold: figures, facts, code.
import { h } from "../dom.js";

export function panel(title, { tools, footer, isFlush = false, class: name, key } = {}, ...body) {
  return h("section.panel", { class: name, key, "aria-label": typeof title === "string" ? title : null },
    title && h("header", null, h("h2", null, title), tools && h("div.row.push", null, tools)),
    isFlush ? body : h("div.body", null, body),
    footer && h("footer", null, footer));
}

// figures([{name, value, unit, note, chart}]): the key numbers of a page.
export function figures(list) {
  return h("div.figures", null, list.map((f) =>
    h("dl.figure", { key: f.name },
      h("dt", null, f.name),
      h("dd.value", null, f.value, f.unit && h("small", null, f.unit)),
      h("dd.note", null, f.note ?? ""),
      f.chart && h("dd", null, f.chart))));
}

// facts([[name, value], …]); empty values are left out.
export function facts(list) {
  return h("dl.facts", null, list.filter(([, value]) => value !== null && value !== undefined &&
    value !== "").map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null|-?\d[\d.eE+-]*)\b/g;

// JSON with colours, up to 64 KiB: beyond that it would be slow.
export function json(value, label) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return h("pre.code", { tabindex: "0", role: "region", "aria-label": label },
    text.length > 65536 ? text : coloured(text));
}

function coloured(text) {
  const parts = [];
  let done = 0;
  for (const m of text.matchAll(TOKEN)) {
    const word = m[1] ?? m[3];
    const kind = m[3] !== undefined ? "other" : m[2] === undefined ? "text" : "key";
    parts.push(text.slice(done, m.index), h(`span.${kind}`, null, word));
    done = m.index + word.length;
  }
  parts.push(text.slice(done));
  return parts.filter((part) => part !== "");
}

export function log(text, label, props) {
  return h("pre.code", { tabindex: "0", role: "region", "aria-label": label, ...props }, text);
}

// A log that grows: shows its last lines, unless the reader has scrolled up.
export function growingLog(text, label) {
  return log(text, label, { ref: (dom) => requestAnimationFrame(() => stayAtEnd(dom)) });
}

function stayAtEnd(dom) {
  dom.onscroll ??= () => { dom.isBehind = dom.scrollTop + dom.clientHeight < dom.scrollHeight - 4; };
  if (!dom.isBehind) {
    dom.scrollTop = dom.scrollHeight;
  }
}
