// SPDX-License-Identifier: Apache-2.0
// One sentence from the checks of `claimctl doctor`.
import { plural } from "./format.js";

const KINDS = { FAIL: "fail", fail: "fail", warn: "warn" };

export function verdict(checks) {
  const findings = checks.filter((c) => KINDS[c.result]).map((c) => ({ ...c, kind: KINDS[c.result] }))
    .sort((a, b) => (a.kind === b.kind ? 0 : a.kind === "fail" ? -1 : 1));
  const failed = findings.filter((c) => c.kind === "fail").length;
  if (findings.length === 0) {
    return { kind: "ok", text: `All is well: ${plural(checks.length, "check")} passed.`, findings };
  }
  return failed > 0
    ? { kind: "fail", text: `${plural(failed, "check")} of ${checks.length} failed.`, findings }
    : { kind: "warn", text: `It works, with ${plural(findings.length, "warning")}.`, findings };
}
