/* SPDX-License-Identifier: Apache-2.0
 *
 * Named points between the steps that a crash may separate (docs/guarantees.md, crash points). A
 * test sets CLAIMD_PROBE="W5=kill", "W5=stop", "W5=hang" or "W5=kill:3" (the third hit); without it
 * a probe costs one load of a number. */
#ifndef CLAIMD_BASE_PROBE_H
#define CLAIMD_BASE_PROBE_H

#include "base/err.h"

/* Reads CLAIMD_PROBE once, in main(). INVALID when it is set to anything but the above. */
enum status probe_init(struct err *err) MUST_USE;

/* Kills (SIGKILL) or stops (SIGSTOP) this process, or blocks this thread for good, if a test asked
 * for it here. */
void probe(const char *point);

#endif
