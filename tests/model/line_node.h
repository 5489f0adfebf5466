/* SPDX-License-Identifier: Apache-2.0
 *
 * One node and one key: what redlock/core/line_scripts.c does there, in C. A test compares the two
 * on a real server (test_redlock_line_scripts.c). Clients are numbers, which also give their order:
 * the lower number has the lower score. There is no time: what expires may do so at any moment. */
#ifndef CLAIMD_TESTS_MODEL_LINE_NODE_H
#define CLAIMD_TESTS_MODEL_LINE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_CLIENTS_MAX 4

/* The owner of the key, as the node stores it and as it answers. */
enum {
    OWNER_NOBODY = 0, /* as an answer: none so far */
    OWNER_FIRST = 1,  /* client 0; the others follow it */
    OWNER_FREE = 6,   /* an answer: free, but the asking client does not get it */
    OWNER_FOREIGN = 7
};

enum foreign_seen { FOREIGN_UNSEEN, FOREIGN_HAS_IT, FOREIGN_HAD_IT, FOREIGN_INVITED };
enum turns { TURNS_NONE, TURNS_RUN, TURNS_OVER };

struct line_node {
    uint8_t owner;
    uint8_t line;         /* one bit per client */
    uint8_t alive;        /* clients whose session lives */
    uint8_t is_lease : 1; /* the owner has it for a full ttl; else for the duration of an offer */
    uint8_t has_any : 1;
    uint8_t is_away : 1;
    uint8_t turns : 2;
    uint8_t foreign : 2;
};

enum node_gap { GAP_NONE, GAP_NEAR, GAP_DUE }; /* near: foreign clients were seen */

struct node_reply {
    uint8_t answer; /* for enter: the owner */
    int8_t rank;    /* for enter: −1 = not in line */
    enum node_gap gap;
    int8_t code;     /* reply of yield and refresh; refresh: 1 = look again later */
    bool was_mine;   /* for leave */
    uint8_t offered; /* bits of the clients that receive "it is offered to you" */
    uint8_t told;    /* … "ask for it in that many ms" */
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
/* `takes_any`: without lock.L2, any client that asks gets a free key. */
struct node_reply node_enter(struct line_node *n, size_t client, bool takes_any);
struct node_reply node_leave(struct line_node *n, size_t client, bool has_gap, bool tells);
/* `to` = OWNER_NOBODY: to no client. */
struct node_reply node_yield(struct line_node *n, size_t client, uint8_t to);
struct node_reply node_refresh(struct line_node *n, size_t client);

/* Frees the key, by expiry or by an act of a client without a line. */
void node_expire(struct line_node *n);

#endif
