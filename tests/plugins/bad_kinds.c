/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled once per way in which a description can be wrong. */
#include "claimd/plugin.h"

static enum claimd_outcome done(const struct claimd_context *job)
{
    return claimd_done(job, NULL);
}

#if BAD_KIND == 1
CLAIMD_PLUGIN(.name = "bad", .version = "1.0", .kinds = {{.name = "Not-A-Name", .handle = done}})
#elif BAD_KIND == 2
CLAIMD_PLUGIN(.name = "bad", .version = "1.0",
              .kinds = {{.name = "late", .handle = done, .timeout_ms = -5}})
#elif BAD_KIND == 3
/* The kind of another plugin, and an init that must not be reached. */
static int refuse(const struct claimd_host *host)
{
    (void)host;
    return 3;
}
CLAIMD_PLUGIN(.name = "second", .version = "1.0", .init = refuse,
              .kinds = {{.name = "fail", .handle = done}})
#elif BAD_KIND == 4
static int refuse(const struct claimd_host *host)
{
    return host->size > 0 ? 3 : 4;
}
CLAIMD_PLUGIN(.name = "refuses", .version = "1.0", .init = refuse,
              .kinds = {{.name = "refused", .handle = done}})
#elif BAD_KIND == 5
CLAIMD_PLUGIN(.name = "bad", .version = "1.0",
              .kinds = {{.name = "restless", .handle = done, .backoff = "often"}})
#endif
