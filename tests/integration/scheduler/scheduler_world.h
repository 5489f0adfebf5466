/* SPDX-License-Identifier: Apache-2.0
 *
 * Real schedulers over private servers, without workers: a test writes the workers' rows and looks
 * at the hints itself. Times are a quarter of the real ones. */
#ifndef CLAIMD_TESTS_SCHEDULER_WORLD_H
#define CLAIMD_TESTS_SCHEDULER_WORLD_H

#include "support/fleet.h"
#include "support/suite.h"

#include <check.h>

#define SCALE 0.25
#define PREFIX "claimd"

extern struct fleet fleet;

/* Checked fixtures: servers without schedulers and workers; `more` as in fleet_options. */
void world_start(const char *more);
void world_stop(void);

/* Starts scheduler `i` and waits until one leads. */
void start_leader(size_t i);
/* … that dies at a probe point (base/probe.h), and waits for its death. */
void start_dying(size_t i, const char *probe);
void await_death(size_t i);
bool leads(size_t i);

/* A worker's row whose beat is fresh for an hour, or stale at once. */
void given_worker(int n, const char *queues, const char *kinds);
void beat_is_stale(int n);
const char *worker_uuid(int n);

/* A day of the history that is over: an empty partition. */
void given_past_day(int days_ago);

/* A job that runs under worker n; returns its id. */
int64_t given_running(int n, const char *kind, int attempt);

/* On all masters, as another client would: the lock of a job. */
void lock_job(int64_t id, int ms);
void unlock_job(int64_t id);

/* Is it in the log of the first scheduler? */
bool scheduler_said(const char *event);

/* All masters: without a vote nobody leads for long. */
void masters_kill(void);
void masters_restart(void);

/* redis-cli on one master; the last number that it prints. */
int64_t cli(size_t master, const char *const *words);
#define CLI(master, ...) cli((master), (const char *const[]){__VA_ARGS__, NULL})

/* Hints of a set ("default" or "default:kind") on the first master. */
int64_t hints_in(const char *set);

/* The others look at every master: the scheduler pushes to the next one when the first is late. */
void pop_hints(const char *set, int count); /* up to so many of each */
bool has_hint(const char *set, int64_t id);
int64_t rows_with_hints(const char *queue);

/* As workers would: pops, and deletes the rows, until `count` rows are gone. */
bool drain_hints(const char *set, int64_t count);

#endif
