/* SPDX-License-Identifier: Apache-2.0
 *
 * Scope-bound ownership: a variable declared with one of these attributes frees what it holds when
 * its scope ends. Always initialise it in the declaration, and use TAKE() to pass ownership on.
 * Never free such a variable by hand, and never longjmp out of its scope. The release functions
 * preserve errno. */
#ifndef CLAIMD_BASE_CLEANUP_H
#define CLAIMD_BASE_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MUST_USE __attribute__((__warn_unused_result__))
#define PRINTF_LIKE(format_index, first_arg) \
    __attribute__((__format__(__printf__, format_index, first_arg)))
#define CLEANUP(function) __attribute__((__cleanup__(function)))

/* Transfers ownership: yields the pointer and leaves NULL in the variable. */
#define TAKE(p)                     \
    __extension__({                 \
        __typeof__(p) taken_ = (p); \
        (p) = NULL;                 \
        taken_;                     \
    })

#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))

static inline void free_slot(void *slot)
{
    void *p = NULL;
    memcpy(&p, slot, sizeof p); /* copies a pointer of any type without violating strict aliasing */
    int saved = errno;
    free(p);
    errno = saved;
}

static inline void close_slot(const int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        (void)close(*fd);
        errno = saved;
    }
}

#define autofree CLEANUP(free_slot)
#define autoclose CLEANUP(close_slot)

#endif
