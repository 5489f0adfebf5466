// SPDX-License-Identifier: Apache-2.0
import { h, render } from "../dom.js";
import { logo } from "../frame.js";

// enter(token) rejects if the server refuses the token.
export function loginPage(session, enter) {
  async function submit(e) {
    e.preventDefault();
    const form = e.target;
    const says = form.querySelector("[role=alert]");
    try {
      await enter(form.elements.token.value.trim());
    } catch (error) {
      render(says, error.status === 401 ? "Unknown token." : error.message);
      form.elements.token.select();
    }
  }
  return h("main.login", { id: "main" }, logo(48), h("form.panel", { onsubmit: submit },
    h("div.dialog", null,
      h("h1", null, session.cluster ? `Log in to ${session.cluster}` : "Log in to claimd"),
      session.login ? h("label.field", null, h("span", null, "Token"),
        h("input", { name: "token", type: "password", autocomplete: "current-password", required: true,
          autofocus: true }))
        : h("p.quiet", null, "You are not logged in at the proxy in front of this page."),
      h("div.wrong", { role: "alert", own: true }),
      session.login && h("footer", null, h("button.button.primary", { type: "submit" }, "Log in")))));
}
