/* SPDX-License-Identifier: Apache-2.0
 *
 * A shared object that is no plugin. */
#include "claimd/plugin.h"

extern CLAIMD_EXPORT const int something_else;
const int something_else = 1;
