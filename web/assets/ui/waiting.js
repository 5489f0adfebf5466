// SPDX-License-Identifier: Apache-2.0
// What is shown while there is nothing to show yet, or no longer.
import { h } from "../dom.js";
import { notice } from "./notice.js";
import { button } from "./field.js";

const TITLES = {
  timeout: "The query timed out.", unavailable: "PostgreSQL or the server is too busy.",
  unreachable: "The server does not answer.", not_found: "There is no such thing.",
  forbidden: "Your role may not see this.",
};

export function skeleton() {
  return h("div.skeleton", { "aria-busy": "true", role: "status" },
    h("span.unseen", null, "reading"), h("i"), h("i"), h("i"));
}

export function failure(error, again) {
  const title = TITLES[error.code] ?? "This cannot be shown.";
  const text = error.message === title ? null : error.message;
  return notice(error.code === "not_found" ? "warn" : "fail", title, { role: "alert",
    detail: [text, error.hint].filter(Boolean).join(" ") || null,
    tools: button("Try again", again, { class: "slim" }) });
}
