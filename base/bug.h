/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeded bugs (docs/reliability.md): deliberate mistakes that the checkers of tests/chaos must
 * notice. They exist only in builds of the preset `bugs`, where CLAIMD_BUG=N in the environment
 * enables bug N. In every other build SEEDED_BUG() is the constant false and none of their code is
 * compiled. */
#ifndef CLAIMD_BASE_BUG_H
#define CLAIMD_BASE_BUG_H

#include <stdbool.h>

#ifdef CLAIMD_SEEDED_BUGS
bool bug_is_on(int number);
#define SEEDED_BUG(number) bug_is_on(number)
#else
#define SEEDED_BUG(number) false
#endif

#endif
