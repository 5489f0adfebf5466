/* SPDX-License-Identifier: Apache-2.0
 *
 * Real schedulers over private servers, without workers: a test writes the workers' rows and reads
 * the hints itself. Times are a quarter of the real ones. */
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
/* Starts scheduler `i`, which dies at a probe point (base/probe.h), and waits for its death. */
void start_dying(size_t i, const char *probe);
void await_death(size_t i);
bool leads(size_t i);

/* Adds a worker's row with a heartbeat that is fresh for an hour; heartbeat_is_stale() makes it
 * stale at once. */
void given_worker(int n, const char *queues, const char *kinds);
void heartbeat_is_stale(int n);
const char *worker_uuid(int n);

/* Adds a past day of the history: an empty partition. */
void given_past_day(int days_ago);

/* Adds a job that runs under worker n; returns its id. */
int64_t given_running(int n, const char *kind, int attempt);

/* Adds a run of worker 1 that holds a key, a job that a claim has refused because of that, and a
 * job without a key, which is read together with it. */
struct queued {
    int64_t waiting;
    int64_t beside;
};
struct queued given_waiting(void);

/* Takes a job's lock on all masters, as another client would. */
void lock_job(int64_t id, int ms);
void unlock_job(int64_t id);

/* True if the log of the first scheduler has `event`. */
bool scheduler_said(const char *event);

/* Kills all masters: without their votes no scheduler leads for long. */
void masters_kill(void);
void masters_restart(void);

/* Runs redis-cli on one master; returns the last number that it prints. */
int64_t cli(size_t master, const char *const *words);
#define CLI(master, ...) cli((master), (const char *const[]){__VA_ARGS__, NULL})

/* Returns the number of hints of a set ("default" or "default:kind") on the first master. */
int64_t hints_in(const char *set);

/* These read every master: the scheduler pushes to the next one when the first is late. */
void pop_hints(const char *set, int count); /* at most `count` of each */
bool has_hint(const char *set, int64_t id);
int64_t rows_with_hints(const char *queue);

/* Plays the workers: pops hints and deletes their rows until `count` rows are gone. */
bool drain_hints(const char *set, int64_t count);

#endif
