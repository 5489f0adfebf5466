/* SPDX-License-Identifier: Apache-2.0
 *
 * shout: its args, in capitals. */
#include <claimd/plugin.h>
#include <ctype.h>

static enum claimd_outcome shout(const struct claimd_context *job)
{
    char text[1024];
    if (job->args_len >= sizeof text) {
        return claimd_fail(job, "too much to shout: %zu bytes", job->args_len);
    }
    for (size_t i = 0; i <= job->args_len; i++) { /* with the 0 at its end */
        text[i] = (char)toupper((unsigned char)job->args[i]);
    }
    return claimd_done(job, text);
}

CLAIMD_PLUGIN(.name = "shout", .version = "1.0", .kinds = {{.name = "shout", .handle = shout}})
