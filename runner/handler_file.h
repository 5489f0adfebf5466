/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a file of worker.handlers: which program serves which kinds, and how it is started
 * (config/handlers.schema.json), or a command of worker.commands. Checks are static: nothing is
 * started here. */
#ifndef CLAIMD_RUNNER_HANDLER_FILE_H
#define CLAIMD_RUNNER_HANDLER_FILE_H

#include "claimd/plugin.h"
#include "model/job.h"
#include "protocol/protocol.h"
#include "runner/command_words.h"
#include "runner/plugin_rules.h"

#include <jansson.h>

#define HANDLER_ARGS_MAX COMMAND_WORDS_MAX
#define HANDLER_ENV_MAX 64
#define HANDLER_START_MS_MAX 600000 /* limit of start_timeout */

/* Collects all mistakes of a file: `found` is called for each with its place in the file and what
 * is allowed, and reading continues after it. */
struct handler_mistakes {
    void (*found)(void *ctx, const char *text);
    void *ctx;
    size_t count;
};

/* Strings that are pointers here belong to `root`. */
struct handler_file {
    char file[RUNNER_FILE_SIZE];
    char name[JOB_NAME_MAX + 1]; /* name of the file without .json */
    char version[20];            /* changes with this file and the program's files */
    json_t *root;
    const char *argv[HANDLER_ARGS_MAX + 1]; /* ends with NULL */
    const char *env[HANDLER_ENV_MAX][2];    /* name, value */
    size_t env_count;
    const char *cwd;
    int64_t start_timeout_us;
    bool is_once;                        /* mode "once": a process for each job */
    bool result_is_last_line;            /* once: the result is the last line of stdout */
    int64_t cpu_seconds;                 /* once: RLIMIT_CPU; 0 = no limit */
    enum claimd_outcome exit_codes[256]; /* once: by exit code */
    int64_t memory;                      /* RLIMIT_DATA in bytes; 0 = no limit */
    int64_t open_files;                  /* 0 = the worker's limit */
    /* without `handle`; an unnamed kind ends the list */
    struct claimd_kind kinds[CLAIMD_KINDS_MAX];
    struct handler_mistakes *mistakes; /* set while the file is read */
};

/* True if a folder's entry of this name is a handler file. */
bool handler_file_is_one(const char *file);

/* Reads the file `fd`, whose name is `file`. INVALID: *err says what is wrong, where it is in the
 * file, and what is allowed. With `mistakes` (may be NULL) every mistake is reported there instead,
 * *err stays empty, and *ret has the valid parts as far as the file can be read. Release *ret
 * whatever the status. */
enum status handler_file_read(int fd, const char *file, const struct plugin_owners *owners,
                              struct handler_mistakes *mistakes, struct handler_file *ret,
                              struct err *err) MUST_USE;
void handler_file_release(struct handler_file *h);

/* Makes the same of a command of worker.commands, an array of texts: it runs once for each job of
 * the kind command_NAME, and the last line that it prints is the result. */
enum status handler_file_of_command(const char *name, json_t *command, struct handler_file *ret,
                                    struct err *err) MUST_USE;

/* Checks that no plugin or program read before has the file's name or one of its kinds. INVALID: as
 * plugin_names_check(); LIMIT: there are PLUGINS_MAX already. */
enum status handler_file_check_names(const struct handler_file *h,
                                     const struct claimd_plugin *others, size_t count,
                                     struct err *err) MUST_USE;

/* Checks, without starting it, whether the program can be started. INVALID: it can't. */
enum status handler_file_check_command(const struct handler_file *h, struct err *err) MUST_USE;

#endif
