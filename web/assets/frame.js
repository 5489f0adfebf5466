// SPDX-License-Identifier: Apache-2.0
// The frame around each page: cluster name, navigation, preferences.
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { iconButton, button } from "./ui/field.js";
import { href } from "./route.js";
import { nextPref, prefs } from "./prefs.js";
import { showHelp } from "./keys.js";
import { zoneName } from "./format.js";

const PAGES = [["overview", "Overview"], ["jobs", "Jobs"], ["queues", "Queues"],
  ["schedules", "Schedules"], ["kinds", "Kinds"], ["cluster", "Cluster"]];
const MODES = {
  live: "Live", polling: "Polling every 5 s", lost: "No connection", off: "Paused", login: "Logged out",
};
const REFRESH = { live: "live", "10s": "every 10 s", "60s": "every 60 s", off: "paused" };
const THEMES = { auto: ["auto", "theme of the system"], light: ["sun", "light theme"],
  dark: ["moon", "dark theme"] };

export const logo = (size) => h("svg", { viewBox: "0 0 24 24", width: size, height: size,
  "aria-hidden": "true" },
  h("rect", { width: 24, height: 24, rx: 6, fill: "currentcolor" }),
  h("path", { class: "logo-line", d: "M16.5 8.2A5.5 5.5 0 1 0 16.5 15.8" }),
  h("circle", { class: "logo-dot", cx: 13, cy: 12, r: 2.4 }));

function liveSign(mode) {
  const text = prefs.refresh === "live" ? MODES[mode] : `Refresh: ${REFRESH[prefs.refresh]}`;
  return h("button.live", { type: "button", class: prefs.refresh === "live" ? mode : "off",
    title: "refresh: live, every 10 s, every 60 s, paused",
    "aria-label": `refresh: ${REFRESH[prefs.refresh]}, ${MODES[mode]}`,
    onclick: () => nextPref("refresh") }, h("span.pulse"), h("span", null, text));
}

function tools({ session, live, leave }) {
  const [themeIcon, themeText] = THEMES[prefs.theme];
  return h("div.foot", null,
    liveSign(live.mode),
    session.who && h("div.user.row.small.quiet", null, h("span.clip", null, session.who,
      session.can_act ? "" : " · read only"),
    session.by === "cookie" && iconButton("leave", "log out", leave)),
    !session.who && !session.can_act && h("div.user.small.quiet", null, "Read only"),
    h("div.tools", null,
      iconButton(themeIcon, themeText, () => nextPref("theme")),
      button(zoneName(), () => nextPref("zone"), { icon: "clock", class: "plain slim zone",
        title: "UTC or local time" }),
      iconButton("keys", "keys", showHelp, "plain keys")));
}

export function frame({ at, session, live, leave }, page) {
  return h("div.frame", null,
    h("header.rail", null,
      h("a.brand", { href: href("overview"), "aria-label": "claimd, overview" }, logo(24),
        h("b.clip", null, session.cluster || "claimd"),
        h("span.small.clip", null, session.cluster ? "claimd" : session.version)),
      h("nav", { "aria-label": "pages" }, h("ul", null, PAGES.map(([name, text]) =>
        h("li", { key: name }, h("a", { href: href(name), "aria-current": at.page === name && "page" },
          icon(name), h("span", null, text)))))),
      tools({ session, live, leave })),
    page);
}
