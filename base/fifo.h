/* SPDX-License-Identifier: Apache-2.0
 *
 * A first-in, first-out queue of structs that contain its link. Unlike <sys/queue.h>, a zeroed
 * queue is empty, and a queue can be moved by copying the struct. The queue does not own its
 * items. */
#ifndef CLAIMD_BASE_FIFO_H
#define CLAIMD_BASE_FIFO_H

#include <stddef.h>

/* Defines struct `name`, a queue of structs `item` linked through their member `next`, with
 * name_push() (at the end), name_push_front() and name_pop() (from the front; NULL if the queue is
 * empty). */
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
