/* SPDX-License-Identifier: Apache-2.0
 *
 * The protocol between claimd-worker and claimd-runner. Both come from the same build: a runner of
 * another one is refused by the version in HELLO. Each side checks every frame as untrusted input
 * (fault.G5).
 *
 * Descriptors of a runner: 0 = /dev/null, 1 and 2 = a pipe (protocol/run_output.h), 3 = frames
 * (socketpair), 4 = the shared page, 5 = the pipe's other end, 6 = the worker's stderr. A frame:
 * u32 length of what follows, u8 type, u8 version, body. Little endian, no padding.
 *
 * Jobs are sent through the socket, many at a time. Results come back through a ring in the page,
 * which the worker reads after a nudge and at intervals of its own (docs/decisions/0019). */
#ifndef CLAIMD_PROTOCOL_PROTOCOL_H
#define CLAIMD_PROTOCOL_PROTOCOL_H

#include "base/buf.h"
#include "claimd/plugin.h"
#include "model/job.h"

#include <stdatomic.h>

#define RUNNER_FD_FRAMES 3
#define RUNNER_FD_PAGE 4
#define RUNNER_FD_OUTPUT 5
#define RUNNER_FD_LOG 6
#define RUNNER_FD_LAST RUNNER_FD_LOG
/* Increment the first number after a change; a new outcome increments the version by itself. */
#define RUNNER_PROTOCOL_VERSION (5 + CLAIMD_OUTCOME_LAST)
#define FRAME_MAX (((size_t)1 << 20) + ((size_t)512 << 10)) /* args and the other fields */
#define FRAME_HEAD 6
#define RUNNER_DEPTH 64 /* jobs that a runner was sent and has not answered, at most */
#define RUNNER_RING_BYTES ((size_t)128 << 10) /* a power of two */
#define RUNNER_FILE_SIZE 256                  /* for the name of a file */
#define RUNNER_HANDLER_SUFFIX ".json"         /* of a handler file; that of a plugin is ".so" */
#define RUNNER_LOG_BYTES (2 * JOB_LOG_TAIL_MAX)
#define RUNNER_OUTPUT_BYTES 4096
#define RUNNER_REASON_SIZE 256
#define RUNNER_HELLOS_MAX 65 /* the first, and one per program that can't be started */
#define RUNNER_PROGRESS_BYTES ((size_t)4 * JOB_PROGRESS_MAX)
#define RUNNER_TAGS_MAX ((size_t)96 << 10) /* 8 KiB of tags as JSON, with every octet escaped */

enum frame_type {
    /* runner → worker: sent first, and again with fewer kinds when a program can't be started. JSON
     * {"protocol", "version", "kinds": [{"name", "plugin", "version", "max_attempts",
     * "max_crashes", "timeout_ms", "at_most_once", "backoff", "keep_log", "grace_ms"}], "refused":
     * [{"file", "reason"}]}; numbers are the effective ones, with defaults filled in */
    FRAME_HELLO = 1,
    FRAME_JOB,    /* worker → runner */
    FRAME_RESULT, /* runner → worker, in the ring: one per JOB that was not taken back, in order */
    FRAME_NUDGE   /* runner → worker: the ring has results; one octet, 1 = see `leaving` */
};

/* Why a handler should end; is_cancelled is separate. */
enum stop_reason { STOP_NOT, STOP_SHUTDOWN, STOP_TIMEOUT, STOP_LEASE };

