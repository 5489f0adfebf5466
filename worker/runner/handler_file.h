/* SPDX-License-Identifier: Apache-2.0
 *
 * One file of worker.handlers: which program serves which kinds, and how it is started
 * (config/handlers.schema.json). Static checks only: nothing is started here. */
#ifndef CLAIMD_WORKER_RUNNER_HANDLER_FILE_H
#define CLAIMD_WORKER_RUNNER_HANDLER_FILE_H

#include "claimd/plugin.h"
#include "model/job.h"
#include "worker/protocol.h"
#include "worker/runner/plugin_file.h"

#include <jansson.h>

#define HANDLER_ARGS_MAX 256
#define HANDLER_ENV_MAX 64
#define HANDLER_START_MS_MAX 600000 /* of start_timeout */

/* Texts are of `root`. */
struct handler_file {
    char file[RUNNER_FILE_SIZE];
    char name[JOB_NAME_MAX + 1]; /* the file's, without .json */
    char version[20];            /* changes with the file, and with the program's files */
    json_t *root;
    const char *argv[HANDLER_ARGS_MAX + 1]; /* NULL-ended */
    const char *env[HANDLER_ENV_MAX][2];    /* name, value */
    size_t env_count;
    const char *cwd;
    int64_t start_timeout_us;
    bool is_once;                               /* mode: a process for each job */
    bool result_is_last_line;                   /* once: of stdout */
    int64_t cpu_seconds;                        /* once: RLIMIT_CPU; 0 = no limit */
    enum claimd_outcome exit_codes[256];        /* once */
    int64_t memory;                             /* octets of RLIMIT_DATA; 0 = no limit */
    int64_t open_files;                         /* 0 = as the worker */
    struct claimd_kind kinds[CLAIMD_KINDS_MAX]; /* without `handle`; an unnamed one ends them */
};

/* INVALID: what is wrong, with its place in the file and what is allowed. The file's texts are kept
 * until handler_file_release(). */
enum status handler_file_read(int fd, const char *file, const struct plugin_owners *owners,
                              struct handler_file *ret, struct err *err) MUST_USE;
void handler_file_release(struct handler_file *h);

/* Can its program be started, as far as its files tell? INVALID. */
enum status handler_file_check_command(const struct handler_file *h, struct err *err) MUST_USE;

#endif
