// SPDX-License-Identifier: Apache-2.0
// Routes: #/jobs/42 or #/jobs?state=discarded. All filters are part of the route, so that links can be
// shared and the back button works.

export function route() {
  const [path, query] = location.hash.replace(/^#/, "").split(/\?(.*)/s);
  const [page = "", ...rest] = path.split("/").filter(Boolean).map(decode);
  return { page: page || "overview", id: rest.length > 0 ? rest.join("/") : null,
    params: new URLSearchParams(query ?? "") };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// href("jobs", 42) or href("jobs", null, {state: "running"})
export function href(page, id, params) {
  const query = new URLSearchParams(params ?? {}).toString();
  const path = page === "overview" ? "" : page;
  return `#/${path}${id === null || id === undefined ? "" : `/${encodeURIComponent(id)}`}` +
    `${query ? `?${query}` : ""}`;
}

export function go(to) {
  location.hash = to;
}

// Goes there without a new entry in the history.
export function replace(to) {
  history.replaceState(null, "", to);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
