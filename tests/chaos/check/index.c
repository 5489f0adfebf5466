/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorts what was read, and extracts the jobs and the processes. */
#include "check.h"

static int compare_events(const void *left, const void *right)
{
    const struct event *a = left;
    const struct event *b = right;
    if (a->job != b->job) {
        return (a->job > b->job) - (a->job < b->job);
    }
    if (a->t != b->t) {
        return (a->t > b->t) - (a->t < b->t);
    }
    return (a->order > b->order) - (a->order < b->order);
}

static int compare_seqs(const void *left, const void *right)
{
    const struct row *a = left;
    const struct row *b = right;
    return (a->seq > b->seq) - (a->seq < b->seq);
}

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left;
    const struct row *b = right;
    return a->job != b->job ? (a->job > b->job) - (a->job < b->job) : compare_seqs(left, right);
}

static int compare_finals(const void *left, const void *right)
{
    const struct final *a = left;
    const struct final *b = right;
    return (a->job > b->job) - (a->job < b->job);
}

static int compare_ids(const void *left, const void *right)
{
    const int64_t *a = left;
    const int64_t *b = right;
    return (*a > *b) - (*a < *b);
}

static int compare_row_places(const void *left, const void *right)
{
    return compare_seqs(*(const struct row *const *)left, *(const struct row *const *)right);
}

const struct row **run_rows_in_order(const struct run *r)
{
    const struct row **list = calloc(r->row_count + 1, sizeof(*list));
    if (list == NULL) {
        abort();
    }
    for (size_t i = 0; i < r->row_count; i++) {
        list[i] = &r->rows[i];
    }
    qsort(list, r->row_count, sizeof(*list), compare_row_places);
    return list;
}

/* ---- times of rows, by our clock ---- */

struct claim_time {
    int64_t fence;
    int64_t t;
};

static int compare_claims(const void *left, const void *right)
{
    return compare_ids(&((const struct claim_time *)left)->fence,
                       &((const struct claim_time *)right)->fence);
}

/* PostgreSQL's clock may be stepped, so its offset is derived from the claims that both sides
 * saw. */
static void date_rows(struct run *r)
{
    struct claim_time *claims = calloc(r->event_count + 1, sizeof *claims);
    size_t count = 0;
    for (size_t i = 0; claims != NULL && i < r->event_count; i++) {
        const struct event *e = &r->events[i];
        if (e->op == OP_CLAIM && e->phase == PH_OK) {
            claims[count++] = (struct claim_time){.fence = e->fence, .t = e->t};
        }
    }
    if (claims == NULL) {
        abort();
    }
    qsort(claims, count, sizeof *claims, compare_claims);
    int64_t ahead_ns = 0;                  /* lead of row times over our clock */
    for (int pass = 0; pass < 2; pass++) { /* the second pass dates rows before the first claim */
        for (size_t i = 0; i < r->row_count; i++) {
            struct row *row = &r->rows[i];
            const struct claim_time wanted = {.fence = row->fence};
            bool is_claim = row->new_state == intern("running", 7) &&
                            row->old_state != row->new_state && row->fence != 0;
            const struct claim_time *found =
                is_claim ? bsearch(&wanted, claims, count, sizeof *claims, compare_claims) : NULL;
            ahead_ns = found != NULL ? found->t - row->at_us * 1000 : ahead_ns;
            row->t = row->boot_ms != 0 ? row->boot_ms * NS_PER_MS : row->at_us * 1000 + ahead_ns;
            row->committed = row->commit_ms != 0 ? row->commit_ms * NS_PER_MS : row->t;
            if (pass == 0 && found != NULL) {
                break;
            }
        }
    }
    free(claims);
}

/* ---- processes ---- */

static struct process *process_of(struct run *r, const char *name)
{
    for (size_t i = r->process_count; i > 0; i--) {
        if (r->processes[i - 1].name == name) {
            return &r->processes[i - 1];
        }
    }
    if ((r->process_count & 63) == 0) {
        r->processes = realloc(r->processes, (r->process_count + 64) * sizeof r->processes[0]);
        if (r->processes == NULL) {
            abort();
        }
    }
    struct process *p = &r->processes[r->process_count++];
    *p = (struct process){
        .name = name, .first = NEVER, .stopped = NEVER, .ended = NEVER, .state_dir = intern("", 0)};
    p->target = p->state_dir;
    const char *dot = strchr(name, '.');
    p->pid = dot == NULL ? 0 : strtoll(dot + 1, NULL, 10);
    return p;
}

static void take_start(struct process *p, const struct event *e)
{
    if (e->phase != PH_OK) {
        return;
    }
    p->state_dir = e->value;
    if (p->worker_count < PROCESS_WORKERS_MAX) {
        p->workers[p->worker_count++] = e->name;
    }
}

