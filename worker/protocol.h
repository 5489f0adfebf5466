/* SPDX-License-Identifier: Apache-2.0
 *
 * What passes between claimd-worker and a claimd-runner. Both are of one build, and a runner
 * started from another one is refused by the version in HELLO; each side checks every frame as if
 * an enemy had written it (fault.G5).
 *
 * Descriptors of a runner: 0 = /dev/null, 1 and 2 = a pipe (worker/run_output.h), 3 = frames
 * (socketpair), 4 = the shared page, 5 = the pipe's other end, 6 = the worker's stderr. A frame:
 * u32 length of what follows, u8 type, u8 version, body. Little endian, no padding.
 *
 * Jobs go through the socket, many at a time; results come back through a ring in the page, which
 * the worker reads when it is nudged or when it looks (docs/decisions/0019). */
#ifndef CLAIMD_WORKER_PROTOCOL_H
#define CLAIMD_WORKER_PROTOCOL_H

#include "base/buf.h"
#include "claimd/plugin.h"
#include "model/job.h"

#include <stdatomic.h>

#define RUNNER_FD_FRAMES 3
#define RUNNER_FD_PAGE 4
#define RUNNER_FD_OUTPUT 5
#define RUNNER_FD_LOG 6
#define RUNNER_FD_LAST RUNNER_FD_LOG
/* Raise the first number; an outcome more raises it by itself. */
#define RUNNER_PROTOCOL_VERSION (5 + CLAIMD_OUTCOME_LAST)
#define FRAME_MAX (((size_t)1 << 20) + ((size_t)512 << 10)) /* args, and what else it is told */
#define FRAME_HEAD 6
#define RUNNER_DEPTH 64 /* jobs that a runner has been sent and has not answered, at most */
#define RUNNER_RING_BYTES ((size_t)128 << 10) /* a power of two */
#define RUNNER_FILE_SIZE 256                  /* of a file's name */
#define RUNNER_HANDLER_SUFFIX ".json"         /* of a handler file; of a plugin: ".so" */
#define RUNNER_LOG_BYTES (2 * JOB_LOG_TAIL_MAX)
#define RUNNER_OUTPUT_BYTES 4096
#define RUNNER_REASON_SIZE 256
#define RUNNER_HELLOS_MAX 65 /* the first, and one for each program that can't be started */
#define RUNNER_PROGRESS_BYTES ((size_t)4 * JOB_PROGRESS_MAX)
#define RUNNER_TAGS_MAX ((size_t)96 << 10) /* 8 KiB of tags as JSON, every octet escaped */

enum frame_type {
    /* runner → worker, at first, and with fewer kinds when a program can't be started: JSON
     * {"protocol", "version", "kinds": [{"name", "plugin", "version", "max_attempts",
     * "max_crashes", "timeout_ms", "at_most_once", "backoff", "keep_log", "grace_ms"}], "refused":
     * [{"file", "reason"}]}; numbers are the effective ones, defaults filled in */
    FRAME_HELLO = 1,
    FRAME_JOB,    /* worker → runner */
    FRAME_RESULT, /* runner → worker, in the ring: one per JOB that was not taken back, in order */
    FRAME_NUDGE /* runner → worker: there are results in the ring; one octet, 1 = see `leaving` */
};

/* Why a handler should end; beside it, is_cancelled. */
enum stop_reason { STOP_NOT, STOP_SHUTDOWN, STOP_TIMEOUT, STOP_LEASE };

