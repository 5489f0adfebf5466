/* SPDX-License-Identifier: Apache-2.0
 *
 * Plays the worker for one real claimd-runner: socketpair, shared page, frames. Every wait has a
 * deadline; what a test does not expect fails it. */
#ifndef CLAIMD_TESTS_RUNNER_HARNESS_H
#define CLAIMD_TESTS_RUNNER_HARNESS_H

#include "worker/protocol.h"

#include <sys/types.h>

#define HARNESS_PATH_MAX 2048

struct harness {
    int log_fd; /* where the runner logs; 0 = stderr. Set it before harness_start(). */
    pid_t pid;
    int fd; /* our end of the frames */
    struct runner_page *page;
    struct buf in;
    struct buf results; /* out of the page's ring */
    uint64_t ring_taken;
    struct buf *read_from; /* of the frame that was read last, which is still in it */
    size_t frame_size;
    int64_t last_id;
    uint64_t sent; /* jobs, and how many were answered */
    uint64_t answered;
};

/* The directories of the build's plugins, of those that misbehave, and of those to be refused. */
const char *harness_plugins(void);
const char *harness_test_plugins(void);
void harness_bad_plugins(char *ret_path);

/* Starts a runner with the plugins of `directory`; its first frame is not read yet. */
void harness_start(struct harness *h, const char *directory);
/* Kills what is left of it. Accepts one that has ended. */
void harness_stop(struct harness *h);

/* Reads HELLO; the text is valid until the next read. */
const char *harness_hello(struct harness *h, size_t *ret_len);

/* Sends a job with the next id; its fence and its nonce are id + 100. At most RUNNER_DEPTH that
 * are not answered. */
void harness_send(struct harness *h, const char *kind, const char *args);

/* The next RESULT; its texts are valid until the next read. */
void harness_result(struct harness *h, struct result_frame *ret);
/* Sends a job and reads its result, which must be its own. */
void harness_run(struct harness *h, const char *kind, const char *args, struct result_frame *ret);

/* Takes back the job that was sent last: false where it has begun. */
bool harness_take_back(struct harness *h);

/* The next HELLO or RESULT: OK, INVALID, or UNAVAILABLE at the end of the stream. */
enum status harness_read(struct harness *h, enum frame_type *ret_type, const char **ret_body,
                         size_t *ret_len);

/* Waits until the runner has ended; its wait status. */
int harness_wait(struct harness *h);

/* `claimd-runner` with these arguments (NULL-ended); its output, and its exit code. */
int harness_program(const char *const *args, struct buf *out);

#endif
