// SPDX-License-Identifier: Apache-2.0
// Sets the theme before the first paint, so that a dark page does not flash white; a module would be
// too late.
try {
  const { theme } = JSON.parse(localStorage.getItem("claimd") ?? "{}");
  if (theme === "light" || theme === "dark") {
    document.documentElement.dataset.theme = theme;
  }
} catch {
  // Without storage: the system's theme.
}
