/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeded bugs (docs/reliability.md): mistakes that the checkers of tests/chaos must notice. They
 * exist in one build of their own, the preset `bugs`, where CLAIMD_BUG=N in the environment
 * switches number N on. Everywhere else SEEDED_BUG() is the constant false, and no code of theirs
 * is built. */
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
