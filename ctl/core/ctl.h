/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by all commands of claimctl. A command is an entry of a table: its options, its help, and
 * a function that returns a status, which main maps to the exit code. One file per noun. */
#ifndef CLAIMD_CTL_CTL_H
#define CLAIMD_CTL_CTL_H

#include "config/config.h"
#include "verbs/list.h"

#include <stdio.h>

#define CTL_OPTIONS_MAX 36
#define CTL_GIVEN_MAX 64
#define CTL_NAME_MAX 32

enum ctl_exit {
    CTL_DONE = 0,
    CTL_FAILED = 1,
    CTL_USAGE = 2, /* usage, configuration or bad input */
    CTL_UNAVAILABLE = 3,
    CTL_NOT_FOUND = 4,
    CTL_NOT_POSSIBLE = 5,
    CTL_DECLINED = 6 /* the user answered no */
};

enum ctl_config_from {
    CTL_CONFIG_NONE,
    CTL_CONFIG_OPTION,
    CTL_CONFIG_VARIABLE,
    CTL_CONFIG_STANDARD /* no file was named, and the standard one exists */
};
#define CTL_CONFIG_STANDARD_PATH "/etc/claimd/claimd.json"

struct ctl {
    const char *config_path; /* NULL = defaults and environment */
    enum ctl_config_from config_from;
    bool is_json;
    bool is_declined;
    FILE *out;
};

struct ctl_option {
    const char *name;  /* "delay" */
    const char *value; /* "TIME"; "[TIME]" = optional; NULL = a flag */
    const char *help;
};

/* The parsed command line: options in their order, then the words. */
struct ctl_args {
    struct {
        const char *name;
        const char *value; /* "" for a flag */
    } given[CTL_GIVEN_MAX];
    size_t given_count;
    char **words;
    size_t word_count;
};

/* Returns the last value given for that option, or NULL. */
const char *ctl_value(const struct ctl_args *args, const char *name);

/* A failure that leaves err empty has printed everything itself. A command that is a verb has no
 * such function. */
typedef enum status ctl_run(struct ctl *ctl, const struct ctl_args *args, struct err *err);

struct ctl_command {
    const char *noun;
    const char *verb;  /* NULL: the command is the noun alone */
    const char *words; /* "ID…"; "" = none */
    size_t words_min;
    size_t words_max;
    const char *help;     /* one line, then further lines if needed */
    const char *examples; /* command lines for a shell, one per line */
    struct ctl_option options[CTL_OPTIONS_MAX];
    ctl_run *run;
    const struct verb *act;       /* instead of `run`: called by ctl_call() */
    const struct verb *short_act; /* the verb without its last word, if that is optional */
    struct ctl_fixed {
        const char *param;
        const char *value;
    } fixed;               /* a parameter that the name of the command sets; param NULL: none */
    const char *no_option; /* the error if no option is given; NULL: options are optional */
};

struct ctl_command_list {
    const struct ctl_command *rows;
    size_t count;
};
extern const struct ctl_command_list ctl_db_commands, ctl_job_commands, ctl_map_commands,
    ctl_queue_commands, ctl_cluster_commands;

/* Give access to all commands, in the order of the help. */
size_t ctl_command_count(void);
const struct ctl_command *ctl_command_at(size_t i);
extern const struct ctl_option ctl_common_options[];
extern const size_t ctl_common_option_count;

/* Finds the configuration if there is no --config: the value of the variable ("" = no file; NULL =
 * not set), else the standard path if that file exists, even if it is not readable. */
void ctl_find_config(struct ctl *ctl, const char *variable, const char *standard);

/* Loads the configuration. Also returns INVALID if the file does not exist. */
enum status ctl_load_config(const struct ctl *ctl, struct config *ret, struct err *err) MUST_USE;

/* Returns the connection string with its password. INVALID: it cannot be parsed. */
enum status ctl_conninfo(const struct config *config, char *ret, size_t size,
                         struct err *err) MUST_USE;

/* Opens a session of PostgreSQL. Checks that the schema is the one that this build needs, unless
 * `any_schema`. */
enum status ctl_connect(const struct config *config, bool any_schema, struct admin **ret,
                        struct err *err) MUST_USE;
/* Loads the configuration and opens a session. */
enum status ctl_session(const struct ctl *ctl, struct admin **ret, struct err *err) MUST_USE;

/* Returns the option of a parameter: "max_open" → "--max-open". */
void ctl_option_name(const char *param, char ret[CTL_NAME_MAX]);

/* Runs a command that is a verb. Its parameters get the values of the options with their names; the
 * others get the words, in their order. */
enum status ctl_call(struct ctl *ctl, const struct ctl_args *args,
                     const struct ctl_command *command, struct err *err) MUST_USE;
/* As above, with another verb. */
enum status ctl_call_verb(struct ctl *ctl, const struct ctl_args *args, const struct verb *verb,
                          struct ctl_fixed fixed, struct err *err) MUST_USE;

/* Runs a call and prints its answer. */
enum status ctl_run_call(struct ctl *ctl, const struct ctl_args *args, const struct verb_call *call,
                         struct err *err) MUST_USE;

/* Reads how often to look again; `standard_us` if the option has no value. INVALID: not from 100ms
 * to 1h. */
enum status ctl_interval(const struct ctl_args *args, const char *name, int64_t standard_us,
                         int64_t *ret_us, struct err *err) MUST_USE;
void ctl_rest(int64_t us);

#define auto_admin CLEANUP(admin_slot)
static inline void admin_slot(struct admin **slot)
{
    admin_close(*slot);
}

/* Returns the path of a sibling in the folder of the running program. */
enum status ctl_program_path(const char *sibling, char *ret_path, size_t size,
                             struct err *err) MUST_USE;

ctl_run db_migrate, db_status, db_rollback, db_finish, db_trust_clock, db_verify;
ctl_run enqueue;
ctl_run lock_nodes_set, lock_nodes_show;
ctl_run jobs_list, jobs_show, jobs_watch, jobs_cancel, jobs_retry, jobs_delete, jobs_edit;
ctl_run queues_pause, queues_resume, queues_clear, kinds_set;
ctl_run stats, top;
ctl_run batches_open, batches_add, batches_cancel;
ctl_run map_run, map_show, map_attach, map_cancel, map_retry, map_results, map_drop;
ctl_run schedules_set, schedules_apply;
ctl_run apply;
ctl_run doctor, dev;
ctl_run handlers_check, handler_new;
ctl_run config_check, config_show, config_print_schema, config_doc;
ctl_run help, completion;

#endif
