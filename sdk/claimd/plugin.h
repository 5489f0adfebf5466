/* SPDX-License-Identifier: Apache-2.0
 *
 * claimd plugin ABI 1. A plugin is a shared object that exports one data symbol, `claimd_plugin`;
 * it links nothing of claimd and includes only this file. Handlers run in a process of their
 * own, one job at a time: a crash, a leak or an endless loop costs one attempt of one job.
 *
 *     static enum claimd_outcome greet(const struct claimd_context *job)
 *     {
 *         claimd_log(job, "hello from job %lld", (long long)job->id);
 *         return claimd_done(job, "{\"greeted\": true}");
 *     }
 *     CLAIMD_PLUGIN(.name = "greet", .version = "1.0",
 *                   .kinds = {{.name = "greet", .handle = greet}})
 *
 *     cc -shared -fPIC -o greet.so greet.c
 *
 * A handler runs in the directory `/`, as the worker's user, with an empty standard input. From the
 * worker's environment it gets only PATH, HOME, LANG, TZ and TMPDIR, if they are set. At its
 * timeout it is asked to stop; if it still runs after its kind's grace_ms (2 s by default), it is
 * killed.
 *
 * A job runs at least once: make effects safe to repeat (use `idempotency_key`, or check `fence` at
 * the target), or declare the kind `at_most_once`. Structs only grow at their end; a `size` field
 * gives the size of the struct that is really there. */
#ifndef CLAIMD_PLUGIN_H
#define CLAIMD_PLUGIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CLAIMD_ABI 1
#define CLAIMD_KINDS_MAX 64
#define CLAIMD_RETRY_AFTER_MS_MAX 31622400000 /* 366 days */
#define CLAIMD_GRACE_MS_MAX 3600000           /* an hour */
#define CLAIMD_SNOOZE_MS_MIN 1000             /* a shorter snooze lasts this long */

enum claimd_outcome {
    CLAIMD_DONE = 1, /* completed; the result, if one was set, is stored */
    CLAIMD_RETRY,    /* failed: runs again after its backoff, or after claimd_retry()'s delay */
    CLAIMD_FAIL,     /* failed for good: discarded */
    /* SNOOZE and CANCEL exist since claimd 0.2; an older one fails the job for good. */
    /* Not now: runs again after claimd_snooze()'s delay, and the attempt is not counted. For an
     * at_most_once kind this is RETRY. */
    CLAIMD_SNOOZE,
    CLAIMD_CANCEL /* no longer wanted: ends as `cancelled`, with claimd_cancel()'s reason */
};
#define CLAIMD_OUTCOME_LAST CLAIMD_CANCEL

struct claimd_context;

/* The functions of the host; append-only. Strings that are passed in are copied. Call them from the
 * handler's own thread; only should_stop and is_cancelled may be called from other threads. */
struct claimd_host {
    size_t size;
    /* Returns 1 when the handler should end: shutdown, timeout, cancel, or the lease is in danger.
     * The process is killed soon after that, in the case of a timeout after its kind's grace_ms. A
     * SIGTERM (without SA_RESTART) at the same time interrupts a blocking system call. */
    int (*should_stop)(const struct claimd_context *job);
    void (*log)(const struct claimd_context *job, const char *format, va_list args);
    /* Sets the result: JSON text, at most 64 KiB with its exponents written out. Returns 0, or −1
     * if it is too long. The last call counts. If the result is refused, here because of its length
     * or by PostgreSQL because it is not JSON, the job fails for good. */
    int (*set_result)(const struct claimd_context *job, const char *json, size_t len);
    /* Sets the reason for RETRY, FAIL, SNOOZE or CANCEL. If retry_after_ms is negative or more than
     * CLAIMD_RETRY_AFTER_MS_MAX, the usual backoff applies. */
    void (*set_error)(const struct claimd_context *job, long retry_after_ms, const char *format,
                      va_list args);
    /* Since claimd 0.2. Returns 1 if a cancel of this job was requested; should_stop then returns 1
     * as well. The process is killed after its kind's grace_ms. Unless the handler still returns
     * DONE, the job ends as cancelled. May be called from any thread. */
    int (*is_cancelled)(const struct claimd_context *job);
    /* Sets the progress of the job: 0 to 100, and a text of at most 200 characters or NULL. Returns
     * 0, or −1 if refused, which changes nothing. For people; stored at most once a second. */
    int (*set_progress)(const struct claimd_context *job, int percent, const char *text);
    /* Stores a checkpoint for the job's next attempt, in place of the last one: JSON text, at most
     * 64 KiB with a space after each comma and colon. Returns 0, or −1 if refused. Stored within
     * about a second, and when the attempt ends, even by a crash. */
    int (*set_checkpoint)(const struct claimd_context *job, const char *json, size_t len);
};

