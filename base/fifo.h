/* SPDX-License-Identifier: Apache-2.0
 *
 * A first in, first out queue of structs that contain its link. Unlike with <sys/queue.h>, a zeroed
 * queue is empty, and a copy takes over everything. It owns nothing. */
#ifndef CLAIMD_BASE_FIFO_H
#define CLAIMD_BASE_FIFO_H

#include <stddef.h>

/* Defines struct `name`, a queue of structs `item` through their member `next`, and for it
 * name_push() at its end, name_push_front(), and name_pop() from its front: NULL when empty. */
#define DEFINE_FIFO(name, item)                                          \
    struct name {                                                        \
        struct item *first;                                              \
        struct item *last;                                               \
        size_t count;                                                    \
    };                                                                   \
                                                                         \
    static inline void name##_push(struct name *q, struct item *i)       \
    {                                                                    \
        i->next = NULL;                                                  \
        if (q->first == NULL) {                                          \
            q->first = i;                                                \
        } else {                                                         \
            q->last->next = i;                                           \
        }                                                                \
        q->last = i;                                                     \
        q->count++;                                                      \
    }                                                                    \
                                                                         \
    static inline void name##_push_front(struct name *q, struct item *i) \
    {                                                                    \
        i->next = q->first;                                              \
        if (q->first == NULL) {                                          \
            q->last = i;                                                 \
        }                                                                \
        q->first = i;                                                    \
        q->count++;                                                      \
    }                                                                    \
                                                                         \
    static inline struct item *name##_pop(struct name *q)                \
    {                                                                    \
        struct item *i = q->first;                                       \
        if (i != NULL) {                                                 \
            q->first = i->next;                                          \
            i->next = NULL;                                              \
            q->count--;                                                  \
        }                                                                \
        return i;                                                        \
    }                                                                    \
    struct name

#endif
