/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of claimctl map: the state of a call, and its steps. */
#ifndef CLAIMD_CTL_MAP_MAP_H
#define CLAIMD_CTL_MAP_MAP_H

#include "ctl/commands/map/source.h"
#include "ctl/core/ctl.h"

#include <jansson.h>
#include <signal.h>

#define MAP_NAME_SIZE 80
/* Timeout of statements, long enough to count all rows and to read a chunk of a slow query. */
#define MAP_QUERY_US ((int64_t)600 * 1000000)

/* Strings that are pointers here belong to `args` or `row`. */
struct map {
    struct ctl *ctl;
    const struct ctl_args *args;
    struct admin *admin;
    struct admin_rows *row; /* the map as read last; NULL until then */
    struct source source;
    char query[SOURCE_QUERY_MAX];
    char name[MAP_NAME_SIZE];
    char kind[MAP_NAME_SIZE];
    char id[24];
    char last_key[1024]; /* rows are loaded up to this key … */
    bool has_last_key;   /* … unless this is false: none is */
    bool is_loaded;
    const char *queue;
    const char *into; /* the caller's table for results; NULL = none */
    json_t *command;  /* its template; NULL = --kind */
};
/* Opens a session and reads the map named by the first word. NOT_FOUND: there is no such map.
 * Release it, by auto_map, whatever the status. */
enum status map_open(struct ctl *ctl, const struct ctl_args *args, struct map **ret,
                     struct err *err) MUST_USE;
void map_release(struct map **slot);
#define auto_map CLEANUP(map_release)

/* Runs a statement about one map: $1 is its name, $2 is `param`. */
enum status map_ask(struct map *m, const struct pg_statement *statement, const char *param,
                    struct admin_rows **ret, struct err *err) MUST_USE;
/* Replaces *key, where a walk over the map continues, by a copy of `last`. */
enum status map_keep_key(char **key, const char *last, struct err *err) MUST_USE;
/* Reads the map into m->row and the members taken from it. NOT_FOUND: there is no such map. */
enum status map_read(struct map *m, struct err *err) MUST_USE;

/* ---- command.c ---- */
/* Finds the command of worker.commands whose template equals the words, among live workers of the
 * queue, and sets m->kind and m->command. CONFLICT: no worker allows it, and err lists the commands
 * that workers allow; or workers have different commands of that name. */
enum status map_find_command(struct map *m, char *const *words, size_t count,
                             struct err *err) MUST_USE;
/* Prints what would run for the first rows, and how many rows there are. */
enum status map_print_dry(struct map *m, struct err *err) MUST_USE;

/* ---- load.c ---- */
/* Loads the rows after m->last_key. After Ctrl-C it stops at the end of a chunk and fails; err says
 * how to go on. */
enum status map_load(struct map *m, struct err *err) MUST_USE;

/* ---- follow.c ---- */
/* Set by the first Ctrl-C after map_catch_interrupt(), which does nothing else. */
extern volatile sig_atomic_t map_interrupted;
void map_catch_interrupt(void);
/* The state of the progress line. */
struct map_progress {
    bool is_quiet;
    bool is_terminal;
    bool is_drawn;
    bool has_begun;
    int64_t start_us;
    int64_t shown_us;
    int64_t start_ended; /* rows that had ended at the first reading */
    int64_t failed;
};
void map_progress_start(struct map_progress *p, const struct map *m);
/* Reads the map and draws the line when the line is due; with `force`, reads the map in any case.
 * After reading, *ret_over is true if all rows are loaded and none is open, or if the map was
 * cancelled and none is open. */
enum status map_progress_show(struct map_progress *p, struct map *m, bool force, bool *ret_over,
                              struct err *err) MUST_USE;
void map_progress_end(struct map_progress *p);
/* Waits until all rows have ended; Ctrl-C stops waiting and leaves them running. INTERNAL: rows
 * have failed. */
enum status map_follow(struct map *m, struct err *err) MUST_USE;

/* ---- results.c ---- */
/* Checks the table without writing to it. INVALID: it can't take results; err says why. */
enum status map_check_into(struct map *m, struct err *err) MUST_USE;
/* Writes all results so far to the table. INVALID: as above. */
enum status map_put_into(struct map *m, struct err *err) MUST_USE;

#endif
