/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin built with the first header of ABI 1, before any struct of it grew: these are its
 * structs, and they never change. */
#include "claimd/plugin.h"

struct kind_then {
    const char *name;
    claimd_handle_fn *handle;
    int64_t timeout_ms;
    int32_t max_attempts;
    int32_t max_crashes;
    int32_t at_most_once;
    int32_t reserved;
};

struct plugin_then {
    uint32_t abi;
    uint32_t size;
    uint32_t kind_size;
    uint32_t reserved;
    const char *name;
    const char *version;
    int (*init)(const struct claimd_host *host);
    void (*fini)(void);
    struct kind_then kinds[64];
};

static enum claimd_outcome done(const struct claimd_context *job)
{
    return claimd_done(job, NULL);
}

extern CLAIMD_EXPORT const struct plugin_then claimd_plugin;
const struct plugin_then claimd_plugin = {
    .abi = 1,
    .size = sizeof(struct plugin_then),
    .kind_size = sizeof(struct kind_then),
    .name = "first_abi",
    .version = "1.0",
    .kinds = {{.name = "first", .handle = done}, {.name = "second", .handle = done}}};
