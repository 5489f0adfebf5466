/* SPDX-License-Identifier: Apache-2.0
 *
 * One state of the line's model: clients that want one key, nodes, and what is in flight between
 * them. A node's answer is stored when it is sent; the client may act on it at any later time. */
#ifndef CLAIMD_TESTS_MODEL_LINE_STATE_H
#define CLAIMD_TESTS_MODEL_LINE_STATE_H

#include "line_node.h"

#define LINE_NODES_MAX 5

enum line_phase {
    PHASE_IDLE,
    PHASE_TRYING,  /* SET NX was sent to all nodes */
    PHASE_ASKING,  /* enter was sent to all nodes */
    PHASE_WAITING, /* in line */
    PHASE_HOLDING,
    PHASE_DONE,
    PHASE_DEAD
};

/* A command that a client has sent to a node, which has not run it. */
enum line_cmd {
    CMD_NONE,
    CMD_SET,
    CMD_SET_IN_VAIN, /* no client waits for the reply */
    CMD_ENTER,
    CMD_ENTER_IN_VAIN,
    CMD_LEAVE,
    CMD_LEAVE_GAP,
    CMD_YIELD /* to no client; then come those to client 0 and so on */
};
#define CMD_BITS 4
#define CMDS_MAX 4

enum line_budget {
    MAY_DIE = 1,
    MAY_LOSE_LINE = 2,
    MAY_LOSE_SESSIONS = 4,
    MAY_EXPIRE = 8, /* of an offer while its owner lives */
    MAY_GIVE_UP = 16,
    MAY_CUT = 32,          /* a round is cut: one node does not answer in time */
    MAY_LOSE_MESSAGE = 64, /* any number of messages */
    MAY_LOSE_LEAVE = 128,
    MAY_GAP = 256,
    MAY_FOREIGN = 512, /* two nodes at most: MAY_FOREIGN_AGAIN is for the second */
    MAY_FOREIGN_AGAIN = 1024
};

struct line_heard { /* what a client has heard from a node */
    uint8_t answer : 3;
    uint8_t is_offered : 1; /* received or in flight since the last round; acted on later */
    uint8_t is_late : 1;    /* such a message, in flight when the next round was sent */
    uint8_t is_kept : 1;
};

struct line_link {
    uint16_t cmds[LINE_CLIENTS_MAX]; /* CMD_BITS each, the next command in the lowest */
    struct line_heard heard[LINE_CLIENTS_MAX];
};

struct line_place {
    struct line_node node;
    struct line_link link;
};

struct line_state {
    uint8_t phase[LINE_CLIENTS_MAX];
    uint16_t budget;
    uint8_t kept_long; /* bits: the client keeps votes against a foreign one */
    /* Bits by before_bit(): it was in line on a quorum before the other one began. */
    uint8_t before;
    struct line_place places[LINE_NODES_MAX];
};

/* Requires a < b. */
static inline uint8_t before_bit(size_t a, size_t b)
{
    return (uint8_t)(1U << (b * (b - 1) / 2 + a));
}

static inline bool line_is_in_line(uint8_t phase)
{
    return phase == PHASE_TRYING || phase == PHASE_ASKING || phase == PHASE_WAITING;
}

size_t link_count(const struct line_link *l, size_t client);
enum line_cmd link_next(const struct line_link *l, size_t client);
bool link_has(const struct line_link *l, size_t client, enum line_cmd cmd);
void link_push(struct line_link *l, size_t client, unsigned cmd);
void link_pop(struct line_link *l, size_t client);
/* Marks the replies to everything in flight as not awaited. */
void link_forget(struct line_link *l, size_t client);
void link_drop(struct line_link *l, size_t client, enum line_cmd cmd);

/* Drops what cannot make a difference any more, and sorts the nodes, which are interchangeable. */
void line_normalize(struct line_state *s, size_t nodes, size_t clients, bool keeps_answers);

#endif
