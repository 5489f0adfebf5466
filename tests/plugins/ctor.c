/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled once per way to go wrong before the runner can call it. */
#include "claimd/plugin.h"

#if CTOR_DOES == 6
#include "protocol/protocol.h"
#endif

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((__constructor__)) static void construct(void)
{
#if CTOR_DOES == 1
    (void)raise(SIGSEGV);
#elif CTOR_DOES == 2
    exit(0);
#elif CTOR_DOES == 3
    (void)pause();
#elif CTOR_DOES == 4
    if (fcntl(3, F_GETFD) >= 0) { /* not in the process that only tries it out */
        abort();
    }
#elif CTOR_DOES == 5
    if (fcntl(3, F_GETFD) >= 0) {
        (void)pause();
    }
#elif CTOR_DOES == 6
    static const unsigned char hello[] = {4,   0,  0, 0, FRAME_HELLO, RUNNER_PROTOCOL_VERSION,
                                          '{', '}'};
    if (write(RUNNER_FD_FRAMES, hello, sizeof hello) > 0) { /* in its runner's name */
        (void)pause();
    }
#endif
}

static enum claimd_outcome done(const struct claimd_context *job)
{
    return claimd_done(job, NULL);
}

CLAIMD_PLUGIN(.name = "ctor", .version = "1.0", .kinds = {{.name = "ctor", .handle = done}})
