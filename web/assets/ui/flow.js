// SPDX-License-Identifier: Apache-2.0
// The state diagram of jobs: with counts and links on Overview, with the path of one job on Job.
import { h } from "../dom.js";
import { shapePath, JOB_STATES } from "../state.js";

const BOX = { width: 148, height: 60 };

// Positions of the states, for wide boxes and for phones.
const WIDE = {
  width: 980, height: 244,
  at: { waiting: [0, 0], scheduled: [0, 92], retryable: [416, 184], available: [208, 46],
    running: [416, 46], completed: [832, 0], discarded: [832, 92], cancelled: [832, 184] },
  edges: [
    ["waiting", "available", "M148,30H178V68H208"],
    ["scheduled", "available", "M148,122H178V84H208"],
    ["available", "running", "M356,76H416"],
    ["running", "completed", "M564,66H698V30H832"],
    ["running", "discarded", "M564,76H698V122H832"],
    ["running", "cancelled", "M564,86H664V214H832"],
    ["running", "retryable", "M490,106V184"],
    ["retryable", "available", "M416,214H282V106"],
  ],
};
const NARROW = {
  width: 312, height: 424,
  at: { waiting: [0, 0], scheduled: [164, 0], available: [0, 91], retryable: [164, 182],
    running: [0, 182], completed: [0, 273], discarded: [164, 273], cancelled: [0, 364] },
  edges: [
    ["waiting", "available", "M74,60V91"],
    ["scheduled", "available", "M238,60V121H148"],
    ["available", "running", "M74,151V182"],
    ["running", "retryable", "M148,204H164"],
    ["retryable", "available", "M238,182V136H148"],
    ["running", "completed", "M74,242V273"],
    ["running", "discarded", "M148,224H156V303H164"],
    ["running", "cancelled", "M148,228H156V394H148"],
  ],
};

// below(name): the second line of a box. href(name): null = no link. here: the current state;
// passed: a Set of "from>to" and of states that were entered. CSS shows one of the
// two plans, depending on the width of the box.
export function flow(what) {
  return h("div.flow-box", null, drawn(WIDE, "wide", what), drawn(NARROW, "narrow", what));
}

function drawn(plan, name, { below, total, href, here, passed, label }) {
  return h("svg.flow", { class: name, viewBox: `-1 -1 ${plan.width + 2} ${plan.height + 2}`,
    role: "group", "aria-label": label },
  plan.edges.map(([from, to, d]) => edge(d, passed?.has(`${from}>${to}`), `${from}>${to}`)),
  Object.keys(plan.at).map((name) => stateBox(name, plan.at[name],
    { below, total, href, isHere: here === name, isUnused: passed && !passed.has(name) })));
}

function edge(d, isPassed, key) {
  const [tip, angle] = endOf(d);
  const kind = isPassed ? "passed" : "";
  return h("g", { key }, h("path.edge", { d, class: kind }),
    h("path.tip", { class: kind, d: "M0,0L-7,-4V4Z", transform: `translate(${tip}) rotate(${angle})` }));
}

// Returns the end of a path of H and V steps, and its direction in degrees.
function endOf(d) {
  let [x, y] = d.match(/^M([\d.]+),([\d.]+)/).slice(1).map(Number);
  let angle = 0;
  for (const [, way, number] of d.matchAll(/([HV])([\d.]+)/g)) {
    const n = Number(number);
    angle = way === "H" ? (n > x ? 0 : 180) : n > y ? 90 : 270;
    x = way === "H" ? n : x;
    y = way === "V" ? n : y;
  }
  return [`${x},${y}`, angle];
}

function stateBox(name, [x, y], { below, total, href, isHere, isUnused }) {
  const s = JOB_STATES[name];
  const to = href?.(name);
  const figure = total?.(name);
  const says = below?.(name) ?? "";
  const kind = [isHere && "here", isUnused && "unused"].filter(Boolean).join(" ");
  return h(to ? "a" : "g", { key: name, href: to, class: kind, transform: `translate(${x},${y})`,
    style: { "--c": `var(--${s.colour})` }, "aria-label": to && `${s.text}: ${figure ?? ""} ${says}` },
  h("rect.box", { width: BOX.width, height: BOX.height, rx: 8 }),
  h("g.shape-at", { transform: "translate(12,12)" }, shapePath(s.shape)),
  h("text", { x: 36, y: 25 }, s.text),
  figure === undefined ? h("text.below", { x: 36, y: 45 }, says)
    : h("text.total", { x: 36, y: 47 }, figure));
}
