/* SPDX-License-Identifier: Apache-2.0 */
#include "web/events.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "web/api.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define LOOK_MS 500
#define BEAT_S 10
#define LIFE_US (15 * 60 * US_PER_S)
#define RETRY_US (10 * US_PER_S)
#define TRIM_US (3600 * US_PER_S)
#define HINTS_MAX 1024

/* What a page reads again. */
enum topic { TOPIC_JOBS, TOPIC_QUEUES, TOPIC_WORKERS, TOPIC_SCHEDULERS, TOPICS };
static const char *const topic_names[TOPICS] = {"jobs", "queues", "workers", "schedulers"};

/* One for all streams, which may be large: each holds a reference until it has sent it. */
struct snapshot {
    size_t references; /* guarded by the mutex of its events */
    uint64_t number;
    size_t len;
    char bytes[]; /* an event */
};

struct events {
    struct web *w;
    const struct web_route *overview;
    pthread_t thread;
    bool is_started;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    bool is_stopping;
    size_t streams;
    struct snapshot *snapshot; /* NULL: there is none yet */
    uint64_t topic_numbers[TOPICS];
    uint32_t marks[TOPICS]; /* what the topics were last */
};

struct stream {
    struct events *e;
    uint64_t seen;
    uint64_t generation; /* of the tokens: a reload ends the stream */
    int64_t end_us;
    struct snapshot *snapshot; /* is sent, before the text; NULL = none */
    struct text text;
    size_t sent; /* of both */
};

/* ---- snapshots ---- */

/* Adds the values of some members of an object to a mark. */
static uint32_t mark_of_row(const json_t *row, const char *const *names, uint32_t mark)
{
    for (const char *const *name = names; *name != NULL; name++) {
        autofree char *text = json_dumps(json_object_get(row, *name), JSON_ENCODE_ANY);
        const char *known = text == NULL ? "" : text;
        mark = mark * 31 + hash_bytes(known, strlen(known));
    }
    return mark;
}

static uint32_t mark_of(const json_t *root, const char *list, const char *const *names)
{
    size_t i = 0;
    const json_t *row = NULL;
    uint32_t mark = 0;
    json_array_foreach(json_object_get(root, list), i, row)
    {
        mark = mark_of_row(row, names, mark);
    }
    return mark;
}

static void find_marks(const json_t *root, uint32_t ret[TOPICS])
{
    static const char *const counts[] = {"queue",   "available", "scheduled", "retryable",
                                         "waiting", "running",   "per_s",     NULL};
    static const char *const ends[] = {"completed", "discarded", "cancelled", NULL};
    static const char *const settings[] = {"queue", "paused", "workers", "kinds", NULL};
    static const char *const workers[] = {"host",  "pid",    "state", "running",
                                          "slots", "queues", "kinds", NULL};
    static const char *const leads[] = {"schedulers", "leaders",    "workers_without_quorum",
                                        "leader",     "lock_nodes", "lock_nodes_voting",
                                        "trouble",    NULL};
    ret[TOPIC_JOBS] = mark_of(root, "queues", counts) ^ mark_of(root, "finished", ends);
    ret[TOPIC_QUEUES] = mark_of(root, "queues", counts) * 31 + mark_of(root, "queues", settings);
    ret[TOPIC_WORKERS] = mark_of(root, "workers", workers);
    ret[TOPIC_SCHEDULERS] = mark_of_row(json_object_get(root, "health"), leads, 0);
}

/* The caller holds the mutex. Accepts NULL. */
static void drop(struct snapshot *s)
{
    if (s != NULL && --s->references == 0) {
        free(s);
    }
}

static uint64_t number_of(const struct events *e)
{
    return e->snapshot == NULL ? 0 : e->snapshot->number;
}

/* NULL: no memory. */
static struct snapshot *make_snapshot(uint64_t number, const char *line)
{
    static const char format[] = "id: %llu\nevent: counters\ndata: %s\n\n";
    size_t size = strlen(line) + sizeof format + 24;
    struct snapshot *s = calloc(1, sizeof *s + size);
    if (s != NULL) {
        s->references = 1;
        s->number = number;
        s->len = (size_t)snprintf(s->bytes, size, format, (unsigned long long)number, line);
    }
    return s;
}

static bool is_same(const struct snapshot *s, const char *line)
{
    const char *data = s == NULL ? NULL : strstr(s->bytes, "data: ") + strlen("data: ");
    return data != NULL && strncmp(data, line, strlen(line)) == 0 &&
           strcmp(data + strlen(line), "\n\n") == 0;
}

