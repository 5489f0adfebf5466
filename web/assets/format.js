// SPDX-License-Identifier: Apache-2.0
// Formats numbers and times. Times are given as ISO texts.
import { prefs } from "./prefs.js";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

// 12,345, but 12.3M from a million on. An estimate gets a ~.
export function count(n, isEstimate = false) {
  if (n === null || n === undefined) {
    return "–";
  }
  return (isEstimate ? "~" : "") + (n < 1e6 ? whole.format(n) : short.format(n));
}

export function decimal(n) {
  if (n === null || n === undefined) {
    return "–";
  }
  return n >= 100 || n === 0 ? count(n) : n.toFixed(n >= 10 ? 1 : 2).replace(/\.?0+$/, "");
}

export function percent(share) {
  if (share === null || share === undefined) {
    return "–";
  }
  const p = share * 100;
  return p === 0 ? "0 %" : p < 0.1 ? "< 0.1 %" : `${p < 10 ? p.toFixed(1) : Math.round(p)} %`;
}

// 320 µs, 14 ms, 2.1 s, 3 m 12 s, 4 h 5 m, 3 d 2 h
export function duration(seconds) {
  if (seconds === null || seconds === undefined) {
    return "–";
  }
  const s = Math.abs(seconds);
  const steps = [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"]];
  for (const [unit, name, part, partName] of steps) {
    if (s >= unit) {
      const rest = Math.floor((s % unit) / part);
      return `${Math.floor(s / unit)} ${name}${rest ? ` ${rest} ${partName}` : ""}`;
    }
  }
  if (s === 0) {
    return "0 s";
  }
  return s >= 1 ? `${decimal(s)} s` : s >= 0.001 ? `${decimal(s * 1000)} ms`
    : `${Math.round(s * 1e6)} µs`;
}

export function ago(text, now = Date.now()) {
  const t = Date.parse(text);
  if (Number.isNaN(t)) {
    return "–";
  }
  const s = (now - t) / 1000;
  if (Math.abs(s) < 1) {
    return "now";
  }
  const far = Math.floor(Math.abs(s));
  const unit = far >= 86400 ? (far >= 864000 ? 86400 : 3600) : far >= 60 ? 60 : 1;
  const rough = duration(far - (far % unit));
  return s < 0 ? `in ${rough}` : `${rough} ago`;
}

const pad = (n, width = 2) => String(n).padStart(width, "0");

function fields(date) {
  const utc = prefs.zone === "utc";
  const get = (name) => date[`get${utc ? "UTC" : ""}${name}`]();
  return {
    day: `${get("FullYear")}-${pad(get("Month") + 1)}-${pad(get("Date"))}`,
    time: `${pad(get("Hours"))}:${pad(get("Minutes"))}:${pad(get("Seconds"))}`,
    ms: pad(get("Milliseconds"), 3),
  };
}

// 2026-11-28 21:04:05, in the preferred zone.
export function moment(text, hasMs = false) {
  const date = new Date(text ?? NaN);
  if (Number.isNaN(date.getTime())) {
    return "–";
  }
  const f = fields(date);
  return `${f.day} ${f.time}${hasMs ? `.${f.ms}` : ""}`;
}

export function clock(text, hasSeconds = false) {
  const date = new Date(text ?? NaN);
  return Number.isNaN(date.getTime()) ? "–" : fields(date).time.slice(0, hasSeconds ? 8 : 5);
}

export function zoneName() {
  if (prefs.zone === "utc") {
    return "UTC";
  }
  const parts = new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(new Date());
  return parts.find((p) => p.type === "timeZoneName").value;
}

export function bytes(n) {
  if (n === null || n === undefined) {
    return "–";
  }
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) {
    n /= 1024;
  }
  return `${i === 0 ? n : decimal(n)} ${units[i]}`;
}

export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
