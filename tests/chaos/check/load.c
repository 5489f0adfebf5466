/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the files of a run. They stay mapped, since events point into them. */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <uthash.h>

#define STARTING_NS (2 * NS_PER_S)

struct text {
    UT_hash_handle hh;
    char bytes[];
};

static struct text *texts; /* live as long as the process */

const char *intern(const char *bytes, size_t len)
{
    struct text *t = NULL;
    HASH_FIND(hh, texts, bytes, len, t);
    if (t == NULL) {
        t = calloc(1, sizeof *t + len + 1);
        if (t == NULL) {
            abort();
        }
        memcpy(t->bytes, bytes, len);
        HASH_ADD_KEYPTR(hh, texts, t->bytes, len, t);
    }
    return t->bytes;
}

static const char *text_of(const json_t *o, const char *name)
{
    const json_t *v = json_object_get(o, name);
    return json_is_string(v) ? intern(json_string_value(v), json_string_length(v)) : intern("", 0);
}

static const char *text_or_null(const json_t *o, const char *name)
{
    return json_is_string(json_object_get(o, name)) ? text_of(o, name) : NULL;
}

static int64_t number_of(const json_t *o, const char *name)
{
    const json_t *v = json_object_get(o, name);
    return json_is_boolean(v) ? json_is_true(v) : json_integer_value(v);
}

static int64_t either(const json_t *o, const char *name, const char *other)
{
    int64_t n = number_of(o, name);
    return n != 0 ? n : number_of(o, other);
}

/* Parses "2026-01-02T03:04:05.678901+00:00" to microseconds; 0 = not a time. The kit's sessions are
 * in UTC. */
static int64_t time_of(const json_t *o, const char *name)
{
    struct tm tm = {0};
    const char *text = json_string_value(json_object_get(o, name));
    const char *rest = text == NULL ? NULL : strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    if (rest == NULL) {
        return 0;
    }
    int64_t us = (int64_t)timegm(&tm) * 1000000;
    int64_t unit = 100000;
    for (rest += *rest == '.'; *rest >= '0' && *rest <= '9'; rest++, unit /= 10) {
        us += (*rest - '0') * unit;
    }
    return us;
}

/* ---- growing arrays ---- */

static void *grown(void *list, size_t count, size_t size)
{
    bool is_full = count == 0 || (count >= 64 && (count & (count - 1)) == 0);
    if (!is_full) {
        return list;
    }
    list = realloc(list, (count < 64 ? 64 : 2 * count) * size);
    if (list == NULL) {
        abort();
    }
    return list;
}

#define APPEND(list, count, ...)                         \
    do {                                                 \
        (list) = grown((list), (count), sizeof *(list)); \
        (list)[(count)++] = (__VA_ARGS__);               \
    } while (0)

/* ---- lines ---- */

static enum op op_of(const char *name, enum source source)
{
    static const struct {
        const char *name;
        enum op op;
        enum source source;
    } ops[] = {{"start", OP_START, FROM_HISTORY},
               {"stop", OP_STOP, FROM_HISTORY},
               {"push", OP_PUSH, FROM_HISTORY},
               {"pop", OP_POP, FROM_HISTORY},
               {"lock", OP_LOCK, FROM_HISTORY},
               {"extend", OP_EXTEND, FROM_HISTORY},
               {"unlock", OP_UNLOCK, FROM_HISTORY},
               {"free", OP_FREE, FROM_HISTORY},
               {"claim", OP_CLAIM, FROM_HISTORY},
               {"run", OP_RUN, FROM_HISTORY},
               {"complete", OP_COMPLETE, FROM_HISTORY},
               {"fail", OP_FAIL, FROM_HISTORY},
               {"hand-back", OP_HAND_BACK, FROM_HISTORY},
               {"reap", OP_REAP, FROM_HISTORY},
               {"dead", OP_DEAD, FROM_HISTORY},
               {"beat", OP_BEAT, FROM_HISTORY},
               {"spare", OP_SPARE, FROM_HISTORY},
               {"serves", OP_SERVES, FROM_HISTORY},
               {"start", OP_STARTED, FROM_LEDGER},
               {"effect", OP_EFFECT, FROM_LEDGER},
               {"end", OP_ENDED, FROM_LEDGER},
               {"submit", OP_SUBMIT, FROM_ACKED},
               {"enqueue", OP_SUBMIT, FROM_ACKED},
               {"cancel", OP_CANCEL, FROM_ACKED},
               {"retry", OP_RETRY, FROM_ACKED},
               {"edit", OP_EDIT, FROM_ACKED},
               {"delete", OP_DELETE, FROM_ACKED},
               {"pause", OP_PAUSE, FROM_ACKED},
               {"resume", OP_RESUME, FROM_ACKED}};
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        if (ops[i].source == source && strcmp(ops[i].name, name) == 0) {
            return ops[i].op;
        }
    }
    return OP_OTHER;
}