/* Publishes the snapshot if it differs. The caller holds the mutex. */
static void publish(struct events *e, const char *line, const uint32_t marks[TOPICS])
{
    uint64_t number = number_of(e) + 1;
    struct snapshot *fresh = is_same(e->snapshot, line) ? NULL : make_snapshot(number, line);
    if (fresh == NULL) {
        return; /* without memory, the next one will do */
    }
    drop(e->snapshot);
    e->snapshot = fresh;
    for (size_t i = 0; i < TOPICS; i++) {
        if (marks[i] != e->marks[i]) {
            e->marks[i] = marks[i];
            e->topic_numbers[i] = number;
        }
    }
    (void)pthread_cond_broadcast(&e->changed);
}

/* A failure is seen by the requests of the pages themselves; the streams stay. */
static void look(struct events *e)
{
    struct err err = {0};
    uint32_t marks[TOPICS];
    autotext struct text text = TEXT_INIT(WEB_ANSWER_MAX);
    if (shared_get(e->w->shared, e->overview, &text, &err) != STATUS_OK) {
        return;
    }
    json_auto_t *root = json_loadb(text_str(&text), text.buf.len, 0, NULL);
    autofree char *line =
        root == NULL ? NULL : json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(WEB_PRECISION));
    if (line == NULL) {
        return;
    }
    find_marks(root, marks);
    (void)pthread_mutex_lock(&e->mutex);
    publish(e, line, marks);
    (void)pthread_mutex_unlock(&e->mutex);
}

static struct timespec in_ms(int64_t ms)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t ns = t.tv_nsec + ms % 1000 * 1000000;
    t.tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    return t;
}

/* Waits a little; returns false once it is time to stop. */
static bool rest(struct events *e, bool *ret_is_watched)
{
    struct timespec until = in_ms(LOOK_MS);
    int code = 0;
    (void)pthread_mutex_lock(&e->mutex);
    while (!e->is_stopping && code == 0) {
        code = pthread_cond_timedwait(&e->changed, &e->mutex, &until);
    }
    bool goes_on = !e->is_stopping;
    *ret_is_watched = e->streams > 0;
    (void)pthread_mutex_unlock(&e->mutex);
    return goes_on;
}

/* Reads the minute that has ended, if it is not known yet. A failure is repeated after 10 s. */
static void look_at_minute(struct events *e, int64_t *next_us)
{
    struct err err = {0};
    if (series_is_due(e->w->series, clock_wall_us()) && clock_boot_us() > *next_us &&
        web_look_at_minute(e->w, &err) != STATUS_OK) {
        *next_us = clock_boot_us() + RETRY_US;
    }
}

/* shared_get() decides how often PostgreSQL is asked. */
static void *run(void *ctx)
{
    struct events *e = ctx;
    bool is_watched = false;
    int64_t trim_us = 0;
    int64_t minute_us = 0;
    while (rest(e, &is_watched)) {
        if (is_watched) {
            look(e);
        }
        look_at_minute(e, &minute_us);
        if (e->w->config->web.is_operating && clock_boot_us() > trim_us) {
            audit_trim(e->w);
            trim_us = clock_boot_us() + TRIM_US;
        }
    }
    return NULL;
}

/* ---- life ---- */

static enum status start(struct events *e, struct err *err)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&e->thread, NULL, run, e);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        return err_fail_sys(err, STATUS_INTERNAL, code, "no thread for events");
    }
    e->is_started = true;
    return STATUS_OK;
}

