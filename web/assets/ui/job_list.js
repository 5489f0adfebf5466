// SPDX-License-Identifier: Apache-2.0
// Rows of jobs, as several pages show them.
import { h } from "../dom.js";
import { mark } from "../state.js";
import { href } from "../route.js";
import { ago, moment } from "../format.js";

const ENDED = ["completed", "discarded", "cancelled"];

export const jobColumns = {
  job: { name: "Job", class: "main", cell: (j) => h("a", { href: href("jobs", j.id) }, j.kind, " ",
    h("span.quiet.nowrap", null, `#${j.id}`)) },
  state: { name: "State", cell: (j) => mark(j.state) },
  queue: { name: "Queue", cell: (j) => h("a.quiet", { href: href("queues", j.queue) }, j.queue) },
  attempt: { name: "Attempt", class: "number", cell: (j) => String(j.attempt ?? "–") },
  error: { name: "Error", class: "fill", cell: (j) => j.error &&
    h("div.clip.quiet", { title: j.error }, j.error) },
  when: { name: "When", class: "number", cell: when },
};

function when(j) {
  const at = ENDED.includes(j.state) ? j.finalized_at
    : j.state === "running" ? j.attempted_at ?? j.ready_at : j.ready_at ?? j.created_at;
  const text = at ? ago(at) : "–";
  return h("span.nowrap", { title: moment(at, true) }, text);
}