static enum phase phase_of(const char *name)
{
    static const char *const names[] = {"",      "inv",  "ok",        "fail",
                                        "stale", "info", "violation", "asked"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (strcmp(names[i], name) == 0) {
            return (enum phase)i;
        }
    }
    return PH_INFO;
}

/* Returns the id in "…:job:42". */
static int64_t job_of_key(const char *key)
{
    const char *at = strstr(key, "job:");
    return at == NULL ? 0 : strtoll(at + 4, NULL, 10);
}

static bool is_own_wish(const char *end)
{
    static const char *const ends[] = {"retry", "stopped", "timed_retry", "not_started", "snooze"};
    for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
        if (strcmp(end, ends[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void count_votes(struct event *e, const json_t *votes)
{
    size_t i = 0;
    const json_t *vote = NULL;
    json_array_foreach(votes, i, vote)
    {
        e->votes_yes += json_integer_value(vote) == 1;
        e->votes_no += json_integer_value(vote) == 0;
        e->yes_nodes |= json_integer_value(vote) == 1 && i < 32 ? 1U << i : 0U;
        e->votes++;
    }
}

static void take_event(struct run *r, enum source source, const json_t *o, const char *line,
                       size_t len)
{
    struct event e = {.t = number_of(o, "t"),
                      .job = either(o, "job", "id"),
                      .fence = either(o, "f", "fence"),
                      .until = number_of(o, "until"),
                      .ttl = number_of(o, "ttl"),
                      .drift = number_of(o, "drift"),
                      .source = source,
                      .op = op_of(text_of(o, source == FROM_NEMESIS ? "x" : "op"), source),
                      .phase = phase_of(text_of(o, "ph")),
                      .version = number_of(o, "v"),
                      .attempt = (int)either(o, "att", "attempt"),
                      .max = (int)number_of(o, "max"),
                      .process = text_of(o, "p"),
                      .queue = text_of(o, "queue"),
                      .kind = text_of(o, "kind"),
                      .line = line,
                      .line_len = len,
                      .order = r->event_count};
    const char *key = text_of(o, "key");
    const char *worker = text_of(o, "worker");
    e.name = key[0] != '\0'           ? key
             : worker[0] != '\0'      ? worker
             : source == FROM_LEDGER  ? text_of(o, "as")
             : source == FROM_NEMESIS ? text_of(o, "x")
                                      : text_of(o, "expect");
    static const char *const values[] = {"val", "prefix", "state_dir", "target", "sha", "text"};
    for (size_t i = 0; i < ARRAY_COUNT(values) && (e.value == NULL || e.value[0] == '\0'); i++) {
        e.value = text_of(o, values[i]);
    }
    static const char *const numbers[] = {"pid", "out", "node", "n"};
    for (size_t i = 0; i < ARRAY_COUNT(numbers) && e.number == 0; i++) {
        e.number = number_of(o, numbers[i]);
    }
    static const char *const flags[] = {"once", "dead", "held", "final"};
    for (size_t i = 0; i < ARRAY_COUNT(flags); i++) {
        e.flag = e.flag || number_of(o, flags[i]) != 0;
    }
    e.is_again = number_of(o, "again") != 0;
    e.is_tied = json_object_get(o, "tie") != NULL;
    e.is_own_wish = is_own_wish(text_of(o, source == FROM_LEDGER ? "as" : "end"));
    e.job = e.job == 0 && key[0] != '\0' ? job_of_key(key) : e.job;
    count_votes(&e, json_object_get(o, "votes"));
    APPEND(r->events, r->event_count, e);
}

static void take_row(struct run *r, const json_t *o, const char *line, size_t len)
{
    const struct row row = {.seq = number_of(o, "seq"),
                            .at_us = time_of(o, "at"),
                            .boot_ms = number_of(o, "boot_ms"),
                            .commit_ms = number_of(o, "commit_ms"),
                            .ready_at_us = time_of(o, "ready_at"),
                            .job = number_of(o, "job"),
                            .n = number_of(o, "n"),
                            .old_fence = number_of(o, "old_fence"),
                            .fence = number_of(o, "fence"),
                            .generation = number_of(o, "generation"),
                            .attempt = number_of(o, "attempt"),
                            .old_state = text_or_null(o, "old_state"),
                            .new_state = text_or_null(o, "new_state"),
                            .worker = text_of(o, "worker"),
                            .sha = text_of(o, "sha"),
                            .kind = text_of(o, "kind"),
                            .queue = text_of(o, "queue"),
                            .exclusive_key = text_of(o, "exclusive_key"),
                            .second_key = text_of(o, "second_key"),
                            .unique_key = text_of(o, "unique_key"),
                            .line = line,
                            .line_len = len};
    APPEND(r->rows, r->row_count, row);
}

/* `scheduled` and `retryable` are names for users; their rows are available. */
static const char *state_of(const char *state)
{
    bool is_open = strcmp(state, "scheduled") == 0 || strcmp(state, "retryable") == 0 ||
                   strcmp(state, "waiting") == 0;
    return is_open ? intern("available", 9) : state;
}

static void take_final(struct run *r, const json_t *o, const char *line, size_t len)
{
    const struct final f = {.job = either(o, "job", "id"),
                            .fence = number_of(o, "fence"),
                            .attempt = number_of(o, "attempt"),
                            .generation = number_of(o, "generation"),
                            .max_attempts = number_of(o, "max_attempts"),
                            .state = state_of(text_of(o, "state")),
                            .kind = text_of(o, "kind"),
                            .worker = text_of(o, "worker"),
                            .line = line,
                            .line_len = len};
    APPEND(r->finals, r->final_count, f);
}

/* Parses "…, back after 3000 ms", in unscaled time, and adds the time that a killed process takes
 * to start. */
static int64_t back_after(const struct run *r, const char *detail)
{
    static const char words[] = "back after ";
    const char *at = strstr(detail, words);
    int64_t ms = at == NULL ? 0 : strtoll(at + strlen(words), NULL, 10);
    return (int64_t)((double)(ms * NS_PER_MS) * r->c.scale) + STARTING_NS;
}

typedef void take_fn(struct run *r, const json_t *o, const char *line, size_t len);

/* Pids are reused: PROGRAM.PID may name several processes, which the name of the file
 * distinguishes. */
static void take_history(struct run *r, const json_t *o, const char *line, size_t len)
{
    take_event(r, FROM_HISTORY, o, line, len);
    struct event *e = &r->events[r->event_count - 1];
    size_t said = strlen(e->process);
    if (strncmp(r->file, e->process, said) == 0 && r->file[said] == '.') {
        e->process = r->file;
    }
}

static void take_ledger(struct run *r, const json_t *o, const char *line, size_t len)
{
    take_event(r, FROM_LEDGER, o, line, len);
}

static void take_acked(struct run *r, const json_t *o, const char *line, size_t len)
{
    take_event(r, FROM_ACKED, o, line, len);
}

static void take_nemesis(struct run *r, const json_t *o, const char *line, size_t len)
{
    take_event(r, FROM_NEMESIS, o, line, len);
    const struct event *e = &r->events[r->event_count - 1];
    for (size_t i = r->fault_count; e->phase != PH_INV && i > 0; i--) {
        struct fault *f = &r->faults[i - 1];
        if (f->what == e->name && f->target == e->value && f->to == NEVER) {
            f->to = e->t;
            f->back = f->back > e->t ? f->back : e->t;
            return;
        }
    }
    const struct fault fault = {.what = e->name,
                                .target = e->value,
                                .pid = number_of(o, "pid"),
                                .traits = (unsigned)number_of(o, "traits"),
                                .nodes = strtoll(text_of(o, "detail"), NULL, 10),
                                .from = e->t,
                                .back = e->t + back_after(r, text_of(o, "detail")),
                                .to = e->phase == PH_INV ? NEVER : e->t};
    APPEND(r->faults, r->fault_count, fault);
}

/* ---- files ---- */

static bool read_lines(struct run *r, const char *path, const char *bytes, size_t size,
                       take_fn *take)
{
    for (size_t at = 0, number = 1; at < size; number++) {
        const char *end = memchr(bytes + at, '\n', size - at);
        size_t len = end != NULL ? (size_t)(end - bytes) - at : size - at;
        json_t *o = len == 0 ? NULL : json_loadb(bytes + at, len, 0, NULL);
        if (json_is_object(o)) {
            take(r, o, bytes + at, len);
        } else if (len > 0 && end != NULL) {
            (void)fprintf(stderr, "%s:%zu: no JSON object\n", path, number);
            return false;
        } /* otherwise the last line of a writer that was killed */
        json_decref(o);
        at += len + 1;
    }
    return true;
}

/* A missing file has no lines. */
static bool read_file(struct run *r, const char *path, take_fn *take)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0) {
        bool is_fine = fd >= 0 || errno == ENOENT;
        if (fd >= 0) {
            (void)close(fd);
        } else if (!is_fine) {
            (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
        }
        return is_fine;
    }
    const char *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    (void)close(fd);
    if (bytes == MAP_FAILED) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    return read_lines(r, path, bytes, (size_t)st.st_size, take);
}

static bool read_folder(struct run *r, const char *name, take_fn *take)
{
    char path[sizeof r->path + 300];
    (void)snprintf(path, sizeof path, "%s/%s", r->path, name);
    struct dirent **list = NULL;
    int count = scandir(path, &list, NULL, alphasort);
    bool is_fine = true;
    for (int i = 0; i < count; i++) {
        if (is_fine && list[i]->d_name[0] != '.') {
            (void)snprintf(path, sizeof path, "%s/%s/%s", r->path, name, list[i]->d_name);
            const char *end = strstr(list[i]->d_name, ".jsonl");
            r->file = intern(list[i]->d_name, end != NULL ? (size_t)(end - list[i]->d_name)
                                                          : strlen(list[i]->d_name));
            is_fine = read_file(r, path, take);
        }
        free(list[i]);
    }
    free(list);
    return is_fine;
}

static bool read_one(struct run *r, const char *name, take_fn *take)
{
    char path[sizeof r->path + 300];
    (void)snprintf(path, sizeof path, "%s/%s", r->path, name);
    return read_file(r, path, take);
}

/* Returns the constant: nanoseconds under its letter, or microseconds under the kit's name for
 * it. */
static int64_t constant(const struct run *r, const char *letter, const char *name,
                        int64_t otherwise)
{
    const json_t *all = json_object_get(r->about, "constants");
    const json_t *ns = json_object_get(all, letter);
    const json_t *us = json_object_get(all, name);
    return json_is_number(ns)   ? (int64_t)json_number_value(ns)
           : json_is_number(us) ? (int64_t)json_number_value(us) * 1000
                                : otherwise;
}

static bool read_about(struct run *r)
{
    char path[sizeof r->path + 300];
    (void)snprintf(path, sizeof path, "%s/run.json", r->path);
    json_error_t error;
    r->about = json_load_file(path, 0, &error);
    if (!json_is_object(r->about)) {
        (void)fprintf(stderr, "%s: %s\n", path, error.text);
        return false;
    }
    const json_t *scale = json_object_get(r->about, "time_scale");
    r->c.scale = json_is_number(scale) ? json_number_value(scale) : 1;
    r->c.ttl = constant(r, "T", "ttl_us", (int64_t)(10 * r->c.scale * (double)NS_PER_S));
    r->c.drift = constant(r, "D", "drift_us", r->c.ttl / 100 + 2 * NS_PER_MS);
    r->c.stale = constant(r, "stale", "stale_us", (int64_t)(8 * r->c.scale * (double)NS_PER_S));
    r->c.recovery = constant(r, "X", "rescue_us", (int64_t)(15 * r->c.scale * (double)NS_PER_S));
    r->c.terminal = constant(r, "terminal", "terminal_us", 0);
    return true;
}

bool run_lines(struct run *r, const char *name, line_fn *each, void *ctx)
{
    char path[sizeof r->path + 300];
    char *line = NULL;
    size_t size = 0;
    (void)snprintf(path, sizeof path, "%s/%s", r->path, name);
    FILE *file = fopen(path, "re");
    for (ssize_t n = 0; file != NULL && (n = getline(&line, &size, file)) > 0;) {
        json_t *o = json_loadb(line, (size_t)n, 0, NULL);
        if (json_is_object(o)) {
            each(r, ctx, o);
        }
        json_decref(o);
    }
    free(line);
    if (file == NULL) {
        return errno == ENOENT;
    }
    (void)fclose(file);
    return true;
}

bool run_load(struct run *r, const char *path)
{
    *r = (struct run){.first = NEVER};
    (void)snprintf(r->path, sizeof r->path, "%s", path);
    if (!read_about(r) || !read_folder(r, "history", take_history) ||
        !read_folder(r, "ledger", take_ledger) || !read_one(r, "acked.jsonl", take_acked) ||
        !read_one(r, "nemesis.jsonl", take_nemesis) || !read_one(r, "events.jsonl", take_row) ||
        !read_one(r, "final.jsonl", take_final)) {
        return false;
    }
    run_index(r);
    (void)snprintf(r->path, sizeof r->path, "%s", path);
    char out[sizeof r->path + 300];
    (void)snprintf(out, sizeof out, "%s/violations.jsonl", path);
    r->violations_out = fopen(out, "we");
    return true;
}

void run_free(struct run *r)
{
    free(r->events);
    free(r->rows);
    free(r->finals);
    free(r->faults);
    free(r->processes);
    free(r->jobs);
    json_decref(r->about);
    if (r->violations_out != NULL) {
        (void)fclose(r->violations_out);
    }
}
