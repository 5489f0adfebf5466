/* SPDX-License-Identifier: Apache-2.0
 *
 * Crash points: named places between two steps that a crash may separate (docs/guarantees.md). A
 * test sets CLAIMD_PROBE to "W5=kill", "W5=stop", "W5=hang" or "W5=kill:3" (the third hit); without
 * it, a probe costs one integer load. */
#ifndef CLAIMD_BASE_PROBE_H
#define CLAIMD_BASE_PROBE_H

#include "base/err.h"

/* Reads CLAIMD_PROBE; call it once, in main(). Returns INVALID if the value is malformed. */
enum status probe_init(struct err *err) MUST_USE;

/* Kills (SIGKILL) or stops (SIGSTOP) this process, or blocks this thread forever, if CLAIMD_PROBE
 * asks for it at this point. */
void probe(const char *point);

#endif
