/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin of an ABI that this host does not speak. */
#include "claimd/plugin.h"

extern CLAIMD_EXPORT const struct claimd_plugin claimd_plugin;
const struct claimd_plugin claimd_plugin = {
    .abi = 7, .size = sizeof(struct claimd_plugin), .name = "wrong_abi", .version = "1.0"};
