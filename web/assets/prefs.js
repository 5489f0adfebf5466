// SPDX-License-Identifier: Apache-2.0
// Preferences of this browser: theme, zone, refresh. Kept in localStorage if that is allowed.

const DEFAULTS = { theme: "auto", zone: "utc", refresh: "live" };
const CHOICES = {
  theme: ["auto", "light", "dark"],
  zone: ["utc", "local"],
  refresh: ["live", "10s", "60s", "off"],
};

function stored() {
  try {
    return JSON.parse(localStorage.getItem("claimd") ?? "{}");
  } catch {
    return {};
  }
}

export const prefs = { ...DEFAULTS };
for (const [name, value] of Object.entries(stored())) {
  if (CHOICES[name]?.includes(value)) {
    prefs[name] = value;
  }
}

const listeners = new Set();

export function onPrefs(listener) {
  listeners.add(listener);
}

export function setPref(name, value) {
  prefs[name] = value;
  try {
    localStorage.setItem("claimd", JSON.stringify(prefs));
  } catch {
    // Without storage, preferences last until the page is closed.
  }
  applyTheme();
  listeners.forEach((listener) => listener(name));
}

export function nextPref(name) {
  const choices = CHOICES[name];
  setPref(name, choices[(choices.indexOf(prefs[name]) + 1) % choices.length]);
}

export function applyTheme() {
  if (prefs.theme === "auto") {
    delete document.documentElement.dataset.theme;
  } else {
    document.documentElement.dataset.theme = prefs.theme;
  }
}