/* Shared memory that the worker creates for each runner. */
struct runner_page {
    /* BOOTTIME, 0 = no limit; the worker may change it at any time. If a job still runs at that
     * time, the runner kills its own process group, whatever the handler does (fault.A4), at most
     * 250 ms late. After that time, no further job is started. */
    _Atomic int64_t kill_at_us;
    /* enum stop_reason. Also set by the runner's SIGTERM handler; only the worker clears it. */
    _Atomic int32_t should_stop;
    _Atomic int32_t is_cancelled; /* the current job; should_stop is set as well */
    _Atomic int32_t
        /* Set before the runner ends itself because its handler neither returned nor ended the
         * process. */
        was_left;
    /* The n-th JOB of a runner's life uses place n % RUNNER_DEPTH. Before the worker sends the job,
     * it stores the job's ticket there: a random number > 0 that is stored nowhere else. Before the
     * runner calls the handler, it swaps the ticket for −nonce, or for −ticket if no plugin serves
     * the kind. The worker swaps it for 0 to take the job back, and clears it when the job has been
     * answered. The side that swaps first has the job. A running handler can't find out its ticket
     * any more, so any other value in the place of a job that the worker waits for shows that the
     * page was written over. */
    _Atomic int64_t places[RUNNER_DEPTH];
    /* Nonce of the run that the fields below belong to, set by the runner; 0 = none yet, or a run
     * is about to start. */
    _Atomic int64_t started_nonce;
    /* `loaded` counts the completed steps of loading plugins. `loading` names the file whose code
     * is now run in the runner itself, or whose program is being started before its job; "" = none.
     * It ends with NUL unless a handler wrote over it. */
    _Atomic int32_t loaded;
    char loading[RUNNER_FILE_SIZE];
    /* Why the runner ended itself, if the program of its current run was the cause; "" = it did
     * not. */
    char end_reason[RUNNER_REASON_SIZE];
    /* The log of the current run, a ring (protocol/run_log.h); it outlives the runner. */
    _Atomic int64_t log_total;
    char log[RUNNER_LOG_BYTES];
    /* Output of handlers that the runner has read; [output_begin, output_end) is not in the log of
     * the process yet (protocol/run_output.h). */
    _Atomic uint32_t output_begin;
    _Atomic uint32_t output_end;
    char output[RUNNER_OUTPUT_BYTES];
    /* Progress and checkpoint of the current run; they also outlive the runner. Each count rises by
     * two with each change and is odd during the change (protocol/run_said.h). */
    _Atomic uint32_t progress_count;
    int32_t percent;
    uint32_t progress_len;
    char progress[RUNNER_PROGRESS_BYTES];
    _Atomic uint32_t checkpoint_count;
    uint32_t checkpoint_len;
    /* Octets of RESULT frames, in total: those that the runner has put into the ring, and those
     * that the worker has taken out (protocol/result_ring.h). */
    _Atomic uint64_t ring_put;
    _Atomic uint64_t ring_taken;
    /* Last, and never cleared, because untouched memory costs nothing. */
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
    /* Random for each job, > 0. A handler may write anything to its worker, but it can't know the
     * nonce of a job that was not sent yet, so its frames can't answer such a job. */
    int64_t nonce;
    int32_t attempt;
    int32_t max_attempts;
    int64_t timeout_us; /* from the start of the run */
    const char *kind;
    size_t kind_len;
    const char *args;
    size_t args_len;
    int32_t crashes;
    int32_t generation;
    int64_t created_at_us;
    /* A text that the job does not have has the length 0. */
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

/* The outcomes as handler files and programs write them ("done", "retry", …), indexed by enum
 * claimd_outcome. outcome_named() is the inverse; 0 = there is no such outcome. */
extern const char *const outcome_names[CLAIMD_OUTCOME_LAST + 1];
int outcome_named(const char *name, size_t len);

#define RESULT_UNSERVED 255 /* no plugin of this runner serves the kind: no handler was called */

struct result_frame {
    int64_t id;
    int64_t fence;
    int64_t nonce;   /* of its JOB */
    uint8_t outcome; /* enum claimd_outcome, or RESULT_UNSERVED */
    bool leaving;    /* leftovers were found in this runner, which ends now: send it no more jobs */
    int64_t retry_after_us; /* for RETRY and SNOOZE; < 0: the usual backoff; ≤ JOB_DELAY_US_MAX */
    int64_t ran_us;
    const char *result; /* JSON text; len 0 = none */
    size_t result_len;
    const char *error;
    size_t error_len;
    const char *log_tail;
    size_t log_tail_len;
};

/* Checks the lengths of its texts. LIMIT: the message names the text that is too long for any
 * runner. */
enum status job_frame_check(const struct job_frame *f, struct err *err) MUST_USE;

/* Append one whole frame, or nothing: LIMIT, NOMEM. */
enum status job_frame_put(struct buf *out, const struct job_frame *f, struct err *err) MUST_USE;
enum status result_frame_put(struct buf *out, const struct result_frame *f,
                             struct err *err) MUST_USE;
enum status hello_frame_put(struct buf *out, const char *json, size_t len,
                            struct err *err) MUST_USE;

enum status nudge_frame_put(struct buf *out, bool leaving, struct err *err) MUST_USE;

/* Finds the first frame in `in`: NOT_FOUND if it is not complete yet, INVALID if it can never
 * become valid (length, type, version). The body is borrowed from `in`; consume `*ret_size` bytes
 * when done with it. */
enum status frame_take(const struct buf *in, enum frame_type *ret_type, const char **ret_body,
                       size_t *ret_len, size_t *ret_size, struct err *err) MUST_USE;
enum status job_frame_get(const char *body, size_t len, struct job_frame *ret,
                          struct err *err) MUST_USE;
enum status result_frame_get(const char *body, size_t len, struct result_frame *ret,
                             struct err *err) MUST_USE;
/* `*ret_leaving`: answered jobs left something behind in this runner, which ends now. */
enum status nudge_frame_get(const char *body, size_t len, bool *ret_leaving,
                            struct err *err) MUST_USE;

#endif
