// SPDX-License-Identifier: Apache-2.0
// Sums up the checks of `claimctl doctor` in one sentence.
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
    : { kind: "warn", text: `No failures, ${plural(findings.length, "warning")}.`, findings };
}
