// SPDX-License-Identifier: Apache-2.0
// Placeholders: while a page loads, and when it fails to.
import { h } from "../dom.js";
import { notice } from "./notice.js";
import { button } from "./field.js";

const TITLES = {
  timeout: "The query timed out.", unavailable: "PostgreSQL or the server is too busy.",
  unreachable: "The server is not responding.", not_found: "Not found.",
  forbidden: "Your role is not allowed to see this.",
};

export function skeleton() {
  return h("div.skeleton", { "aria-busy": "true", role: "status" },
    h("span.unseen", null, "reading"), h("i"), h("i"), h("i"));
}

export function failure(error, again) {
  const title = TITLES[error.code] ?? "This could not be loaded.";
  const text = error.message === title ? null : error.message;
  return notice(error.code === "not_found" ? "warn" : "fail", title, { role: "alert",
    detail: [text, error.hint].filter(Boolean).join(" ") || null,
    tools: button("Try again", again, { class: "slim" }) });
}