enum status events_open(struct web *w, struct events **ret, struct err *err)
{
    pthread_condattr_t monotonic;
    struct events *e = calloc(1, sizeof *e);
    if (e == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    e->w = w;
    e->overview = web_route_of(&VERB_HEALTH);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&e->mutex, NULL);
    (void)pthread_cond_init(&e->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    enum status st = start(e, err);
    if (st != STATUS_OK) {
        events_close(e);
        return st;
    }
    *ret = e;
    return STATUS_OK;
}

void events_stop(struct events *e)
{
    (void)pthread_mutex_lock(&e->mutex);
    e->is_stopping = true;
    (void)pthread_cond_broadcast(&e->changed);
    (void)pthread_mutex_unlock(&e->mutex);
}

void events_close(struct events *e)
{
    if (e == NULL) {
        return;
    }
    if (e->is_started) {
        events_stop(e);
        (void)pthread_join(e->thread, NULL);
    }
    drop(e->snapshot);
    (void)pthread_cond_destroy(&e->changed);
    (void)pthread_mutex_destroy(&e->mutex);
    free(e);
}

/* ---- streams ---- */

enum status stream_open(struct events *e, struct stream **ret, struct err *err)
{
    struct stream *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    *s = (struct stream){.e = e,
                         .generation = auth_generation(e->w->auth),
                         .end_us = clock_boot_us() + LIFE_US,
                         .text = TEXT_INIT(HINTS_MAX)};
    text_put(&s->text, "retry: 3000\n\n");
    (void)pthread_mutex_lock(&e->mutex);
    bool has_room = e->streams < (size_t)e->w->config->web.streams;
    e->streams += has_room;
    (void)pthread_mutex_unlock(&e->mutex);
    if (!has_room) {
        text_release(&s->text);
        free(s);
        return err_fail(err, STATUS_LIMIT, "%d browsers watch already", e->w->config->web.streams);
    }
    *ret = s;
    return STATUS_OK;
}

void stream_close(struct stream *s)
{
    (void)pthread_mutex_lock(&s->e->mutex);
    s->e->streams--;
    drop(s->snapshot);
    (void)pthread_mutex_unlock(&s->e->mutex);
    text_release(&s->text);
    free(s);
}

/* Takes the present snapshot, and names what has changed since the one before. The caller holds the
 * mutex. */
static void take_snapshot(struct stream *s)
{
    const struct events *e = s->e;
    const char *before = "";
    bool is_first = s->seen == 0;
    s->snapshot = e->snapshot;
    s->snapshot->references++;
    for (size_t i = 0; i < TOPICS && !is_first; i++) {
        if (e->topic_numbers[i] > s->seen) {
            text_put(&s->text, "%s\"%s\"",
                     before[0] == '\0' ? "event: changed\ndata: {\"topics\": [" : before,
                     topic_names[i]);
            before = ",";
        }
    }
    text_put(&s->text, "%s", before[0] == '\0' ? "" : "]}\n\n");
    s->seen = number_of(e);
}

/* Waits for the next snapshot; false: the stream ends. */
static bool wait_next(struct stream *s)
{
    struct events *e = s->e;
    struct timespec until = in_ms(BEAT_S * INT64_C(1000));
    int code = 0;
    if (clock_boot_us() > s->end_us || auth_generation(e->w->auth) != s->generation) {
        return false;
    }
    text_release(&s->text);
    s->sent = 0;
    (void)pthread_mutex_lock(&e->mutex);
    drop(s->snapshot);
    s->snapshot = NULL;
    while (!e->is_stopping && number_of(e) == s->seen && code == 0) {
        code = pthread_cond_timedwait(&e->changed, &e->mutex, &until);
    }
    bool goes_on = !e->is_stopping;
    if (goes_on && number_of(e) != s->seen) {
        take_snapshot(s);
    } else if (goes_on) {
        text_put(&s->text, ": still there\n\n");
    }
    (void)pthread_mutex_unlock(&e->mutex);
    return goes_on && s->text.err.status == STATUS_OK;
}

/* Copies what comes next of `from`, which is at `start` of what is sent. */
static size_t copy_part(struct stream *s, size_t start, const char *from, size_t len,
                        char *ret_bytes, size_t size)
{
    size_t at = s->sent - start;
    size_t left = len - at;
    size_t part = left < size ? left : size;
    memcpy(ret_bytes, from + at, part);
    s->sent += part;
    return part;
}

size_t stream_read(struct stream *s, char *ret_bytes, size_t size)
{
    size_t first = s->snapshot == NULL ? 0 : s->snapshot->len;
    if (s->sent == first + s->text.buf.len) {
        if (!wait_next(s)) {
            return 0;
        }
        first = s->snapshot == NULL ? 0 : s->snapshot->len;
    }
    if (s->sent < first) {
        return copy_part(s, 0, s->snapshot->bytes, first, ret_bytes, size);
    }
    return copy_part(s, first, text_str(&s->text), s->text.buf.len, ret_bytes, size);
}

void web_events(struct web *w, const struct web_route *route, struct web_request *q,
                struct web_reply *r)
{
    (void)w;
    (void)route;
    (void)q;
    r->status = 200;
    r->type = "text/event-stream";
    r->is_stream = true; /* web/server.c opens it */
}
