// SPDX-License-Identifier: Apache-2.0
// Charts as SVG that stretches to the width of its box; strokes keep their width.
import { h } from "../dom.js";
import { mark, stateOf, shape } from "../state.js";

const SPARK_WIDTH = 200;
const SPARK_HEIGHT = 36;

// A sparkline; null values are gaps.
export function spark(values, { label, colour = "accent" } = {}) {
  const known = values.filter((v) => v !== null);
  const top = Math.max(...known, 0) || 1;
  const step = SPARK_WIDTH / Math.max(values.length - 1, 1);
  const y = (v) => SPARK_HEIGHT - 1 - (v / top) * (SPARK_HEIGHT - 3);
  const runs = runsOf(values).map((run) => run.map(([i, v]) => `${round(i * step)},${round(y(v))}`));
  return h("svg.chart", { viewBox: `0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`, height: SPARK_HEIGHT,
    preserveAspectRatio: "none", role: "img", "aria-label": label,
    style: { "--c": `var(--${colour})` } },
  h("path.grid", { d: `M0,${SPARK_HEIGHT - 0.5}H${SPARK_WIDTH}` }),
  runs.map((points) => [
    h("path.area", { d: `M${points[0].split(",")[0]},${SPARK_HEIGHT}L${points.join("L")}L` +
      `${points.at(-1).split(",")[0]},${SPARK_HEIGHT}Z` }),
    h("path.stroke", { d: `M${points.join("L")}` })]));
}

const round = (n) => Math.round(n * 10) / 10;

// Stretches without a null, as [index, value].
function runsOf(values) {
  const runs = [];
  values.forEach((v, i) => {
    if (v === null) {
      return;
    }
    if (i === 0 || values[i - 1] === null) {
      runs.push([]);
    }
    runs.at(-1).push([i, v]);
  });
  return runs.filter((run) => run.length > 1);
}

// Returns the next round number whose half is whole.
function niceTop(n) {
  const power = 10 ** Math.floor(Math.log10(Math.max(n, 1)));
  return [2, 4, 6, 8, 10].map((k) => k * power).find((v) => v >= n);
}

// Stacked bars over time. series: [{name, colour, values}]; times: labels of the columns.
export function bars(series, times, { label, format, height = 160 }) {
  const totals = times.map((_, i) => series.reduce((sum, s) => sum + (s.values[i] ?? 0), 0));
  const top = niceTop(Math.max(...totals, 1));
  const slot = 1000 / Math.max(times.length, 1);
  const y = (v) => (v / top) * (height - 12);
  return h("div.plot", { role: "img", "aria-label": label },
    h("div.plot-scale", { "aria-hidden": "true" },
      [top, top / 2, 0].map((v) => h("span", null, format(v)))),
    h("svg.chart", { viewBox: `0 0 1000 ${height}`, height, preserveAspectRatio: "none" },
      [0, 0.5, 1].map((share) => h("path.grid", { d: `M0,${height - y(top * share) - 0.5}H1000` })),
      times.map((time, i) => barAt(series, i, { x: i * slot, slot, y, height, time, format }))),
    h("div.plot-times", { "aria-hidden": "true" }, timeTicks(times).map((t) => h("span", null, t))));
}

function barAt(series, i, { x, slot, y, height, time, format }) {
  let base = height;
  const says = [time];
  const parts = series.map((s) => {
    const value = s.values[i] ?? 0;
    const tall = value === 0 ? 0 : Math.max(y(value), 1.5);
    base -= tall;
    says.push(`${s.name} ${format(value)}`);
    return tall > 0 && h("rect.bar", { x: round(x + slot * 0.14), y: round(base),
      width: round(slot * 0.72), height: round(tall), style: { "--c": `var(--${s.colour})` } });
  });
  return h("g", null, parts, h("rect.hit", { x: round(x), y: 0, width: round(slot), height },
    h("title", null, says.join("\n"))));
}

function timeTicks(times) {
  const last = times.length - 1;
  return last < 4 ? times : [0, 1, 2, 3, 4].map((k) => times[Math.round((last * k) / 4)]);
}

export function legend(series) {
  return h("div.legend", null, series.map((s) => mark(s.state, { text: s.name })));
}

// A share from 0 to 1, with a text beside it.
export function meter(share, text, { colour = "accent", label } = {}) {
  const percentage = Math.round(Math.min(Math.max(share, 0), 1) * 100);
  return h("div.meter", { role: "meter", "aria-valuenow": String(percentage), "aria-valuemin": "0",
    "aria-valuemax": "100", "aria-label": label ?? text },
  h("span.track", { "aria-hidden": "true" }, h("span.part", { style: { display: "block",
    "--share": `${percentage}%`, "--c": `var(--${colour})` } })),
  h("span", null, text));
}

const SLOTS_MAX = 64;

// The slots of a worker; beyond 64, a meter.
export function slots(taken, total) {
  if (total > SLOTS_MAX) {
    return meter(taken / total, `${taken} of ${total}`, { colour: "running", label: "slots taken" });
  }
  return h("div.slots", { role: "img", "aria-label": `${taken} of ${total} slots taken` },
    Array.from({ length: total }, (_, i) => h(i < taken ? "i.taken" : "i", { key: i })));
}

// events: [{state, title, time, detail}]
export function timeline(events) {
  return h("ol.timeline", null, events.map((e) => {
    const s = stateOf(e.state);
    return h("li", { style: { "--c": `var(--${s.colour})` } }, shape(s.shape),
      h("span", null, h("strong", null, e.title), e.note && h("span.quiet", null, ` ${e.note}`)),
      h("span.quiet.small.nowrap", { title: e.hint }, e.time),
      e.detail && h("div.detail", null, e.detail));
  }));
}
