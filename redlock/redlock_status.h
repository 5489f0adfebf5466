/* SPDX-License-Identifier: Apache-2.0
 *
 * redlock: inspecting nodes, keys and the client itself. See redlock.h for the conventions. */
#ifndef REDLOCK_STATUS_H
#define REDLOCK_STATUS_H

#include "redlock.h"

#ifdef __cplusplus
extern "C" {
#endif

const char *redlock_version(void);

/* ---- the client ---- */

#define REDLOCK_LATENCY_BUCKETS 20

struct redlock_stats {
    size_t size;
    uint64_t results[16]; /* number of keys, by result; with room for future results */
    uint64_t node_errors;
    uint64_t extended;
    uint64_t lost;
    /* nodes on which another client had a key before our lease of it ended: must be 0 */
    uint64_t stolen;
    uint64_t healed; /* copies that a node had lost and that were restored (lock.E6) */
    uint64_t release_deleted;
    uint64_t release_missing;
    uint64_t release_unknown;
    uint64_t wakeups;
    uint64_t held;    /* current number of keys */
    uint64_t waiting; /* current number of requests */
    /* Durations of won rounds: bucket i counts those that took ≤ 2^i · 10 µs and are in no smaller
     * bucket; the last one counts the rest. */
    uint64_t latency[REDLOCK_LATENCY_BUCKETS];
};
void redlock_get_stats(struct redlock_client *client, struct redlock_stats *ret_stats);

/* ---- nodes ---- */

struct redlock_node_info {
    char name[272];  /* "host:port" or "unix:/path"; never a password */
    char server[16]; /* "redis" or "valkey"; "" = never connected */
    char version[24];
    char run_id[41];
    char evict_policy[24];
    bool is_up;
    bool may_vote;
    bool is_master;
    bool has_native; /* compare-and-set and compare-and-delete without scripts (lock.C9) */
    int64_t uptime_ms;
    int64_t quarantine_ms; /* time left of it */
    /* offset of its wall clock from ours at the last sample; INT64_MIN = none */
    int64_t clock_offset_us;
    char why[REDLOCK_TEXT_SIZE]; /* why it may not vote */
};
/* Fills in one entry per node, at most `max`. Returns how many. */
size_t redlock_nodes(struct redlock_client *client, struct redlock_node_info *ret_nodes,
                     size_t max);

/* Computes 16 hexadecimal digits that are equal for equal lists of nodes, in any order. Two
 * programs with different lists may hold the same lock at once (lock.N8). */
#define REDLOCK_FINGERPRINT_SIZE 17
enum redlock_result redlock_fingerprint(const char *nodes, char ret_text[REDLOCK_FINGERPRINT_SIZE],
                                        struct redlock_report *ret_report);

/* ---- keys ---- */

struct redlock_holding {    /* the state of a key on one node */
    enum redlock_vote vote; /* OK = free there, REFUSED = held, else no answer */
    char holder[9];         /* the first 8 characters of its token, never all of it */
    int64_t ttl_ms;         /* -1 = without expiry */
    /* The label of its client; "" = none. Printable, but anyone may have written it. */
    char label[REDLOCK_LABEL_LEN_MAX + 1];
    size_t waiting; /* number of waiters in line; 0 also if our user may not read it */
};
/* Finds out who holds a key on which node. Blocks ≤ τ. */
enum redlock_result redlock_inspect(struct redlock_client *client, const char *key,
                                    struct redlock_holding ret_holdings[REDLOCK_NODES_MAX],
                                    struct redlock_report *ret_report);

/* For operators: takes a key away from its holder, or hands it over to the first in line, on each
 * node where the value is still the one just read (lock.R8). The holder gets LOST at its next
 * extension; until then it relies on a lock that another client may have. OK: enough nodes have
 * deleted the key that the lock is broken, or it was free. NO_QUORUM: too few; the report counts
 * nodes. Blocks ≤ τ. */
enum redlock_result redlock_break(struct redlock_client *client, const char *key,
                                  struct redlock_report *ret_report);

#ifdef __cplusplus
}
#endif

#endif