/* True if this host has that member. */
#define CLAIMD_HOST_HAS(host, member) \
    ((host)->size >= offsetof(struct claimd_host, member) + sizeof((host)->member))

/* One attempt of one job; valid until the handler returns. */
struct claimd_context {
    size_t size;
    const struct claimd_host *host;
    void *host_data;
    int64_t id;
    int64_t fence; /* rises with every claim of any job: a fencing token for other systems */
    const char *kind;
    const char *args; /* JSON text, NUL-terminated */
    size_t args_len;
    int32_t attempt; /* 1 = first */
    int32_t max_attempts;
    int64_t deadline_us;         /* CLOCK_BOOTTIME of the timeout: should_stop then returns 1 */
    const char *idempotency_key; /* "job:<id>", the same for all attempts */
    /* Since claimd 0.2; check `size` if your plugin may run with an older one. NULL = none. */
    const char *checkpoint; /* stored by an earlier attempt: JSON text */
    size_t checkpoint_len;
    const char *queue;
    const char *tags;      /* JSON: an array of strings */
    const char *metadata;  /* JSON text; for a job that follows a batch, with "batch_id" */
    int32_t crashes;       /* before this attempt */
    int32_t generation;    /* how often an operator has run the finished job again */
    int64_t created_at_us; /* PostgreSQL's clock, since 1970 */
    /* The jobs that this one has waited for, with their results: a JSON array of objects
     * {"id", "kind", "state", "result", "error"}, sorted by id; kind and state are null if a job's
     * history has been dropped. The text `null` means that the array would be longer than 256 KiB:
     * call claimd.predecessors() in PostgreSQL. NULL: it waited for no job. */
    const char *predecessors;
    size_t predecessors_len;
};

/* Must return: jumping out of it or ending its thread fails the attempt, as a crash does. */
typedef enum claimd_outcome claimd_handle_fn(const struct claimd_context *job);

struct claimd_kind {
    const char *name; /* ^[a-z][a-z0-9_]*$, at most 64 characters; NULL ends the list */
    claimd_handle_fn *handle;
    int64_t timeout_ms;   /* 0 = 30 minutes; then it has grace_ms to stop */
    int32_t max_attempts; /* 0 = 25 */
    int32_t max_crashes;  /* 0 = 3 */
    /* 1: started at most once; ends as `discarded` (lost) if its outcome is unknown. */
    int32_t at_most_once;
    int32_t reserved;
    /* Since claimd 0.2. How long a failed attempt waits, up to 100 bytes: "exponential:15s:1h",
     * "linear:10s:1h", "fixed:30s" or "list:1s,5s,1m", each with or without a jitter at its end
     * ("~10%"). NULL = "exponential:15s:1h~10%". */
    const char *backoff;
    /* 1: the end of the log is also stored for runs that completed. */
    int32_t keep_log;
    /* How long a handler may run on after it was asked to stop, by its timeout or a cancel, before
     * it is killed; at most CLAIMD_GRACE_MS_MAX. 0 = lock.guard_ms (2 s). If the worker ends, its
     * worker.drain_ms counts instead; if the lease is in danger, lock.guard_ms. */
    int32_t grace_ms;
};

struct claimd_plugin {
    uint32_t abi;
    uint32_t size;      /* sizeof(struct claimd_plugin) */
    uint32_t kind_size; /* sizeof(struct claimd_kind) */
    uint32_t reserved;
    const char *name;
    const char *version;
    /* Called once per process, before its first job; if it does not return 0, the plugin is
     * refused. May be NULL. Each plugin is first tried in a process that only loads it, so expect
     * calls of init and fini without jobs in between. */
    int (*init)(const struct claimd_host *host);
    void (*fini)(void); /* called before a regular end; may be NULL */
    struct claimd_kind kinds[CLAIMD_KINDS_MAX];
};

