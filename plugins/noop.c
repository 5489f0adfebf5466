/* SPDX-License-Identifier: Apache-2.0
 *
 * noop: does nothing, for measurements and first steps. */
#include "claimd/plugin.h"

static enum claimd_outcome noop(const struct claimd_context *job)
{
    return claimd_done(job, NULL);
}

CLAIMD_PLUGIN(.name = "noop", .version = CLAIMD_RELEASE,
              .kinds = {{.name = "noop", .handle = noop}})
