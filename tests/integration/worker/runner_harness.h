/* SPDX-License-Identifier: Apache-2.0
 *
 * Plays the worker for one real claimd-runner: socketpair, shared page, frames. Every wait has a
 * deadline; an unexpected frame fails the test. */
#ifndef CLAIMD_TESTS_RUNNER_HARNESS_H
#define CLAIMD_TESTS_RUNNER_HARNESS_H

#include "protocol/protocol.h"

#include <sys/types.h>

#define HARNESS_PATH_MAX 2048

struct harness {
    int log_fd; /* where the runner logs; 0 = stderr. Set it before harness_start(). */
    pid_t pid;
    int fd; /* our end of the frames */
    struct runner_page *page;
    struct buf in;
    struct buf results; /* from the page's ring */
    uint64_t ring_taken;
    struct buf *read_from; /* the buffer that still holds the last read frame */
    size_t frame_size;
    int64_t last_id;
    uint64_t sent; /* number of jobs; `answered`: those with a result */
    uint64_t answered;
};

/* The directories of the build's plugins, of those that misbehave, and of those that must be
 * refused. */
const char *harness_plugins(void);
const char *harness_test_plugins(void);
void harness_bad_plugins(char *ret_path);

/* Starts a runner with the plugins of `directory`; its first frame is not read yet. */
void harness_start(struct harness *h, const char *directory);
/* Kills the runner, which may have ended already, and frees everything. */
void harness_stop(struct harness *h);

/* Reads HELLO; the text is valid until the next read. */
const char *harness_hello(struct harness *h, size_t *ret_len);

/* Sends a job with the next id; its fence and its nonce are id + 100. At most RUNNER_DEPTH jobs may
 * be unanswered. */
void harness_send(struct harness *h, const char *kind, const char *args);

/* Reads the next RESULT; its texts are valid until the next read. */
void harness_result(struct harness *h, struct result_frame *ret);
/* Sends a job and reads its result, which must belong to it. */
void harness_run(struct harness *h, const char *kind, const char *args, struct result_frame *ret);

/* Takes back the job that was sent last; returns false if it has begun. */
bool harness_take_back(struct harness *h);

/* Reads the next HELLO or RESULT: OK, INVALID, or UNAVAILABLE at the end of the stream. */
enum status harness_read(struct harness *h, enum frame_type *ret_type, const char **ret_body,
                         size_t *ret_len);

/* Waits until the runner has ended; returns its wait status. */
int harness_wait(struct harness *h);

/* Runs `claimd-runner` with these arguments (NULL-ended); returns its exit code, and its output in
 * `out`. */
int harness_program(const char *const *args, struct buf *out);

#endif
