/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/host.h"

#include "base/bug.h"
#include "base/clock.h"
#include "base/parse.h"
#include "protocol/run_log.h"
#include "protocol/run_said.h"
#include "runner/output.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#define RETRY_AFTER_MS_MAX ((long long)(JOB_DELAY_US_MAX / US_PER_MS))
#define KEY_SIZE 32 /* for "job:" and a number */

static struct run *run_of(const struct claimd_context *job)
{
    return (struct run *)job->host_data;
}

static int host_should_stop(const struct claimd_context *job)
{
    return atomic_load_explicit(&run_of(job)->page->should_stop, memory_order_relaxed) != 0;
}

static int host_is_cancelled(const struct claimd_context *job)
{
    return atomic_load_explicit(&run_of(job)->page->is_cancelled, memory_order_relaxed) != 0;
}

static size_t characters(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++) {
        count += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return count;
}

static int host_set_progress(const struct claimd_context *job, int percent, const char *text)
{
    const char *said = text != NULL ? text : "";
    size_t len = strnlen(said, RUNNER_PROGRESS_BYTES + 1);
    if (percent < 0 || percent > 100 || len > RUNNER_PROGRESS_BYTES || !utf8_is_clean(said, len) ||
        characters(said) > JOB_PROGRESS_MAX) {
        return -1;
    }
    run_said_progress(run_of(job)->page, percent, said, len);
    return 0;
}

#define NUMERIC_EXPONENT_MAX 131072 /* larger ones are refused by PostgreSQL, with an error */

/* Returns how many digits the exponent after json[at], the 'e' of a number, stands for. */
static size_t exponent_digits(const char *json, size_t len, size_t at)
{
    size_t digits = 0;
    at++;
    at += at < len && (json[at] == '+' || json[at] == '-');
    for (; at < len && json[at] >= '0' && json[at] <= '9' && digits <= NUMERIC_EXPONENT_MAX; at++) {
        digits = 10 * digits + (size_t)(json[at] - '0');
    }
    return digits <= NUMERIC_EXPONENT_MAX ? digits : 0;
}

/* How much longer the JSON becomes when PostgreSQL writes it. */
struct json_growth {
    size_t spaces;    /* one after each comma and colon that has none yet */
    size_t exponents; /* digits of numbers that are written out */
};

static struct json_growth growth_of(const char *json, size_t len)
{
    struct json_growth g = {0};
    bool in_text = false;
    for (size_t i = 0; i < len; i++) {
        char c = json[i];
        if (in_text) {
            i += c == '\\';
        } else {
            bool is_number = i > 0 && json[i - 1] >= '0' && json[i - 1] <= '9';
            g.exponents += is_number && (c == 'e' || c == 'E') ? exponent_digits(json, len, i) : 0;
            bool is_spread = i + 1 < len && strchr(" \t\r\n", json[i + 1]) != NULL;
            g.spaces += (c == ',' || c == ':') && !is_spread;
        }
        in_text = c == '"' ? !in_text : in_text;
    }
    return g;
}

