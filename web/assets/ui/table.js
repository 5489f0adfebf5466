// SPDX-License-Identifier: Apache-2.0
// A table. It has explicit roles, because browsers drop them when CSS turns rows into cards.
import { h } from "../dom.js";

// columns: [{name, label, class, cell(row)}]. chosen: a Set of keys (rowKey), with onchoose(key, isOn)
// and onchooseAll(isOn): adds check boxes. extra(row): contents of a second row, or null. isSlim: fits
// everywhere, so its rows never become cards.
export function table(label, columns, rows, { rowKey, chosen, onchoose, onchooseAll, extra,
  isSlim, empty } = {}) {
  if (rows.length === 0 && empty) {
    return empty;
  }
  const box = { class: isSlim ? null : "cards" };
  return h("div.table-box", box, h("table.table", { role: "table", "aria-label": label },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" },
      chosen && h("th.check", { role: "columnheader" }, allBox(rows, rowKey, chosen, onchooseAll)),
      columns.map((c) => h("th", { role: "columnheader", scope: "col", class: c.class, key: c.name },
        c.name || h("span.unseen", null, c.label ?? "actions"))))),
    h("tbody", { role: "rowgroup" },
      rows.map((row) => [tableRow(row, columns, { rowKey, chosen, onchoose }),
        extraRow(extra?.(row), columns.length + (chosen ? 1 : 0), `${rowKey(row)} extra`)]))));
}

function extraRow(contents, span, key) {
  return contents && h("tr.extra", { role: "row", key }, h("td", { role: "cell", colspan: String(span) },
    contents));
}

function tableRow(row, columns, { rowKey, chosen, onchoose }) {
  const key = rowKey(row);
  const isChosen = chosen?.has(key);
  return h("tr", { role: "row", key: String(key), "data-row": String(key),
    class: [chosen && "selectable", isChosen && "chosen"].filter(Boolean).join(" ") },
  chosen && h("td.check", { role: "cell" }, h("input", { type: "checkbox", checked: isChosen,
    "aria-label": `select ${key}`, onchange: (e) => onchoose(key, e.target.checked) })),
  columns.map((c) => {
    const cell = c.cell(row);
    return h("td", { role: "cell", class: c.class, key: c.name, "data-label": c.name || null },
      cell ?? "");
  }));
}

function allBox(rows, rowKey, chosen, onchooseAll) {
  const on = rows.filter((row) => chosen.has(rowKey(row))).length;
  return h("input", { type: "checkbox", "aria-label": "select all on this page",
    checked: on > 0 && on === rows.length, indeterminate: on > 0 && on < rows.length,
    onchange: (e) => onchooseAll(e.target.checked) });
}
