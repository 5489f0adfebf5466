// SPDX-License-Identifier: Apache-2.0
// Before anything is painted, so that a dark page does not flash white. Not a module: those wait.
try {
  const { theme } = JSON.parse(localStorage.getItem("claimd") ?? "{}");
  if (theme === "light" || theme === "dark") {
    document.documentElement.dataset.theme = theme;
  }
} catch {
  // No storage: the system's theme.
}
