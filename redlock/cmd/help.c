/* SPDX-License-Identifier: Apache-2.0
 *
 * The help of the command and of each of its verbs. */
#include "redlock/cmd/cli.h"

#include <stdio.h>

static const char help_command[] =
    "Usage: redlock VERB …\n"
    "\n"
    "Locks over independent Redis or Valkey masters; what flock(1) is for one host.\n"
    "\n"
    "  exec KEY [OPTION…] -- COMMAND [ARG…]  run a command under the lock\n"
    "  elect KEY [OPTION…] -- COMMAND [ARG…] the same on one of many hosts, whichever is up\n"
    "  status KEY                            who holds it, and for how long\n"
    "  break KEY                             take it away from its holder\n"
    "  nodes                                 which nodes may vote, and why not\n"
    "  bench                                 how fast these nodes are\n"
    "  help VERB                             what a verb's options are\n"
    "\n"
    "  --version\n";

static const char help_nodes[] =
    "\n"
    "Where the locks are:\n"
    "  --nodes URL,URL,…     1 to 9 nodes, the same list everywhere (or REDLOCK_NODES): host,\n"
    "                        host:port, unix:/path, redis://[user[:password]@]host[:port][/db],\n"
    "                        rediss://… with TLS; a password in an argument is visible to all\n"
    "  --user NAME           where the URL has none (or REDLOCK_USER)\n"
    "  --password-file FILE  its first line (or REDLOCK_PASSWORD)\n"
    "  --ca-file FILE, --cert-file FILE, --key-file FILE  for rediss://\n"
    "  --ttl T               of the lease: 1s to 24h (30s)\n"
    "  --ttl-max T           the longest that anybody uses on these nodes (the ttl)\n"
    "  --node-timeout T      how long to wait for one node (ttl / 100, 10ms to 100ms)\n"
    "  --trust-fresh         nodes that were started a moment ago may vote\n"
    "\n"
    "T is a number of seconds, or a number with ms, s, m, h or d.\n";

static const char help_exec[] =
    "Usage: redlock exec KEY [OPTION…] -- COMMAND [ARG…]\n"
    "\n"
    "Runs COMMAND in a process group of its own while holding the lock KEY.\n"
    "\n"
    "  --wait T|forever        wait for the lock (0: give up at once if another holds it)\n"
    "  --max-hold T            the lock ends then, and COMMAND with it\n"
    "  --min-hold T            keep the lock so long even if COMMAND ends sooner\n"
    "  --slots N               a semaphore: up to N may run at once; the same N everywhere\n"
    "  -s, --shared            up to 16, or --slots, readers may run at once,\n"
    "  -x, --exclusive         or one writer alone\n"
    "  --on-lost kill|warn     what happens to COMMAND when the lease can't be kept (kill)\n"
    "  --kill-after T          how long before its end COMMAND gets SIGTERM (ttl / 6)\n"
    "  --fence                 a number that rises with each grant, in COMMAND's REDLOCK_FENCE\n"
    "  -E, --conflict-exit-code N  when another holds the lock (75); 0: and say nothing\n"
    "  -q, --quiet             say nothing about the lock: the exit code tells\n"
    "  -v, --verbose           say on stderr what happens\n"
    "\n"
    "Exit code: COMMAND's, 128 + its signal; 75 not won in time, 69 no quorum, 74 lost,\n"
    "64 usage, 78 a node is unsuitable, 71 system, 126 can't be run, 127 not found.\n";

static const char help_elect[] =
    "Usage: redlock elect KEY [OPTION…] -- COMMAND [ARG…]\n"
    "\n"
    "Waits until it holds the lock KEY, and runs COMMAND. When the lock is lost, COMMAND is ended\n"
    "as with exec, and redlock waits again: of all hosts that say this, one runs COMMAND.\n"
    "\n"
    "  --max-hold T    COMMAND is ended then, for another host to have its turn\n"
    "  --kill-after T  how long before its end COMMAND gets SIGTERM (ttl / 6)\n"
    "  --fence         a number that rises with each grant, in COMMAND's REDLOCK_FENCE\n"
    "  -q, --quiet     say nothing about the lock\n"
    "  -v, --verbose   say on stderr what happens\n"
    "\n"
    "Exit code: COMMAND's, once that has ended by itself; 128 + a signal that ended the wait;\n"
    "69, 64, 78, 71, 126 and 127 as with exec.\n";

static const char help_status[] =
    "Usage: redlock status KEY [--json] [OPTION…]\n"
    "\n"
    "Who holds KEY on which node, for how long still, and whether that is a lock.\n"
    "Exit code: 0 held, 1 free, 2 split: neither, 69 no quorum answered.\n";

static const char help_break[] =
    "Usage: redlock break KEY [OPTION…]\n"
    "\n"
    "Takes KEY away from its holder, who learns of it when it extends the lease next. For locks\n"
    "whose holder is known to be gone.\n"
    "Exit code: 0 broken, 1 it was free, 69 too few nodes have deleted it.\n";

static const char help_nodes_verb[] =
    "Usage: redlock nodes [--json] [OPTION…]\n"
    "\n"
    "Each node's server, role, eviction policy, quarantine and clock, whether it may vote, and "
    "why\n"
    "not; and the fingerprint of the list, which must be the same everywhere.\n"
    "Exit code: 0 a quorum may vote, 69 it may not.\n";

static const char help_bench[] =
    "Usage: redlock bench [--json] [OPTION…]\n"
    "\n"
    "Takes and gives back locks of its own (redlock-bench:…) as fast as it can.\n"
    "\n"
    "  --seconds N    how long (5)\n"
    "  --in-flight N  acquisitions at once (50)\n"
    "  --batch K      keys of each: 1 to 512 (1)\n";

static const struct {
    const char *verb;
    const char *text;
} texts[] = {{"exec", help_exec},   {"elect", help_elect},      {"status", help_status},
             {"break", help_break}, {"nodes", help_nodes_verb}, {"bench", help_bench}};

void cli_help(const char *verb)
{
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        if (verb != NULL && strcmp(texts[i].verb, verb) == 0) {
            (void)printf("%s%s", texts[i].text, help_nodes);
            return;
        }
    }
    (void)printf("%s", help_command);
}
