/* SPDX-License-Identifier: Apache-2.0
 *
 * claimd-chaos-check: reads the folder of a run (docs/reliability.md) and judges it. Each checker
 * looks at the whole run and reports its findings with violation(); none of them uses claimd's
 * code. A missing answer counts as unknown: the request may or may not have taken effect, whichever
 * is consistent. */
#ifndef CHECK_H
#define CHECK_H

#include "base/cleanup.h"
#include "chaos/trait.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define NEVER INT64_MAX

enum source { FROM_HISTORY, FROM_LEDGER, FROM_ACKED, FROM_NEMESIS };

enum op {
    OP_OTHER,
    OP_START, /* start of a process */
    OP_STOP,
    OP_PUSH,
    OP_POP,
    OP_LOCK,
    OP_EXTEND,
    OP_UNLOCK,
    OP_FREE,
    OP_CLAIM,
    OP_RUN,
    OP_COMPLETE,
    OP_FAIL,
    OP_HAND_BACK,
    OP_REAP,
    OP_DEAD,
    OP_BEAT,
    OP_SPARE,
    OP_SERVES,
    OP_STARTED, /* from the ledger, like the two after it */
    OP_EFFECT,
    OP_ENDED,
    OP_SUBMIT, /* from the clients, like the six after it */
    OP_CANCEL,
    OP_RETRY,
    OP_EDIT,
    OP_DELETE,
    OP_PAUSE,
    OP_RESUME
};

enum phase { PH_NONE, PH_INV, PH_OK, PH_FAIL, PH_STALE, PH_INFO, PH_VIOLATION, PH_ASKED };

struct event {
    int64_t t;
    int64_t job; /* 0 = not about a job */
    int64_t fence;
    int64_t until;
    int64_t ttl;
    int64_t drift;
    int64_t number; /* pid, out, node, n */
    enum source source;
    enum op op;
    enum phase phase;
    int64_t version; /* version of the args, in the ledger and in edits; 0 = not given */
    int attempt;
    int max;
    int votes_yes;
    int votes_no;
    int votes;           /* number of nodes */
    uint32_t yes_nodes;  /* a bit for each node whose vote was yes */
    bool flag;           /* once, dead, held, final */
    bool is_again;       /* an end that had already taken effect */
    bool is_own_wish;    /* its handler asked for another run, or the run had not begun */
    bool is_tied;        /* it may have to wait for jobs other than those before it in its lane */
    const char *process; /* interned, like all texts; "" = not given */
    const char *queue;
    const char *kind;
    const char *name;  /* key, worker, the ledger's `as`, the fault, `expect` */
    const char *value; /* token, prefix, state directory, target, sha, text */
    const char *line;  /* the line as it was written, `line_len` bytes */
    size_t line_len;
    size_t order; /* position in the order of reading */
};

/* One change of a row, as the trigger saw it. States are interned; NULL = no row. */
struct row {
    int64_t seq;
    int64_t t; /* approximate: from the claims that the recorder saw at that time */
    int64_t at_us;
    int64_t boot_ms;   /* 0 = not given, also for the next one */
    int64_t commit_ms; /* when its transaction committed */
    int64_t committed; /* by our clock; t if commit_ms is not given */
    int64_t ready_at_us;
    int64_t job;
    int64_t n; /* its number in the clients' books */
    int64_t old_fence;
    int64_t fence;
    int64_t generation;
    int64_t attempt;
    const char *old_state;
    const char *new_state;
    const char *worker;
    const char *sha;
    const char *kind;
    const char *queue;
    const char *exclusive_key; /* "" = none, also for the next two */
    const char *second_key;
    const char *unique_key;
    const char *line;
    size_t line_len;
};

struct final {
    int64_t job;
    int64_t fence;
    int64_t attempt;
    int64_t generation;
    int64_t max_attempts; /* 0 = not given */
    const char *state;
    const char *kind;
    const char *worker;
    const char *line;
    size_t line_len;
};

/* From the `inv` of a fault to its `ok`; NEVER if it did not end. */
struct fault {
    const char *what;
    const char *target;
    int64_t pid;     /* 0 = not given */
    unsigned traits; /* sum of enum fault_trait */
    int64_t nodes;   /* number of Redis that it affects; 0 = not given */
    int64_t from;
    int64_t to;
    int64_t back; /* when its target is likely to serve again */
};

#define PROCESS_WORKERS_MAX 64

struct process {
    const char *name;
    int64_t pid;
    int64_t first;
    int64_t last;
    int64_t stopped;    /* orderly end; NEVER = none */
    int64_t ended;      /* end that the kit saw; NEVER = none */
    const char *target; /* its name in the nemesis; "" = unknown */
    const char *state_dir;
    const char *workers[PROCESS_WORKERS_MAX];
    size_t worker_count;
};

