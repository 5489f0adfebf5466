/* SPDX-License-Identifier: Apache-2.0
 *
 * Initial rows for the tests of claimctl jobs, and functions to read its JSON. */
#ifndef CLAIMD_TESTS_CTL_ROWS_H
#define CLAIMD_TESTS_CTL_ROWS_H

#include "ctl_fixture.h"

/* A worker that serves kind `a` of queue `default`; its heartbeat is `beat_age` old, and stale
 * after 8 s. */
#define WORKER_ID "00000000-0000-0000-0000-0000000000aa"
#define INSERT_WORKER(beat_age)                                                               \
    "INSERT INTO claimd.worker (worker_id, beat_at, stale_at, pid, slots, running, host, "    \
    "state_dir, token_prefix, version, queues, kinds) VALUES ('" WORKER_ID "', now() - "      \
    "interval '" beat_age "', now() + interval '8 s' - interval '" beat_age "', 4711, 4, 1, " \
    "'host-1', '/s', 'p', '1', '{default}', '{a}')"
#define MAKE_RUNNING                                                                   \
    "UPDATE claimd.job SET state = 'running', attempt = 1, fence = 7, attempted_at = " \
    "clock_timestamp() - interval '3 s', worker_id = '" WORKER_ID "' WHERE id = 1"

static inline json_t *first(json_t *root, const char *table)
{
    return json_array_get(json_object_get(root, table), 0);
}

static inline void assert_text(json_t *row, const char *key, const char *wanted)
{
    const char *found = json_string_value(json_object_get(row, key));
    ck_assert_ptr_nonnull(found);
    ck_assert_str_eq(found, wanted);
}

static inline void enqueue_one(const char *kind)
{
    ck_assert_int_eq(ctl_exit("enqueue", kind), 0);
}

#endif
