/* SPDX-License-Identifier: Apache-2.0
 *
 * claimd-handler-test: runs a handler on given jobs without servers. A real claimd-runner runs it,
 * in a slot like the worker's. The outcome of each attempt is printed as a line of JSON. */
#include "base/build.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/proc.h"
#include "base/timer.h"
#include "protocol/run_said.h"
#include "worker/slots/slot.h"

#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

#define JOBS_MAX 256
#define LOOK_MS 5
#define TIMEOUT_MS_DEFAULT 60000
#define GRACE_MS_DEFAULT 2000
#define FILE_MAX ((size_t)64 << 20)

static const char USAGE[] =
    "usage: claimd-handler-test FILE.so|FILE.json [--job JSON]… [--jobs FILE] [--fields]\n"
    "  FILE has a JSON on each line. What became of each attempt is printed as one line of JSON;\n"
    "  with --fields as texts name=value, each ended by a NUL, and one NUL more.\n"
    "  JSON: {\"kind\", \"args\", \"id\", \"attempt\", \"max_attempts\", \"crashes\", "
    "\"checkpoint\",\n"
    "         \"queue\", \"tags\", \"metadata\", \"timeout_ms\", \"grace_ms\",\n"
    "         \"stop\": \"timeout|cancel|shutdown|lease\", \"stop_after_ms\": N}\n"
    "  A stop comes so long after the handler has begun, or at its first progress; grace_ms later "
    "it\n"
    "  is killed. \"again\": N gives the job N more attempts (true: one), each with what was "
    "saved.\n";

/* One attempt. */
struct attempt {
    json_t *job;
    int64_t id;
    char *args;
    char *tags;
    char *metadata;
    char *checkpoint;
    int64_t nonce;
    int64_t begun_us;
    int64_t stopped_us;
    int64_t stop_after_us; /* since the start; −1 = at the first progress */
    int64_t grace_us;
    const char *stop; /* NULL = none */
    bool was_killed;
};

static struct {
    uv_loop_t loop;
    uv_timer_t timer;
    struct slot *slot;
    struct slot_options options;
    char dir[64];
    char plugins[96];
    char handlers[96];
    char runner[PATH_MAX];
    json_t *jobs[JOBS_MAX];
    size_t count;
    size_t next;
    struct attempt attempt;
    bool has_fields; /* --fields */
    bool is_running;
    bool is_failed;
    char *saved; /* checkpoint for the next attempt of the same job; NULL = none */
    int64_t id;
    int64_t fence;
} host;

static void finish(void)
{
    if (host.slot != NULL) {
        slot_close(TAKE(host.slot));
        uv_close((uv_handle_t *)&host.timer, NULL);
    }
}

static void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "claimd-handler-test: %s: %s\n", what, why);
    host.is_failed = true;
    finish();
}

/* ---- a job ---- */