/* Everything known about one job; events sorted by time, rows by seq. */
struct job {
    int64_t id;
    const struct event *events;
    size_t event_count;
    const struct row *rows;
    size_t row_count;
    const struct final *finals; /* more than one row is a violation */
    size_t final_count;
    bool is_edited; /* a change by hand, certain or possible */
};

struct constants {
    int64_t ttl;   /* T */
    int64_t drift; /* D */
    int64_t stale;
    int64_t recovery; /* X */
    int64_t terminal; /* time limit after the last fault; 0 = not checked */
    double scale;
};

struct run {
    char path[4096];
    /* While a folder is read: the name of the present file without its suffix. */
    const char *file;
    json_t *about; /* run.json */
    struct constants c;
    struct event *events; /* by job, then by time; events without a job come first */
    size_t event_count;
    struct row *rows; /* by job, then by seq */
    size_t row_count;
    struct final *finals;
    size_t final_count;
    struct fault *faults;
    size_t fault_count;
    struct process *processes;
    size_t process_count;
    struct job *jobs; /* by id; jobs[0] has everything that belongs to no job */
    size_t job_count;
    int64_t first;
    int64_t last;
    size_t violation_count;
    FILE *violations_out; /* RUN/violations.jsonl */
};

/* load.c. Returns false, with a message on stderr, if the folder cannot be read. */
bool run_load(struct run *r, const char *path);
void run_free(struct run *r);
/* Calls `each` for every line of a file of the run that is not loaded. Returns false if it cannot
 * be read. */
typedef void line_fn(struct run *r, void *ctx, const json_t *line);
bool run_lines(struct run *r, const char *name, line_fn *each, void *ctx);
const char *intern(const char *text, size_t len); /* equal texts have equal pointers */
const struct job *run_job(const struct run *r, int64_t id);
/* Lists all changes of rows in their order. The caller owns the list, whose length is
 * `r->row_count`. */
const struct row **run_rows_in_order(const struct run *r);
const struct process *run_process(const struct run *r, const char *name);
bool process_is_worker(const struct process *p, const char *worker);

/* index.c */
void run_index(struct run *r);

/* faults.c. True if the fault has one of these traits. */
bool fault_has(const struct fault *f, unsigned traits);
/* Returns the first fault with one of these traits that overlaps [from, to]. */
const struct fault *fault_in(const struct run *r, unsigned traits, int64_t from, int64_t to);
/* True if a commit may be lost with the old primary (guarantees G1): it was made some time in
 * [from, to], when its answer arrived, and an asynchronous failover took place then or within a
 * minute. */
bool commit_may_be_lost(const struct run *r, int64_t from, int64_t to);
/* True if the fault concerns this process, or a part of it ("w3/4711": a runner). */
bool fault_hits(const struct fault *f, const struct process *p);
bool fault_is_about(const struct fault *f, const struct process *p);
/* True if in the two ttl before t there was a fault that no lock survives (guarantees G6). Restarts
 * do not count: a node that comes back empty has no vote. */
bool fault_is_beyond_locks(const struct run *r, int64_t t);
int64_t fault_last_end(const struct run *r);

/* report.c */
void violation(struct run *r, const char *checker, const char *invariant, int64_t job,
               const char *format, ...) __attribute__((__format__(__printf__, 5, 6)));
/* Prints something worth knowing that is not a violation. */
void note(const struct run *r, const char *checker, const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4)));
int report_end(struct run *r); /* prints the last line; returns the exit code */

/* The checkers (GUARANTEES §4.3, docs/reliability.md). */
void check_order(struct run *r);     /* K1, by what processes requested and were answered */
void check_rows(struct run *r);      /* K1, by the rows' own history */
void check_intervals(struct run *r); /* K2 */
void check_sets(struct run *r);      /* K3 */
void check_edits(struct run *r);     /* K3: an edit holds for all later claims */
void check_ties(struct run *r);      /* K3: unique keys, batches, jobs after jobs */
void check_recovery(struct run *r);  /* K5 */
void check_waits(struct run *r);     /* K5: jobs that were overlooked */
void check_deaths(struct run *r);    /* K5: workers that were declared dead */
void check_model(struct run *r);     /* K6 */
void check_limits(struct run *r);    /* K7 */
void check_places(struct run *r);    /* K7, of keys and queues */
void check_growth(struct run *r);    /* K8 */
void check_canaries(struct run *r);  /* K9 */
void check_sql(struct run *r);       /* K10 */
void check_idle(struct run *r);      /* K11 */

#endif
