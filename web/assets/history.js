// SPDX-License-Identifier: Apache-2.0
// A course over time: the server's series if it has one, else what this page has seen itself.

const SEEN_MAX = 60;

// Returns {rows: [{at, completed, discarded, cancelled, ended, wait_p95_s, oldest_s}], seconds, step}.
export function seriesOfHistory(series, history, seconds) {
  if (series) {
    const rows = series.series.map((r) => ({ ...r, ended: endedOf(r) }));
    return { rows, seconds, step: seconds / Math.max(rows.length, 1) };
  }
  return ofHistory(history);
}

const endedOf = (r) => (r.completed === null ? null
  : (r.completed ?? 0) + (r.discarded ?? 0) + (r.cancelled ?? 0));

// The counters say how many jobs ended in the last minute; each point is that minute.
function ofHistory(history) {
  const every = Math.ceil(history.length / SEEN_MAX);
  const rows = history.filter((_, i) => i % Math.max(every, 1) === 0).map(({ at, counters }) => {
    const minute = counters.finished[0] ?? {};
    return { ...minute, at: new Date(at).toISOString(), ended: endedOf(minute),
      oldest_s: Math.max(0, ...counters.queues.map((q) => q.oldest_due_s ?? 0)) };
  });
  const last = history.at(-1)?.counters.finished.at(-1);
  return { rows: rows.length === 0 ? [] : rows, seconds: (last?.minutes ?? 15) * 60, step: 60,
    totals: last };
}
