/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLAIMD_TESTS_SUPPORT_LOCK_NODE_H
#define CLAIMD_TESTS_SUPPORT_LOCK_NODE_H

/* The words of a command that counts the keys of a lock node, except the canary and T_max (lock.N9,
 * N10). */
#define COUNT_LOCKS                                                    \
    "EVAL",                                                            \
        "return #redis.call('KEYS', '*') - "                           \
        "redis.call('EXISTS', 'redlock:canary', 'claimd:job:canary', " \
        "'redlock:ttl_max', 'claimd:job:ttl_max')",                    \
        "0"

#endif
