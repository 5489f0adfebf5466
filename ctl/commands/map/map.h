/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of claimctl map: what a map is made of, and its steps. */
#ifndef CLAIMD_CTL_MAP_MAP_H
#define CLAIMD_CTL_MAP_MAP_H

#include "ctl/commands/map/source.h"
#include "ctl/core/ctl.h"

#include <jansson.h>
#include <signal.h>

#define MAP_NAME_SIZE 80
/* Counting, and chunks of queries that are slow. */
#define MAP_QUERY_US ((int64_t)600 * 1000000)

/* Texts are of `args`, or of `row`. */
struct map {
    const struct ctl *ctl;
    const struct ctl_args *args;
    struct admin *admin;
    struct admin_rows *row; /* of the map that was there; NULL: it is new */
    struct source source;
    char query[SOURCE_QUERY_MAX];
    char name[MAP_NAME_SIZE];
    char kind[MAP_NAME_SIZE];
    char id[24];
    char last_key[1024]; /* loaded up to here … */
    bool has_last_key;   /* … or nothing is */
    bool is_loaded;
    const char *queue;
    const char *into; /* a table of the caller's; NULL = none */
    json_t *command;  /* its template; NULL = another kind */
};
void map_release(struct map *m);

/* A statement about one map by its name ($1), with $2. */
enum status map_ask(struct map *m, const struct pg_statement *statement, const char *param,
                    struct admin_rows **ret, struct err *err) MUST_USE;
/* NOT_FOUND: there is no such map. */
enum status map_read(struct map *m, struct err *err) MUST_USE;

/* ---- command.c ---- */
/* The command of worker.commands whose template the words are, and which live workers of the queue
 * allow: m->kind and m->command. CONFLICT: none does; err lists those that there are. */
enum status map_find_command(struct map *m, char *const *words, size_t count,
                             struct err *err) MUST_USE;
/* What would run for the first rows, and how many rows there are. */
enum status map_print_dry(struct map *m, struct err *err) MUST_USE;

/* ---- load.c ---- */
/* From m->last_key on. After Ctrl-C it stops behind a chunk, and says how to go on. */
enum status map_load(struct map *m, struct err *err) MUST_USE;

/* ---- follow.c ---- */
/* Ctrl-C from now on: no more than this. */
extern volatile sig_atomic_t map_interrupted;
void map_catch_interrupt(void);
/* A line, if it is time to; `force`: in any case. */
struct map_progress {
    bool is_quiet;
    bool is_terminal;
    bool is_drawn;
    bool has_begun;
    int64_t start_us;
    int64_t shown_us;
    int64_t start_ended; /* rows */
    int64_t failed;
};
void map_progress_start(struct map_progress *p, const struct map *m);
/* *ret_over: all is loaded, and nothing is open. */
enum status map_progress_show(struct map_progress *p, struct map *m, bool force, bool *ret_over,
                              struct err *err) MUST_USE;
void map_progress_end(struct map_progress *p);
/* Until all rows have ended; Ctrl-C leaves them running. INTERNAL: some have failed. */
enum status map_follow(struct map *m, struct err *err) MUST_USE;

/* ---- results.c ---- */
/* INVALID: the table can't take results, and why; nothing was written. */
enum status map_check_into(struct map *m, struct err *err) MUST_USE;
enum status map_put_into(struct map *m, struct err *err) MUST_USE;

#endif