static void find_processes(struct run *r)
{
    struct process *p = NULL;
    for (size_t i = 0; i < r->event_count; i++) {
        const struct event *e = &r->events[i];
        if (e->source != FROM_HISTORY) {
            continue;
        }
        if (p == NULL || p->name != e->process) {
            p = process_of(r, e->process);
        }
        p->first = e->t < p->first ? e->t : p->first;
        p->last = e->t > p->last ? e->t : p->last;
        if (e->op == OP_START) {
            take_start(p, e);
        } else if (e->op == OP_STOP) {
            p->stopped = e->t;
        }
    }
}

/* The kit records the end of a process by its pid; if several had that pid, the one that began last
 * before it is meant. */
static void find_ends(struct run *r)
{
    for (size_t i = 0; i < r->fault_count; i++) {
        const struct fault *f = &r->faults[i];
        struct process *found = NULL;
        for (size_t n = 0; n < r->process_count && strcmp(f->what, "ended") == 0; n++) {
            struct process *p = &r->processes[n];
            if (p->pid == f->pid && p->first <= f->from &&
                (found == NULL || p->first > found->first)) {
                found = p;
            }
        }
        if (found != NULL) {
            found->ended = f->from;
            found->target = f->target;
        }
    }
}

const struct process *run_process(const struct run *r, const char *name)
{
    for (size_t i = 0; i < r->process_count; i++) {
        if (r->processes[i].name == name) {
            return &r->processes[i];
        }
    }
    return NULL;
}

bool process_is_worker(const struct process *p, const char *worker)
{
    for (size_t i = 0; p != NULL && i < p->worker_count; i++) {
        if (p->workers[i] == worker) {
            return true;
        }
    }
    return false;
}

/* ---- jobs ---- */

static size_t gather_ids(const struct run *r, int64_t *ret_ids)
{
    size_t count = 1; /* 0: everything that belongs to no job */
    for (size_t i = 0; i < r->event_count; i++) {
        if (ret_ids[count - 1] != r->events[i].job) {
            ret_ids[count++] = r->events[i].job;
        }
    }
    for (size_t i = 0; i < r->row_count; i++) {
        if (ret_ids[count - 1] != r->rows[i].job) {
            ret_ids[count++] = r->rows[i].job;
        }
    }
    for (size_t i = 0; i < r->final_count; i++) {
        ret_ids[count++] = r->finals[i].job;
    }
    qsort(ret_ids, count, sizeof *ret_ids, compare_ids);
    size_t distinct = 1;
    for (size_t i = 1; i < count; i++) {
        if (ret_ids[i] != ret_ids[distinct - 1]) {
            ret_ids[distinct++] = ret_ids[i];
        }
    }
    return distinct;
}

static void find_jobs(struct run *r)
{
    int64_t *ids = calloc(r->event_count + r->row_count + r->final_count + 1, sizeof *ids);
    r->job_count = ids == NULL ? 0 : gather_ids(r, ids);
    r->jobs = calloc(r->job_count + 1, sizeof r->jobs[0]);
    if (ids == NULL || r->jobs == NULL) {
        abort();
    }
    size_t e = 0;
    size_t w = 0;
    size_t f = 0;
    for (size_t i = 0; i < r->job_count; i++) {
        struct job *j = &r->jobs[i];
        *j = (struct job){
            .id = ids[i], .events = r->events + e, .rows = r->rows + w, .finals = r->finals + f};
        for (; e < r->event_count && r->events[e].job == j->id; e++) {
            enum op op = r->events[e].op;
            /* An edit of the args and of nothing else. */
            bool is_of_args = op == OP_EDIT && r->events[e].version > 0;
            bool is_by_hand = (op == OP_EDIT && !is_of_args) || op == OP_DELETE || op == OP_RETRY;
            j->is_edited = j->is_edited || (is_by_hand && r->events[e].phase != PH_FAIL);
            j->event_count++;
        }
        for (; w < r->row_count && r->rows[w].job == j->id; w++) {
            j->row_count++;
        }
        for (; f < r->final_count && r->finals[f].job == j->id; f++) {
            j->final_count++;
        }
    }
    free(ids);
}

const struct job *run_job(const struct run *r, int64_t id)
{
    size_t low = 0;
    size_t high = r->job_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->jobs[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < r->job_count && r->jobs[low].id == id ? &r->jobs[low] : NULL;
}

static void sort(void *list, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    if (count > 1) {
        qsort(list, count, size, compare);
    }
}

void run_index(struct run *r)
{
    sort(r->rows, r->row_count, sizeof r->rows[0], compare_seqs);
    date_rows(r);
    sort(r->rows, r->row_count, sizeof r->rows[0], compare_rows);
    sort(r->events, r->event_count, sizeof r->events[0], compare_events);
    sort(r->finals, r->final_count, sizeof r->finals[0], compare_finals);
    for (size_t i = 0; i < r->event_count; i++) {
        int64_t t = r->events[i].t;
        r->first = t != 0 && t < r->first ? t : r->first;
        r->last = t > r->last ? t : r->last;
    }
    find_processes(r);
    find_ends(r);
    find_jobs(r);
}
