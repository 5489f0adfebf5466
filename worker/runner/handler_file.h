/* SPDX-License-Identifier: Apache-2.0
 *
 * One file of worker.handlers: which program serves which kinds, and how it is started
 * (config/handlers.schema.json). Static checks only: nothing is started here. */
#ifndef CLAIMD_WORKER_RUNNER_HANDLER_FILE_H
#define CLAIMD_WORKER_RUNNER_HANDLER_FILE_H

#include "claimd/plugin.h"
#include "model/job.h"
#include "worker/protocol.h"
#include "worker/runner/plugin_rules.h"

#include <jansson.h>

#define HANDLER_ARGS_MAX 256
#define HANDLER_ENV_MAX 64
#define HANDLER_START_MS_MAX 600000 /* of start_timeout */

/* Of files that are to be mended: `found` is called with each mistake's place in the file and what
 * is allowed, and reading goes on behind it. */
struct handler_mistakes {
    void (*found)(void *ctx, const char *text);
    void *ctx;
    size_t count;
};

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
    struct handler_mistakes *mistakes;          /* while it is read */
};

/* Does a folder's entry of this name count? */
bool handler_file_is_one(const char *file);

/* INVALID: what is wrong, with its place in the file and what is allowed. With `mistakes` (may be
 * NULL) these get all that is wrong, *err nothing, and what is right is in *ret, for as far as the
 * file can be read. Release *ret whatever the status. */
enum status handler_file_read(int fd, const char *file, const struct plugin_owners *owners,
                              struct handler_mistakes *mistakes, struct handler_file *ret,
                              struct err *err) MUST_USE;
void handler_file_release(struct handler_file *h);

/* Beside those that were read before: INVALID as plugin_names_check(); LIMIT: they are
 * PLUGINS_MAX already. */
enum status handler_file_check_names(const struct handler_file *h,
                                     const struct claimd_plugin *others, size_t count,
                                     struct err *err) MUST_USE;

/* Can its program be started, as far as its files tell? INVALID. */
enum status handler_file_check_command(const struct handler_file *h, struct err *err) MUST_USE;

/* What stands at a place of an argument, once: an octet, "{name}" for a job's arg, or "{{name}}"
 * for
 * "{name}" itself. */
enum handler_piece { HANDLER_OCTET, HANDLER_ARG, HANDLER_BRACES };
/* Its size there; the text does not end at this place. */
size_t handler_piece(const char *at, enum handler_piece *ret);

#endif
