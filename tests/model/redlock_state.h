/* SPDX-License-Identifier: Apache-2.0
 *
 * One situation of the model: two clients, three nodes, and what is on its way between them. */
#ifndef CLAIMD_TESTS_MODEL_REDLOCK_STATE_H
#define CLAIMD_TESTS_MODEL_REDLOCK_STATE_H

#include "redlock_model.h"

#define NODES 3
#define ATTEMPTS 2
#define TTL 3
#define DRIFT 1

enum stage { IDLE, ASKING, HOLDING, OVER };

/* Of a request and its reply. */
enum way {
    NOT_SENT,
    ASKED,         /* on its way to the node */
    ASKED_IN_VAIN, /* the same, but nobody waits for the reply */
    SAID_YES,      /* the reply is on its way */
    SAID_NO,
    SAID_MISSING, /* of extending */
    DEAD,         /* lost with its connection; the client has not noticed */
    DONE
};

struct talk { /* of one attempt with one node */
    uint8_t set : 3;
    uint8_t extend : 3;
    uint8_t heal : 1; /* these two are on their way, and nobody waits for an answer */
    uint8_t release : 1;
};

struct node {
    uint8_t owner;      /* attempt + 1; 0 = nobody */
    uint8_t expires_in; /* at the latest; a fast clock may do it DRIFT ticks earlier */
    uint8_t quarantine;
    uint8_t is_flushed; /* and has gone on, a quarantine ago at most */
    struct talk talks[ATTEMPTS];
};

struct attempt {
    uint8_t stage;
    uint8_t age;   /* since t0, at most TTL */
    uint8_t lasts; /* until the deadline */
    uint8_t lease_state;
    uint8_t ok;
    uint8_t refused;
    uint8_t error;
    uint8_t extensions;
    uint8_t is_extending;
    uint8_t round_age;
    uint8_t confirmed;
    uint8_t denied;
    uint8_t failed;
};

/* All times are ticks from now, so the same situation later is the same state, and the search has
 * no end of time. */
struct state {
    uint8_t losses_left; /* of a node's memory: it restarts, or is flushed */
    struct attempt attempts[ATTEMPTS];
    struct node nodes[NODES];
};

/* Drops what can't make a difference any more, and chooses one of those that differ by the names of
 * nodes and clients only: states differ where they behave so. */
void state_normalize(struct state *s);

#endif
