// SPDX-License-Identifier: Apache-2.0
import { act } from "./api.js";
import { actNow, tellFailure } from "./acts.js";
import { confirmAct } from "./ui/dialog.js";
import { toast } from "./ui/notice.js";
import { cronText } from "./cron.js";

const path = (name, verb) => `schedules/${encodeURIComponent(name)}/${verb}`;

export async function pauseSchedule(s) {
  if (s.state === "paused") {
    return actNow("POST", path(s.name, "resume"), {}, `Schedule ${s.name} resumed.`);
  }
  const isWanted = await confirmAct({ title: `Pause schedule ${s.name}`, verb: "Pause",
    preview: async () => ({ text: "It will create no jobs until it is resumed.",
      detail: `It runs ${cronText(s.cron)}.` }) });
  return isWanted && actNow("POST", path(s.name, "pause"), {}, `Schedule ${s.name} paused.`);
}

// Resolves with the id of the job, or null.
export async function runSchedule(s) {
  const isWanted = await confirmAct({ title: `Run ${s.name} now`, verb: "Run now",
    preview: async () => ({ text: `1 job of kind ${s.kind} will be enqueued in ${s.queue}.`,
      detail: "The next ticks stay as they are." }) });
  if (!isWanted) {
    return null;
  }
  try {
    const { job } = await act("POST", path(s.name, "run"), {});
    toast("ok", `Job ${job.id} enqueued.`);
    return job.id;
  } catch (error) {
    tellFailure(error);
    return null;
  }
}