/* Shared memory, made by the worker for each runner. */
struct runner_page {
    /* BOOTTIME, 0 = no limit; the worker may change it at any time. While a job runs past it, the
     * runner kills its process group, whatever the handler does (fault.A4), at most 250 ms late. A
     * job whose turn comes when it has passed isn't started. */
    _Atomic int64_t kill_at_us;
    /* enum stop_reason. Also set by the runner's SIGTERM handler; only the worker clears it. */
    _Atomic int32_t should_stop;
    _Atomic int32_t is_cancelled; /* of the present job; should_stop is set as well */
    _Atomic int32_t
        was_left; /* the runner ends itself: its handler neither returned nor ended it */
    /* The n-th JOB of a runner's life has place n % RUNNER_DEPTH. The worker puts the job's ticket
     * there before it sends the job: a random number > 0 that is nowhere else. The runner swaps it
     * for −nonce before it calls the handler, or for −ticket if no plugin serves the kind; the
     * worker swaps it for 0 to take the job back, and clears it when the job was answered. Who
     * swaps first has the job. A running handler can no longer know its ticket, so any other value
     * in the place of a job that the worker waits for shows that the page was written over. */
    _Atomic int64_t places[RUNNER_DEPTH];
    /* Nonce of the run that the fields below belong to, set by the runner; 0 = none yet, or about
     * to start one. */
    _Atomic int64_t started_nonce;
    /* Plugins: how many steps of loading are done, and the file whose code runs in the runner
     * itself now, or whose program is started before its job; "" = none, NUL-ended unless a handler
     * wrote over it. */
    _Atomic int32_t loaded;
    char loading[RUNNER_FILE_SIZE];
    /* Why the runner ended itself, where the program of its present run made it; "" = it didn't. */
    char end_reason[RUNNER_REASON_SIZE];
    /* What the present run has logged, a ring (worker/run_log.h): it outlives the runner. */
    _Atomic int64_t log_total;
    char log[RUNNER_LOG_BYTES];
    /* What handlers printed and the runner has read; [output_begin, output_end) is not in the log
     * of the process yet (worker/run_output.h). */
    _Atomic uint32_t output_begin;
    _Atomic uint32_t output_end;
    char output[RUNNER_OUTPUT_BYTES];
    /* What the present run says of itself; it outlives the runner, too. The counts rise by two with
     * each change and are odd meanwhile (worker/run_said.h). */
    _Atomic uint32_t progress_count;
    int32_t percent;
    uint32_t progress_len;
    char progress[RUNNER_PROGRESS_BYTES];
    _Atomic uint32_t checkpoint_count;
    uint32_t checkpoint_len;
    /* Octets of RESULT frames that the runner has ever put into the ring, and the worker has ever
     * taken out of it (worker/result_ring.h). */
    _Atomic uint64_t ring_put;
    _Atomic uint64_t ring_taken;
    /* Last, and never cleared: untouched memory costs nothing. */
    char ring[RUNNER_RING_BYTES];
    char checkpoint[JOB_CHECKPOINT_MAX];
};
#define RUNNER_PAGE_SIZE                                                           \
    (8192 + (int)RUNNER_LOG_BYTES + RUNNER_OUTPUT_BYTES + (int)RUNNER_RING_BYTES + \
     (int)JOB_CHECKPOINT_MAX)

/* Texts are borrowed from the frame. */
struct job_frame {
    int64_t id;
    int64_t fence;
    /* Drawn at random for each job, > 0. A handler may write what it likes to its worker, but what
     * it can't know is the nonce of a job that wasn't sent yet: no frame speaks for another job
     * than its own. */
    int64_t nonce;
    int32_t attempt;
    int32_t max_attempts;
    int64_t timeout_us; /* from its start */
    const char *kind;
    size_t kind_len;
    const char *args;
    size_t args_len;
    int32_t crashes;
    int32_t generation;
    int64_t created_at_us;
    /* Without a text where there is none. */
    const char *queue;
    size_t queue_len;
    const char *tags;
    size_t tags_len;
    const char *metadata;
    size_t metadata_len;
    const char *checkpoint;
    size_t checkpoint_len;
    const char *predecessors;
    size_t predecessors_len;
};

/* What a handler said, as handler files and programs write it ("done", "retry", …), by enum
 * claimd_outcome. The other way round 0 is no outcome. */
extern const char *const outcome_names[CLAIMD_OUTCOME_LAST + 1];
int outcome_named(const char *name, size_t len);

#define RESULT_UNSERVED 255 /* no plugin of this runner serves the kind: no handler was called */

struct result_frame {
    int64_t id;
    int64_t fence;
    int64_t nonce;          /* of its JOB */
    uint8_t outcome;        /* enum claimd_outcome, or RESULT_UNSERVED */
    bool leaving;           /* this runner was left dirty and ends now: send it nothing more */
    int64_t retry_after_us; /* of RETRY, SNOOZE; < 0: the usual backoff; ≤ JOB_DELAY_US_MAX */
    int64_t ran_us;
    const char *result; /* JSON text; len 0 = none */
    size_t result_len;
    const char *error;
    size_t error_len;
    const char *log_tail;
    size_t log_tail_len;
};

/* LIMIT names the text that is too long for any runner. */
enum status job_frame_check(const struct job_frame *f, struct err *err) MUST_USE;

/* Append one whole frame, or nothing: LIMIT, NOMEM. */
enum status job_frame_put(struct buf *out, const struct job_frame *f, struct err *err) MUST_USE;
enum status result_frame_put(struct buf *out, const struct result_frame *f,
                             struct err *err) MUST_USE;
enum status hello_frame_put(struct buf *out, const char *json, size_t len,
                            struct err *err) MUST_USE;

enum status nudge_frame_put(struct buf *out, bool leaving, struct err *err) MUST_USE;

/* Takes the first whole frame of `in`: NOT_FOUND when it isn't complete yet, INVALID when it never
 * can be right (length, type, version). `body` is borrowed from `in`; consume `*ret_size` bytes
 * when done with it. */
enum status frame_take(const struct buf *in, enum frame_type *ret_type, const char **ret_body,
                       size_t *ret_len, size_t *ret_size, struct err *err) MUST_USE;
enum status job_frame_get(const char *body, size_t len, struct job_frame *ret,
                          struct err *err) MUST_USE;
enum status result_frame_get(const char *body, size_t len, struct result_frame *ret,
                             struct err *err) MUST_USE;
/* `leaving`: this runner was left dirty by jobs that are answered, and ends now. */
enum status nudge_frame_get(const char *body, size_t len, bool *ret_leaving,
                            struct err *err) MUST_USE;

#endif