static int host_set_checkpoint(const struct claimd_context *job, const char *json, size_t len)
{
    if (json == NULL || len > JOB_CHECKPOINT_MAX || !utf8_is_clean(json, len)) {
        return -1;
    }
    json_t *value = json_loadb(json, len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
    if (value == NULL) {
        return -1;
    }
    json_decref(value);
    struct json_growth more = growth_of(json, len);
    if (len + more.spaces + more.exponents > JOB_CHECKPOINT_MAX) {
        return -1;
    }
    run_said_checkpoint(run_of(job)->page, json, len);
    return 0;
}

/* Returns the length of the text, which is cut if it does not fit. */
static size_t format_into(char *ret_text, size_t size, const char *format, va_list args)
    __attribute__((__format__(__printf__, 3, 0)));
static size_t format_into(char *ret_text, size_t size, const char *format, va_list args)
{
    int n = vsnprintf(ret_text, size, format, args);
    if (n < 0) {
        ret_text[0] = '\0';
        return 0;
    }
    return (size_t)n < size ? (size_t)n : size - 1;
}

static void host_log(const struct claimd_context *job, const char *format, va_list args)
    __attribute__((__format__(__printf__, 2, 0)));
static void host_log(const struct claimd_context *job, const char *format, va_list args)
{
    char line[RUN_LOG_LINE_MAX];
    size_t len = format_into(line, sizeof line, format, args);
    if (len == 0 || line[len - 1] != '\n') {
        line[len] = '\n'; /* over the NUL: lines are counted, not terminated */
        len++;
    }
    run_log_append(run_of(job)->page, line, len);
}

static int host_set_result(const struct claimd_context *job, const char *json, size_t len)
{
    struct run *run = run_of(job);
    run->result_len = 0;
    size_t written = len <= sizeof run->result ? len + growth_of(json, len).exponents : len;
    run->too_long_len = written > sizeof run->result ? written : 0;
    if (run->too_long_len > 0) {
        return -1;
    }
    if (len > 0) {
        memcpy(run->result, json, len);
    }
    run->result_len = len;
    return 0;
}

static void host_set_error(const struct claimd_context *job, long retry_after_ms,
                           const char *format, va_list args)
    __attribute__((__format__(__printf__, 3, 0)));
static void host_set_error(const struct claimd_context *job, long retry_after_ms,
                           const char *format, va_list args)
{
    struct run *run = run_of(job);
    size_t len = 0;
    run->retry_after_us = -1;
    bool is_too_long = retry_after_ms > RETRY_AFTER_MS_MAX && !SEEDED_BUG(17);
    if (is_too_long) { /* most likely a wrong unit: no job sleeps that long */
        len = (size_t)snprintf(run->error, sizeof run->error,
                               "retry after %ld ms is more than %lld (366 days), the usual backoff "
                               "is used: ",
                               retry_after_ms, RETRY_AFTER_MS_MAX);
    } else if (retry_after_ms >= 0) {
        run->retry_after_us = retry_after_ms * US_PER_MS;
    }
    run->error_len = len + format_into(run->error + len, sizeof run->error - len, format, args);
}

const struct claimd_host HOST = {.size = sizeof(struct claimd_host),
                                 .should_stop = host_should_stop,
                                 .log = host_log,
                                 .set_result = host_set_result,
                                 .set_error = host_set_error,
                                 .is_cancelled = host_is_cancelled,
                                 .set_progress = host_set_progress,
                                 .set_checkpoint = host_set_checkpoint};

void run_init(struct run *run, struct runner_page *page)
{
    run->page = page;
    buf_init(&run->args, JOB_ARGS_MAX);
    buf_init(&run->more, FRAME_MAX);
}

static void run_reset(struct run *run)
{
    run->retry_after_us = -1;
    run->result_len = 0;
    run->too_long_len = 0;
    run->error_len = 0;
    atomic_store(&run->page->started_nonce, 0);
    run_log_reset(run->page);
    run_said_reset(run->page);
}

static void set_own_error(struct run *run, const char *format, ...) PRINTF_LIKE(2, 3);
static void set_own_error(struct run *run, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    run->error_len = format_into(run->error, sizeof run->error, format, args);
    va_end(args);
}

static void set_log_tail(struct run *run, struct result_frame *ret)
{
    ret->log_tail = run->log_tail;
    ret->log_tail_len = run_log_tail(run->page, run->log_tail);
}

static void fill_result(struct run *run, const struct job_frame *job, uint8_t outcome,
                        struct result_frame *ret)
{
    *ret = (struct result_frame){.id = job->id,
                                 .fence = job->fence,
                                 .nonce = job->nonce,
                                 .outcome = outcome,
                                 .retry_after_us = run->retry_after_us,
                                 .result = run->result,
                                 .result_len = run->result_len,
                                 .error = run->error,
                                 .error_len = run->error_len};
    set_log_tail(run, ret);
}

/* A job of such a kind is never given back once it has started (INTERFACES rule 3); the error says
 * why. */
static enum claimd_outcome charge_snooze(struct run *run)
{
    static const char why[] = "charged, a job of an at_most_once kind can't snooze: ";
    size_t len = sizeof why - 1;
    size_t kept =
        run->error_len < sizeof run->error - 1 - len ? run->error_len : sizeof run->error - 1 - len;
    memmove(run->error + len, run->error, kept);
    memcpy(run->error, why, len);
    run->error_len = len + kept;
    return CLAIMD_RETRY;
}

static enum claimd_outcome judge_outcome(struct run *run, const struct claimd_kind *kind,
                                         enum claimd_outcome outcome)
{
    if (outcome < CLAIMD_DONE || outcome > CLAIMD_OUTCOME_LAST) {
        set_own_error(run, "the handler returned %d, which is not an outcome", (int)outcome);
        return CLAIMD_FAIL;
    }
    if (outcome == CLAIMD_DONE &&
        run->too_long_len > 0) { /* the handler ignored the return value of set_result() */
        run->error_len = (size_t)snprintf(run->error, sizeof run->error,
                                          "result refused: %zu bytes, at most %zu",
                                          run->too_long_len, sizeof run->result);
        return CLAIMD_FAIL;
    }
    if (outcome == CLAIMD_SNOOZE && kind->at_most_once != 0) {
        return charge_snooze(run);
    }
    return outcome;
}

/* Texts of a job besides its args; NULL = none. */
struct told {
    const char *queue;
    const char *tags;
    const char *metadata;
    const char *checkpoint;
    const char *predecessors;
};

/* The buffer must have room already, so that texts kept earlier do not move. */
static const char *keep(struct buf *b, const char *text, size_t len)
{
    if (len == 0) {
        return NULL;
    }
    char *kept = buf_at(b) + b->len;
    memcpy(kept, text, len);
    kept[len] = '\0';
    buf_grew(b, len + 1);
    return kept;
}

static enum status keep_told(struct run *run, const struct job_frame *job, struct told *ret,
                             struct err *err)
{
    size_t len = job->queue_len + job->tags_len + job->metadata_len + job->checkpoint_len +
                 job->predecessors_len + 5;
    buf_reset(&run->more);
    enum status st = buf_reserve(&run->more, len, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret = (struct told){
        .queue = keep(&run->more, job->queue, job->queue_len),
        .tags = keep(&run->more, job->tags, job->tags_len),
        .metadata = keep(&run->more, job->metadata, job->metadata_len),
        .checkpoint = keep(&run->more, job->checkpoint, job->checkpoint_len),
        .predecessors = keep(&run->more, job->predecessors, job->predecessors_len),
    };
    return STATUS_OK;
}

enum status run_job(struct run *run, const struct claimd_kind *kind, const struct job_frame *job,
                    _Atomic int64_t *place, struct result_frame *ret, struct err *err)
{
    run_reset(run);
    buf_reset(&run->args);
    enum status st = buf_append(&run->args, job->args, job->args_len, err);
    if (st != STATUS_OK) {
        return st;
    }
    struct told told;
    st = keep_told(run, job, &told, err);
    if (st != STATUS_OK) {
        return st;
    }
    char key[KEY_SIZE];
    int64_t started_us = clock_boot_us();
    (void)snprintf(key, sizeof key, "job:%" PRId64, job->id);
    memcpy(run->kind, job->kind, job->kind_len);
    run->kind[job->kind_len] = '\0';
    const struct claimd_context context = {.size = sizeof context,
                                           .host = &HOST,
                                           .host_data = run,
                                           .id = job->id,
                                           .fence = job->fence,
                                           .kind = run->kind,
                                           .args = buf_at(&run->args),
                                           .args_len = job->args_len,
                                           .attempt = job->attempt,
                                           .max_attempts = job->max_attempts,
                                           .deadline_us = started_us + job->timeout_us,
                                           .idempotency_key = key,
                                           .checkpoint = told.checkpoint,
                                           .checkpoint_len = job->checkpoint_len,
                                           .queue = told.queue,
                                           .tags = told.tags,
                                           .metadata = told.metadata,
                                           .crashes = job->crashes,
                                           .generation = job->generation,
                                           .created_at_us = job->created_at_us,
                                           .predecessors = told.predecessors,
                                           .predecessors_len = job->predecessors_len};
    int64_t ticket = atomic_load(place);
    if (ticket <= 0 || !atomic_compare_exchange_strong(place, &ticket, -job->nonce)) {
        return err_fail(err, STATUS_NOT_FOUND, "job %" PRId64 " was taken back", job->id);
    }
    atomic_store(&run->page->started_nonce, job->nonce);
    output_begin(job->id);
    enum claimd_outcome outcome = kind->handle(&context);
    int64_t ran_us = clock_boot_us() - started_us;
    output_end();
    fill_result(run, job, (uint8_t)judge_outcome(run, kind, outcome), ret);
    ret->ran_us = ran_us;
    return STATUS_OK;
}

void run_refuse(struct run *run, const struct job_frame *job, struct result_frame *ret)
{
    run_reset(run);
    set_own_error(run, "no plugin of this runner serves kind %.*s", (int)job->kind_len, job->kind);
    fill_result(run, job, RESULT_UNSERVED, ret);
}

void run_note(struct run *run, struct result_frame *result, const char *text)
{
    run_log_append(run->page, text, strlen(text));
    run_log_append(run->page, "\n", 1);
    set_log_tail(run, result);
}
