/* SPDX-License-Identifier: Apache-2.0
 *
 * One node and one key: what redlock/core/line_scripts.c does there, in C. A test compares the two
 * on a real server (test_redlock_line_scripts.c). Clients are numbers, and that is their order,
 * too: the lower number has the lower score. There is no time: what ends may end at any moment. */
#ifndef CLAIMD_TESTS_MODEL_LINE_NODE_H
#define CLAIMD_TESTS_MODEL_LINE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_CLIENTS_MAX 4

/* Who has the key, as the node knows it and as it says in its answer. */
enum {
    OWNER_NOBODY = 0, /* as an answer: none so far */
    OWNER_FIRST = 1,  /* client 0; the others follow */
    OWNER_FREE = 6,   /* an answer: nobody, and who asks does not get it */
    OWNER_FOREIGN = 7
};

enum foreign_seen { FOREIGN_UNSEEN, FOREIGN_HAS_IT, FOREIGN_HAD_IT, FOREIGN_INVITED };
enum turns { TURNS_NONE, TURNS_RUN, TURNS_OVER };

struct line_node {
    uint8_t owner;
    uint8_t line;         /* bits of clients */
    uint8_t alive;        /* whose session lives */
    uint8_t is_lease : 1; /* the owner has it for a full ttl; else for the length of an offer */
    uint8_t has_any : 1;
    uint8_t is_away : 1;
    uint8_t turns : 2;
    uint8_t foreign : 2;
};

enum node_gap { GAP_NONE, GAP_NEAR, GAP_DUE }; /* near: foreign clients were seen */

struct node_reply {
    uint8_t answer; /* enter: the owner */
    int8_t rank;    /* enter: −1 = not in line */
    enum node_gap gap;
    int8_t code;     /* yield and refresh: what they reply; refresh: 1 = look again later */
    bool was_mine;   /* leave */
    uint8_t offered; /* bits of the clients that get "it is offered to you" */
    uint8_t told;    /* … "ask for it in so many ms" */
};

static inline uint8_t client_bit(size_t client)
{
    return (uint8_t)(1U << client);
}

static inline uint8_t owner_of(size_t client)
{
    return (uint8_t)(OWNER_FIRST + client);
}

static inline bool is_client(uint8_t owner)
{
    return owner >= OWNER_FIRST && owner < OWNER_FIRST + LINE_CLIENTS_MAX;
}

struct node_reply node_set(struct line_node *n, size_t client); /* SET NX GET, with the full ttl */
/* `takes_any`: a rule is taken away, a free key goes to whoever asks (lock.L2). */
struct node_reply node_enter(struct line_node *n, size_t client, bool takes_any);
struct node_reply node_leave(struct line_node *n, size_t client, bool has_gap, bool tells);
/* `to` = OWNER_NOBODY: to nobody. */
struct node_reply node_yield(struct line_node *n, size_t client, uint8_t to);
struct node_reply node_refresh(struct line_node *n, size_t client);

/* What ends by itself, or by a client that knows no line. */
void node_expire(struct line_node *n);

#endif