static int64_t number(const json_t *job, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(job, name);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

static const char *text(const json_t *job, const char *name, const char *otherwise)
{
    const char *value = json_string_value(json_object_get(job, name));
    return value == NULL ? otherwise : value;
}

/* Returns a member of the job as JSON text; NULL if there is none. Free it. */
static char *dump(const json_t *job, const char *name)
{
    const json_t *value = json_object_get(job, name);
    return value == NULL || json_is_null(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
}

static size_t length(const char *value)
{
    return value == NULL ? 0 : strlen(value);
}

static void release(struct attempt *t)
{
    free(t->args);
    free(t->tags);
    free(t->metadata);
    free(t->checkpoint);
    json_decref(t->job);
    *t = (struct attempt){.job = NULL};
}

static void begin(json_t *job)
{
    struct attempt *t = &host.attempt;
    const char *kind = text(job, "kind", "");
    const char *queue = text(job, "queue", "default");
    char *saved = TAKE(host.saved);
    *t = (struct attempt){.job = json_incref(job),
                          .id = number(job, "id", 0),
                          .args = dump(job, "args"),
                          .tags = dump(job, "tags"),
                          .metadata = dump(job, "metadata"),
                          .checkpoint = saved == NULL ? dump(job, "checkpoint") : saved,
                          .stop = json_string_value(json_object_get(job, "stop")),
                          .stop_after_us = number(job, "stop_after_ms", -1) * US_PER_MS,
                          .grace_us = number(job, "grace_ms", GRACE_MS_DEFAULT) * US_PER_MS,
                          .begun_us = clock_boot_us()};
    const char *args = t->args == NULL ? "{}" : t->args;
    t->id = t->id > 0 ? t->id : ++host.id;
    struct job_frame frame = {.id = t->id,
                              .fence = ++host.fence,
                              .attempt = (int32_t)number(job, "attempt", 1),
                              .max_attempts = (int32_t)number(job, "max_attempts", 25),
                              .timeout_us =
                                  number(job, "timeout_ms", TIMEOUT_MS_DEFAULT) * US_PER_MS,
                              .kind = kind,
                              .kind_len = strlen(kind),
                              .args = args,
                              .args_len = strlen(args),
                              .crashes = (int32_t)number(job, "crashes", 0),
                              .queue = queue,
                              .queue_len = strlen(queue),
                              .tags = t->tags,
                              .tags_len = length(t->tags),
                              .metadata = t->metadata,
                              .metadata_len = length(t->metadata),
                              .checkpoint = t->checkpoint,
                              .checkpoint_len = length(t->checkpoint)};
    struct err err = {0};
    if (job_kind_check(kind, &err) != STATUS_OK || job_frame_check(&frame, &err) != STATUS_OK) {
        fail("--job", err.msg);
        return;
    }
    host.is_running = true;
    t->nonce = slot_run(host.slot, &frame, INT64_MAX, t);
    slot_flush(host.slot);
}

/* ---- the outcome ---- */

static const char *outcome(const struct attempt *t, const struct slot_run *run)
{
    if (run->end == RUN_END_SAID) {
        return outcome_names[run->result->outcome];
    }
    if (run->end == RUN_END_NOT_STARTED) {
        return "not_started";
    }
    return t->was_killed ? "killed" : "crashed";
}

/* Adds a text as a worker would store it. */
static void put_text(json_t *line, const char *name, const char *bytes, size_t len)
{
    static char clean[3 * JOB_LOG_TAIL_MAX + 1];
    if (len > 0) {
        (void)utf8_clean(bytes, len, clean, sizeof clean);
        (void)json_object_set_new(line, name, json_string(clean));
    }
}

/* Prints JSON unchanged but on one line: newlines, which stand only between tokens, become
 * spaces. */
static void print_json(const char *name, const char *bytes, size_t len)
{
    json_error_t why;
    if (len == 0) {
        return;
    }
    json_t *value = json_loadb(bytes, len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &why);
    (void)printf(",\"%s\":", name);
    if (value == NULL) {
        (void)fputs("\"no JSON\"", stdout);
        return;
    }
    json_decref(value);
    for (size_t i = 0; i < len; i++) {
        (void)putchar(bytes[i] == '\n' || bytes[i] == '\r' ? ' ' : bytes[i]);
    }
}

static void put_progress(json_t *line, const struct attempt *t)
{
    char words[RUNNER_PROGRESS_BYTES];
    uint32_t count = 0;
    int percent = 0;
    size_t len = 0;
    if (run_said_read_progress(slot_page(host.slot), t->nonce, &count, &percent, words, &len)) {
        (void)json_object_set_new(line, "progress", json_integer(percent));
        put_text(line, "text", words, len);
    }
}

static json_t *describe(const struct attempt *t, const struct slot_run *run)
{
    json_t *line = json_pack("{s:s}", "outcome", outcome(t, run));
    const struct result_frame *r = run->result;
    if (r != NULL) {
        put_text(line, "error", r->error, r->error_len);
        put_text(line, "log", r->log_tail, r->log_tail_len);
        if (r->retry_after_us >= 0) {
            (void)json_object_set_new(line, "delay_ms",
                                      json_integer(r->retry_after_us / US_PER_MS));
        }
    } else {
        put_text(line, "error", run->text, length(run->text));
        put_text(line, "log", run->log_tail, run->log_tail_len);
    }
    put_progress(line, t);
    return line;
}

static void print_field(const char *name, const char *bytes, size_t len)
{
    if (len > 0) {
        (void)printf("%s=%.*s", name, (int)len, bytes);
        (void)putchar('\0');
    }
}

/* Prints the outcome for --fields: for programs that have no JSON parser. */
static void print_fields(json_t *line, const struct slot_run *run, const char *checkpoint,
                         size_t checkpoint_len)
{
    const char *name = NULL;
    const json_t *value = NULL;
    json_object_foreach(line, name, value)
    {
        if (json_is_integer(value)) {
            (void)printf("%s=%" JSON_INTEGER_FORMAT, name, json_integer_value(value));
            (void)putchar('\0');
        } else {
            print_field(name, json_string_value(value), json_string_length(value));
        }
    }
    if (run->result != NULL) {
        print_field("result", run->result->result, run->result->result_len);
    }
    print_field("checkpoint", checkpoint, checkpoint_len);
    (void)putchar('\0');
    (void)fflush(stdout);
}

static void print_attempt(const json_t *line, const struct slot_run *run, const char *checkpoint,
                          size_t checkpoint_len)
{
    autofree char *text = json_dumps(line, JSON_COMPACT | JSON_SORT_KEYS);
    if (text != NULL) {
        (void)printf("%.*s", (int)strlen(text) - 1, text);
    }
    if (run->result != NULL) {
        print_json("result", run->result->result, run->result->result_len);
    }
    print_json("checkpoint", checkpoint, checkpoint_len);
    (void)puts("}");
    (void)fflush(stdout);
}

static int64_t attempts_left(const struct attempt *t)
{
    const json_t *again = json_object_get(t->job, "again");
    return json_is_true(again) ? 1 : json_integer_value(again);
}

/* Plans the next attempt of the same job, if it has one. A snooze is not counted as an attempt. */
static void plan_again(struct attempt *t, const char *ended, const char *checkpoint, size_t len)
{
    json_t *again = attempts_left(t) > 0 ? json_copy(t->job) : NULL;
    if (again == NULL) {
        return;
    }
    int64_t attempt = number(t->job, "attempt", 1) + (strcmp(ended, "snooze") != 0);
    int64_t crashes = number(t->job, "crashes", 0) + (strcmp(ended, "crashed") == 0);
    (void)json_object_set_new(again, "again", json_integer(attempts_left(t) - 1));
    (void)json_object_set_new(again, "id", json_integer(t->id));
    (void)json_object_set_new(again, "attempt", json_integer(attempt));
    (void)json_object_set_new(again, "crashes", json_integer(crashes));
    host.saved = len > 0 ? strndup(checkpoint, len) : TAKE(t->checkpoint);
    json_decref(host.jobs[--host.next]);
    host.jobs[host.next] = again;
}

static void on_ended(void *ctx, struct slot *slot, void *job, const struct slot_run *run)
{
    static char checkpoint[JOB_CHECKPOINT_MAX];
    struct attempt *t = job;
    json_auto_t *line = describe(t, run);
    uint32_t count = 0;
    size_t len = 0;
    (void)ctx;
    (void)slot;
    if (!run_said_read_checkpoint(slot_page(host.slot), t->nonce, &count, checkpoint, &len)) {
        len = 0;
    }
    if (host.has_fields) {
        print_fields(line, run, checkpoint, len);
    } else {
        print_attempt(line, run, checkpoint, len);
    }
    host.is_running = false;
    plan_again(t, outcome(t, run), checkpoint, len);
    release(t);
}

static void on_hello(void *ctx, struct slot *slot, const char *json, size_t len)
{
    json_auto_t *hello = json_loadb(json, len, 0, NULL);
    const json_t *refused = json_array_get(json_object_get(hello, "refused"), 0);
    (void)ctx;
    (void)slot;
    if (refused != NULL) {
        fail(text(refused, "file", "?"), text(refused, "reason", "?"));
    }
}

static void on_nothing(void *ctx, struct slot *slot)
{
    (void)ctx;
    (void)slot;
}

static void on_returned(void *ctx, struct slot *slot, void *job)
{
    (void)job;
    on_nothing(ctx, slot);
}

static void on_died(void *ctx, struct slot *slot, int pid, const char *why)
{
    (void)pid;
    (void)why;
    on_nothing(ctx, slot);
}

static void on_load_died(void *ctx, struct slot *slot, const char *file, const char *why,
                         bool is_hung)
{
    (void)is_hung;
    on_nothing(ctx, slot);
    fail(file, why);
}

static const struct slot_events events = {.hello = on_hello,
                                          .room = on_nothing,
                                          .ended = on_ended,
                                          .returned = on_returned,
                                          .died = on_died,
                                          .load_died = on_load_died};

/* ---- time ---- */

static void stop(struct attempt *t)
{
    bool is_lease = strcmp(t->stop, "lease") == 0;
    t->stopped_us = clock_boot_us();
    if (strcmp(t->stop, "cancel") == 0) {
        slot_cancel(host.slot, t->nonce);
    } else {
        enum stop_reason why = is_lease ? STOP_LEASE : STOP_SHUTDOWN;
        slot_ask_to_stop(host.slot, t->nonce, strcmp(t->stop, "timeout") == 0 ? STOP_TIMEOUT : why);
    }
}

static bool is_stop_due(const struct attempt *t, int64_t now_us)
{
    if (t->stop == NULL || t->stopped_us > 0 || !slot_has_started(host.slot, t->nonce)) {
        return false;
    }
    return t->stop_after_us < 0 ? atomic_load(&slot_page(host.slot)->progress_count) >= 2
                                : now_us - t->begun_us >= t->stop_after_us;
}

static void on_look(uv_timer_t *timer)
{
    int64_t now_us = clock_boot_us();
    struct attempt *t = &host.attempt;
    (void)timer;
    if (host.slot == NULL) {
        return;
    }
    slot_take_results(host.slot);
    if (host.is_running && is_stop_due(t, now_us)) {
        stop(t);
    } else if (host.is_running && t->stopped_us > 0 && !t->was_killed &&
               now_us - t->stopped_us >= t->grace_us) {
        t->was_killed = true;
        slot_kill_run(host.slot, t->nonce);
    } else if (!host.is_running && host.next == host.count) {
        finish();
    } else if (!host.is_running && slot_state(host.slot) == SLOT_IDLE) {
        begin(host.jobs[host.next++]);
    }
}

/* ---- the start ---- */

static bool copy_file(const char *from, const char *to)
{
    autofree char *bytes = malloc(FILE_MAX);
    autoclose int in = open(from, O_RDONLY | O_CLOEXEC);
    autoclose int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    ssize_t n = 0;
    while (in >= 0 && out >= 0 && bytes != NULL && (n = read(in, bytes, FILE_MAX)) > 0) {
        if (write(out, bytes, (size_t)n) != n) {
            return false;
        }
    }
    return in >= 0 && out >= 0 && bytes != NULL && n == 0;
}

/* Makes a folder with this file alone, since the runner loads all files of a folder. */
static bool make_folders(const char *file)
{
    char to[PATH_MAX];
    const char *slash = strrchr(file, '/');
    const char *name = slash == NULL ? file : slash + 1;
    size_t len = strlen(name);
    bool is_program = len > 5 && strcmp(name + len - 5, ".json") == 0;
    (void)umask(022);
    (void)snprintf(host.dir, sizeof host.dir, "/tmp/claimd-handler-XXXXXX");
    if (mkdtemp(host.dir) == NULL) {
        return false;
    }
    (void)snprintf(host.plugins, sizeof host.plugins, "%s/plugins", host.dir);
    (void)snprintf(host.handlers, sizeof host.handlers, "%s/handlers", host.dir);
    (void)snprintf(to, sizeof to, "%s/%s", is_program ? host.handlers : host.plugins, name);
    return mkdir(host.plugins, 0755) == 0 && mkdir(host.handlers, 0755) == 0 && copy_file(file, to);
}

static void remove_folders(const char *file)
{
    char path[PATH_MAX];
    const char *slash = strrchr(file, '/');
    const char *name = slash == NULL ? file : slash + 1;
    (void)snprintf(path, sizeof path, "%s/%s", host.plugins, name);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/%s", host.handlers, name);
    (void)unlink(path);
    (void)rmdir(host.plugins);
    (void)rmdir(host.handlers);
    (void)rmdir(host.dir);
}

static bool find_runner(void)
{
    ssize_t n = readlink("/proc/self/exe", host.runner, sizeof host.runner - 16);
    char *slash = n > 0 ? memrchr(host.runner, '/', (size_t)n) : NULL;
    if (slash == NULL) {
        return false;
    }
    (void)snprintf(slash + 1, 16, "claimd-runner");
    return access(host.runner, X_OK) == 0;
}

static int run(const char *file)
{
    struct err err = {0};
    if (!find_runner() || !make_folders(file)) {
        (void)fprintf(stderr, "claimd-handler-test: %s: %s\n", file, strerror(errno)); /* NOLINT */
        return EXIT_FAILED;
    }
    host.options = (struct slot_options){.loop = &host.loop,
                                         .runner = host.runner,
                                         .plugin_dir = host.plugins,
                                         .handlers = host.handlers,
                                         .jobs_max = INT_MAX,
                                         .age_us = INT64_MAX / 2,
                                         .events = &events};
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)uv_loop_init(&host.loop);
    (void)uv_timer_init(&host.loop, &host.timer);
    timer_start(&host.timer, on_look, LOOK_MS, LOOK_MS);
    if (slot_open(&host.options, &host.slot, &err) != STATUS_OK) {
        fail("slot", err.msg);
    }
    (void)uv_run(&host.loop, UV_RUN_DEFAULT);
    proc_end_children(); /* processes that handlers left behind */
    remove_folders(file);
    return host.is_failed ? EXIT_FAILED : EXIT_DONE;
}

static bool add_job(const char *json)
{
    json_error_t why;
    json_t *job = host.count < JOBS_MAX ? json_loads(json, JSON_REJECT_DUPLICATES, &why) : NULL;
    if (!json_is_object(job)) {
        (void)fprintf(stderr, "claimd-handler-test: --job: no JSON object: %s\n", json);
        return false;
    }
    host.jobs[host.count++] = job;
    return true;
}

static bool add_jobs(const char *path)
{
    autofree char *line = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "re");
    bool is_good = file != NULL;
    if (!is_good) {
        (void)fprintf(stderr, "claimd-handler-test: --jobs: can't open %s\n", path);
    }
    while (is_good && getline(&line, &size, file) > 0) {
        is_good = add_job(line);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return is_good;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"job", required_argument, NULL, 'j'}, {"jobs", required_argument, NULL, 'f'},
        {"fields", no_argument, NULL, 'F'},    {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},      {NULL, 0, NULL, 0}};
    int c = 0;
    log_init("claimd-handler-test", LOG_WARN);
    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (c == 'v') {
            (void)printf("claimd-handler-test %s\n", CLAIMD_BUILD);
            return EXIT_DONE;
        }
        if (c == 'h') {
            (void)fputs(USAGE, stdout);
            return EXIT_DONE;
        }
        host.has_fields = host.has_fields || c == 'F';
        if (c != 'F' && !(c == 'j' && add_job(optarg)) && !(c == 'f' && add_jobs(optarg))) {
            (void)fputs(USAGE, stderr);
            return EXIT_USAGE;
        }
    }
    if (optind != argc - 1 || host.count == 0) {
        (void)fputs(USAGE, stderr);
        return EXIT_USAGE;
    }
    int code = run(argv[optind]);
    for (size_t i = 0; i < host.count; i++) {
        json_decref(host.jobs[i]);
    }
    return code;
}
