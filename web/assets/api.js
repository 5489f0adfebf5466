// SPDX-License-Identifier: Apache-2.0
// Requests to /api/v1. A failure is an ApiError with the code, message and hint of the server.

export const BASE = new URL("api/v1/", document.baseURI.split("#")[0]).href;

export class ApiError extends Error {
  constructor(status, { code, message, hint }) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

let onUnauthorized = () => {};

export function whenUnauthorized(handler) {
  onUnauthorized = handler;
}

async function request(method, path, { params, body, version, signal } = {}) {
  const url = new URL(path, BASE);
  url.search = params ? new URLSearchParams(params).toString() : "";
  const headers = { Accept: "application/json" };
  if (method !== "GET") {
    headers["Content-Type"] = "application/json";
  }
  if (version !== undefined) {
    headers["If-Match"] = `"${version}"`;
  }
  const answer = await fetch(url, { method, headers, signal, credentials: "same-origin",
    body: method === "GET" ? undefined : JSON.stringify(body ?? {}) }).catch((cause) => {
    throw cause.name === "AbortError" ? cause
      : new ApiError(0, { code: "unreachable", message: "The server is not responding.",
        hint: "Check claimd-web and the network." });
  });
  return read(answer, path);
}

async function read(answer, path) {
  const value = await answer.json().catch(() => null);
  if (answer.ok && value) {
    return value;
  }
  if (answer.status === 401 && path !== "login") {
    onUnauthorized();
  }
  throw new ApiError(answer.status, value?.error ??
    { code: "internal", message: `The server answered ${answer.status} without JSON.`, hint: null });
}

export const get = (path, params, signal) => request("GET", path, { params, signal });
export const act = (method, path, body, version) => request(method, path, { body, version });

const SEARCH_MS = 1000;

// A list of jobs. The server searches for rare ones in parts: this goes on until the list is full, or for a second.
// A search in args (q) ends with the first part, which says how many jobs it has read.
export async function getJobs(params, signal) {
  const end = performance.now() + SEARCH_MS;
  const found = await get("jobs", params, signal);
  const left = () => Number(params.limit) - found.jobs.length;
  while (!params.q && found.page.next_after !== null && left() > 0 && performance.now() < end) {
    const more = await get("jobs", { ...params, after: found.page.next_after, limit: left() }, signal);
    found.jobs.push(...more.jobs);
    found.page = more.page;
  }
  return found;
}

// For what may not exist: null in place of 404.
export async function getIfAny(path, params, signal) {
  try {
    return await get(path, params, signal);
  } catch (error) {
    if (error.status === 404 || error.status === 405) {
      return null;
    }
    throw error;
  }
}