#if defined(__GNUC__)
#define CLAIMD_EXPORT __attribute__((__visibility__("default")))
#define CLAIMD_PRINTF(format_index, first_arg) \
    __attribute__((__format__(__printf__, format_index, first_arg)))
#else
#define CLAIMD_EXPORT
#define CLAIMD_PRINTF(format_index, first_arg)
#endif

/* Defines the symbol; fields that are not named are 0, which always means the default. */
#define CLAIMD_PLUGIN(...)                                                               \
    extern CLAIMD_EXPORT const struct claimd_plugin claimd_plugin;                       \
    const struct claimd_plugin claimd_plugin = {.abi = CLAIMD_ABI,                       \
                                                .size = sizeof(struct claimd_plugin),    \
                                                .kind_size = sizeof(struct claimd_kind), \
                                                __VA_ARGS__};

static inline int claimd_should_stop(const struct claimd_context *job)
{
    return job->host->should_stop(job);
}

static inline int claimd_is_cancelled(const struct claimd_context *job)
{
    return CLAIMD_HOST_HAS(job->host, is_cancelled) ? job->host->is_cancelled(job) : 0;
}

static inline int claimd_progress(const struct claimd_context *job, int percent, const char *text)
{
    return CLAIMD_HOST_HAS(job->host, set_progress) ? job->host->set_progress(job, percent, text)
                                                    : -1;
}

static inline int claimd_checkpoint(const struct claimd_context *job, const char *json)
{
    return CLAIMD_HOST_HAS(job->host, set_checkpoint)
               ? job->host->set_checkpoint(job, json, strlen(json))
               : -1;
}

CLAIMD_PRINTF(2, 3)
static inline void claimd_log(const struct claimd_context *job, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    job->host->log(job, format, args);
    va_end(args);
}

/* Returns FAIL with a reason. */
CLAIMD_PRINTF(2, 3)
static inline enum claimd_outcome claimd_fail(const struct claimd_context *job, const char *format,
                                              ...)
{
    va_list args;
    va_start(args, format);
    job->host->set_error(job, -1, format, args);
    va_end(args);
    return CLAIMD_FAIL;
}

/* Returns RETRY with a reason. retry_after_ms < 0 means the usual backoff. So does a value above
 * CLAIMD_RETRY_AFTER_MS_MAX, which must be a delay in the wrong unit; the reason then says so. */
CLAIMD_PRINTF(3, 4)
static inline enum claimd_outcome claimd_retry(const struct claimd_context *job,
                                               long retry_after_ms, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    job->host->set_error(job, retry_after_ms, format, args);
    va_end(args);
    return CLAIMD_RETRY;
}

/* Returns SNOOZE with a reason: the job is available again after delay_ms, at least
 * CLAIMD_SNOOZE_MS_MIN; a negative or too long delay is treated as in claimd_retry(). A job may
 * snooze any number of times. */
CLAIMD_PRINTF(3, 4)
static inline enum claimd_outcome claimd_snooze(const struct claimd_context *job, long delay_ms,
                                                const char *format, ...)
{
    va_list args;
    va_start(args, format);
    job->host->set_error(job, delay_ms, format, args);
    va_end(args);
    return CLAIMD_SNOOZE;
}

/* Returns CANCEL with a reason, which becomes the job's error. */
CLAIMD_PRINTF(2, 3)
static inline enum claimd_outcome claimd_cancel(const struct claimd_context *job,
                                                const char *format, ...)
{
    va_list args;
    va_start(args, format);
    job->host->set_error(job, -1, format, args);
    va_end(args);
    return CLAIMD_CANCEL;
}

/* Sets the result (JSON text; NULL = none) and returns DONE, or FAIL if the result is too long:
 * `return claimd_done(job, "{}");` */
static inline enum claimd_outcome claimd_done(const struct claimd_context *job, const char *json)
{
    size_t len = json == NULL ? 0 : strlen(json);
    if (job->host->set_result(job, json, len) != 0) {
        return claimd_fail(job, "the result of %lu bytes is too long", (unsigned long)len);
    }
    return CLAIMD_DONE;
}

#ifdef __cplusplus
}
#endif

#endif
