// SPDX-License-Identifier: Apache-2.0
// Live updates: counters, and hints about what else has changed. None arrive while the page is hidden
// or the refresh is not "live".
import { BASE } from "./api.js";
import { createStream } from "./stream.js";
import { onPrefs, prefs } from "./prefs.js";

const HISTORY_MAX = 450; /* 15 min of counters every 2 s */
const PERIODS_MS = { "10s": 10000, "60s": 60000 };

// history: the {at, counters} that have arrived.
export const live = { mode: "off", counters: null, history: [] };
let listener = () => {};
let connection = null;
let timer = null;

function hear(message) {
  if (message.mode) {
    live.mode = message.mode;
  }
  if (message.counters) {
    live.counters = message.counters;
    live.history.push({ at: Date.now(), counters: message.counters });
    live.history.splice(0, live.history.length - HISTORY_MAX);
  }
  listener(message);
}

function connect() {
  if (typeof SharedWorker === "undefined") {
    const stream = createStream(BASE, hear);
    return { watch: stream.start, leave: stream.stop };
  }
  const worker = new SharedWorker(new URL("stream-worker.js", import.meta.url), { type: "module" });
  worker.port.onmessage = ({ data }) => hear(data);
  return { watch: () => worker.port.postMessage("watch"),
    leave: () => worker.port.postMessage("leave") };
}

function adjust() {
  clearInterval(timer);
  timer = null;
  const isVisible = document.visibilityState === "visible";
  if (isVisible && prefs.refresh === "live") {
    connection.watch();
    return;
  }
  connection.leave();
  hear({ mode: "off" });
  if (isVisible && PERIODS_MS[prefs.refresh]) {
    timer = setInterval(() => listener({ topics: ["all"] }), PERIODS_MS[prefs.refresh]);
  }
}

// After a login: the stream still belongs to the previous session.
export function restartLive() {
  connection.leave();
  adjust();
}

// onmessage({mode}, {counters} or {topics}); topics ["all"]: everything may have changed.
export function startLive(onmessage) {
  listener = onmessage;
  connection = connect();
  document.addEventListener("visibilitychange", () => {
    adjust();
    if (document.visibilityState === "visible") {
      listener({ topics: ["all"] });
    }
  });
  addEventListener("pagehide", () => connection.leave());
  addEventListener("pageshow", (e) => e.persisted && adjust());
  onPrefs((name) => name === "refresh" && adjust());
  adjust();
}
