/* SPDX-License-Identifier: Apache-2.0
 *
 * One state of the model: two clients, three nodes, and what is in flight between them. */
#ifndef CLAIMD_TESTS_MODEL_REDLOCK_STATE_H
#define CLAIMD_TESTS_MODEL_REDLOCK_STATE_H

#include "redlock_model.h"

#define NODES 3
#define ATTEMPTS 2
#define TTL 3
#define DRIFT 1

enum stage { IDLE, ASKING, HOLDING, OVER };

/* The progress of a request and its reply. */
enum way {
    NOT_SENT,
    ASKED,         /* in flight to the node */
    ASKED_IN_VAIN, /* likewise, but no client waits for the reply */
    SAID_YES,      /* the reply is in flight */
    SAID_NO,
    SAID_MISSING, /* reply to an extension */
    DEAD,         /* lost with its connection; the client has not noticed */
    DONE
};

struct talk { /* between one attempt and one node */
    uint8_t set : 3;
    uint8_t extend : 3;
    uint8_t heal : 1; /* these two are in flight, and no answer is awaited */
    uint8_t release : 1;
};

struct node {
    uint8_t owner;      /* attempt + 1; 0 = none */
    uint8_t expires_in; /* at the latest; a fast clock may be DRIFT ticks early */
    uint8_t quarantine;
    uint8_t is_flushed; /* while running, at most a quarantine ago */
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

/* All times are ticks relative to now, so the same situation at a later time is the same state, and
 * the search needs no end of time. */
struct state {
    uint8_t losses_left; /* losses of a node's memory by a restart or a flush */
    struct attempt attempts[ATTEMPTS];
    struct node nodes[NODES];
};

/* Drops what cannot make a difference any more, and chooses one of the states that differ only by
 * the names of nodes and clients, so that states differ only if they behave differently. */
void state_normalize(struct state *s);

#endif
