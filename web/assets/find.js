// SPDX-License-Identifier: Apache-2.0
// The filters of Jobs, in the URL and in the search box (kind:mail, or a bare word).
import { JOB_STATES } from "./state.js";

// The filters of GET /jobs and their labels. MANY: several values are allowed.
export const FILTERS = {
  state: "State", kind: "Kind", queue: "Queue", tag: "Tag", worker: "Worker", error: "Error has",
  batch: "Batch", map: "Map", since: "Since", until: "Until", owner: "Owner",
  "older-than": "Older than", metadata: "Metadata", q: "Args have",
};
export const MANY = ["state", "kind", "queue", "tag"];

export function filtersOf(params) {
  return Object.keys(FILTERS).map((name) => [name, params.getAll(name).join(",")])
    .filter(([, value]) => value !== "");
}

// Adds a value to a filter, or replaces its value if only one is allowed.
export function withFilter(params, name, value) {
  const next = new URLSearchParams(params);
  const now = MANY.includes(name) ? valuesOf(params, name) : [];
  next.set(name, [...now.filter((v) => v !== value), value].join(","));
  return fresh(next);
}

export function withoutFilter(params, name, value) {
  const next = new URLSearchParams(params);
  const rest = value === undefined ? [] : valuesOf(params, name).filter((v) => v !== value);
  next.delete(name);
  if (rest.length > 0) {
    next.set(name, rest.join(","));
  }
  return fresh(next);
}

export function valuesOf(params, name) {
  return params.getAll(name).flatMap((v) => v.split(",")).filter(Boolean);
}

// A changed filter starts at the first page.
function fresh(params) {
  params.delete("after");
  params.delete("find");
  return Object.fromEntries(params);
}

// Interpretations of the text, the likeliest first: [{text, hint, job} or {text, hint, name, value}].
export function meanings(text, { kinds, queues, hasArgs }) {
  const word = text.trim();
  if (word === "") {
    return [];
  }
  const named = word.match(/^([a-z-]+):\s*(.+)$/);
  if (named && FILTERS[named[1]]) {
    return [filter(named[1], named[2])];
  }
  const found = [];
  if (/^#?\d+$/.test(word)) {
    found.push({ text: `#${word.replace("#", "")}`, hint: "open this job", job: word.replace("#", "") });
  }
  const like = (names) => names.filter((n) => n.includes(word)).slice(0, 4);
  found.push(...like(Object.keys(JOB_STATES)).map((n) => filter("state", n)));
  found.push(...like(kinds).map((n) => filter("kind", n)));
  found.push(...like(queues).map((n) => filter("queue", n)));
  found.push(filter("error", word), ...(hasArgs ? [filter("q", word)] : []), filter("tag", word),
    filter("worker", word));
  return found;
}

function filter(name, value) {
  return { text: value, hint: FILTERS[name].toLowerCase(), name, value };
}
