// SPDX-License-Identifier: Apache-2.0
// Icons of 16 × 16, in the colour of the text.
import { h } from "./dom.js";

const PATHS = {
  overview: "M2.5 9.5h3l2-5.5l2.5 8l1.5-4h2",
  jobs: "M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01",
  queues: "M2.5 3.5h11v2.5h-11zM2.5 8.5h8v2h-8zM2.5 13h5",
  schedules: "M3 4h10v9.5H3zM3 7h10M5.5 2.5V5M10.5 2.5V5M8 9v2h1.5",
  kinds: "M2.5 2.5h5l6 6l-5 5l-6-6zM5.5 5.5h.01",
  cluster: "M8 2.5l4.75 2.75v5.5L8 13.5l-4.75-2.75v-5.5zM8 8v5M8 8l4.5-2.6M8 8L3.5 5.4",
  search: "M7 2.75a4.25 4.25 0 1 0 0 8.5a4.25 4.25 0 1 0 0-8.5M10.25 10.25L13.5 13.5",
  close: "M4 4l8 8M12 4l-8 8",
  sun: "M8 5a3 3 0 1 0 0 6a3 3 0 1 0 0-6M8 1.5v1.25M8 13.25v1.25M1.5 8h1.25M13.25 8h1.25" +
    "M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9",
  moon: "M12.75 9.75A5.25 5.25 0 0 1 6.25 3.25A5.25 5.25 0 1 0 12.75 9.75z",
  auto: "M8 2.75a5.25 5.25 0 1 0 0 10.5zM8 2.75a5.25 5.25 0 0 1 0 10.5",
  clock: "M8 2.75a5.25 5.25 0 1 0 0 10.5a5.25 5.25 0 1 0 0-10.5M8 5.25V8l2 1.5",
  play: "M5 3.5v9l7.5-4.5z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  retry: "M12.6 6.2A5 5 0 1 0 13 8.6M12.9 2.9v3.4H9.5",
  cancel: "M8 3a5 5 0 1 0 0 10a5 5 0 1 0 0-10M4.6 11.4l6.8-6.8",
  delete: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9",
  edit: "M3 13l.6-2.8L10.8 3l2.2 2.2l-7.2 7.2zM9.5 4.3l2.2 2.2",
  copy: "M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3",
  down: "M4 6.5l4 4l4-4",
  right: "M6.5 4l4 4l-4 4",
  keys: "M2 4.5h12v7.5H2zM4.5 7h.01M7 7h.01M9.5 7h.01M12 7h.01M5 9.75h6",
  leave: "M6.5 2.75h-3.5v10.5h3.5M6.5 8h7M11 5.5L13.5 8L11 10.5",
};

export function icon(name, size = 16) {
  return h("svg.icon", { viewBox: "0 0 16 16", width: size, height: size, "aria-hidden": "true" },
    h("path", { d: PATHS[name] }));
}
