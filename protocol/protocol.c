/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/protocol.h"

#include "base/bug.h"

#include <assert.h>

const char *const outcome_names[CLAIMD_OUTCOME_LAST + 1] = {[CLAIMD_DONE] = "done",
                                                            [CLAIMD_RETRY] = "retry",
                                                            [CLAIMD_FAIL] = "fail",
                                                            [CLAIMD_SNOOZE] = "snooze",
                                                            [CLAIMD_CANCEL] = "cancel"};

int outcome_named(const char *name, size_t len)
{
    int outcome = CLAIMD_OUTCOME_LAST;
    while (outcome > 0 && (strlen(outcome_names[outcome]) != len ||
                           memcmp(outcome_names[outcome], name, len) != 0)) {
        outcome--;
    }
    return outcome;
}

static_assert(sizeof(struct runner_page) <= RUNNER_PAGE_SIZE, "the page holds the struct");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
              "a lock inside an atomic would not work between processes");

#define LENGTH_BYTES 4 /* size of the length field itself */
#define JOB_FIXED_BYTES (8 + 8 + 8 + 4 + 4 + 8 + 4 + 4 + 4 + 4 + 8 + 4 + 4 + 4 + 4 + 4)
#define RESULT_FIXED_BYTES (8 + 8 + 8 + 1 + 1 + 8 + 8 + 4 + 4 + 4)

static_assert(JOB_FIXED_BYTES + 2 * JOB_NAME_MAX + JOB_ARGS_MAX + RUNNER_TAGS_MAX +
                      JOB_METADATA_MAX + JOB_CHECKPOINT_MAX + FRAME_HEAD <=
                  FRAME_MAX,
              "the largest job fits a frame");
static_assert(RESULT_FIXED_BYTES + JOB_RESULT_MAX + JOB_ERROR_MAX + JOB_LOG_TAIL_MAX + FRAME_HEAD <=
                  RUNNER_RING_BYTES,
              "the largest result fits the ring");

/* Writes into room that was reserved for the whole frame, so none of these can fail. */
struct writer {
    unsigned char *at;
};

static void put_uint(struct writer *w, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        *w->at++ = (unsigned char)(value >> (8 * i));
    }
}

static void put_i64(struct writer *w, int64_t value)
{
    put_uint(w, (uint64_t)value, 8);
}

static void put_bytes(struct writer *w, const char *bytes, size_t len)
{
    put_uint(w, len, 4);
    if (len > 0) {
        memcpy(w->at, bytes, len);
        w->at += len;
    }
}

/* Reads a body. Once `failed` is set, every further read yields zeros, so callers check once at the
 * end. */
struct reader {
    const unsigned char *at;
    size_t left;
    bool failed;
};

static struct reader reader_of(const char *body, size_t len)
{
    return (struct reader){.at = (const unsigned char *)body, .left = len};
}

static uint64_t get_uint(struct reader *r, size_t bytes)
{
    if (r->failed || r->left < bytes) {
        r->failed = true;
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)r->at[i] << (8 * i);
    }
    r->at += bytes;
    r->left -= bytes;
    return value;
}

static int64_t get_i64(struct reader *r)
{
    return (int64_t)get_uint(r, 8);
}

static int32_t get_i32(struct reader *r)
{
    return (int32_t)(uint32_t)get_uint(r, 4);
}

static const char *get_bytes(struct reader *r, size_t max, size_t *ret_len)
{
    size_t len = (size_t)get_uint(r, 4);
    if (r->failed || len > max || len > r->left) {
        r->failed = true;
        *ret_len = 0;
        return "";
    }
    const char *bytes = (const char *)r->at;
    r->at += len;
    r->left -= len;
    *ret_len = len;
    return bytes;
}

static bool read_whole(const struct reader *r)
{
    return !r->failed && r->left == 0;
}

/* Reserves room for a frame and writes its head; the caller writes `body` bytes and calls
 * frame_close(). */
static enum status frame_open(struct buf *out, enum frame_type type, size_t body,
                              struct writer *ret_writer, struct err *err)
{
    if (body > FRAME_MAX - FRAME_HEAD) {
        return err_fail(err, STATUS_LIMIT, "frame: a body of %zu bytes exceeds the limit of %zu",
                        body, FRAME_MAX - FRAME_HEAD);
    }
    enum status st = buf_reserve(out, FRAME_HEAD + body, err);
    if (st != STATUS_OK) {
        return st;
    }
    ret_writer->at = (unsigned char *)buf_at(out) + out->len;
    put_uint(ret_writer, FRAME_HEAD - LENGTH_BYTES + body, LENGTH_BYTES);
    put_uint(ret_writer, (uint64_t)type, 1);
    put_uint(ret_writer, RUNNER_PROTOCOL_VERSION, 1);
    return STATUS_OK;
}

static void frame_close(struct buf *out, size_t body, const struct writer *w)
{
    assert(w->at == (unsigned char *)buf_at(out) + out->len + FRAME_HEAD + body);
    buf_grew(out, FRAME_HEAD + body);
}

static enum status check_length(const char *what, size_t len, size_t max, struct err *err)
{
    if (len > max) {
        return err_fail(err, STATUS_LIMIT, "%s: %zu bytes as text, at most %zu", what, len, max);
    }
    return STATUS_OK;
}

enum status job_frame_check(const struct job_frame *f, struct err *err)
{
    const struct {
        const char *what;
        size_t len;
        size_t max;
    } texts[] = {{"kind", f->kind_len, JOB_NAME_MAX},
                 {"args", f->args_len, JOB_ARGS_MAX},
                 {"queue", f->queue_len, JOB_NAME_MAX},
                 {"tags", f->tags_len, RUNNER_TAGS_MAX},
                 {"metadata", f->metadata_len, JOB_METADATA_MAX},
                 {"checkpoint", f->checkpoint_len, JOB_CHECKPOINT_MAX},
                 {"predecessors", f->predecessors_len, JOB_PREDECESSORS_MAX}};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        enum status st = check_length(texts[i].what, texts[i].len, texts[i].max, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

enum status job_frame_put(struct buf *out, const struct job_frame *f, struct err *err)
{
    enum status st = job_frame_check(f, err);
    if (st != STATUS_OK) {
        return st;
    }
    size_t more =
        f->queue_len + f->tags_len + f->metadata_len + f->checkpoint_len + f->predecessors_len;
    size_t body = JOB_FIXED_BYTES + f->kind_len + f->args_len + more;
    struct writer w = {0};
    st = frame_open(out, FRAME_JOB, body, &w, err);
    if (st != STATUS_OK) {
        return st;
    }
    put_i64(&w, f->id);
    put_i64(&w, f->fence);
    put_i64(&w, f->nonce);
    put_uint(&w, (uint32_t)f->attempt, 4);
    put_uint(&w, (uint32_t)f->max_attempts, 4);
    put_i64(&w, f->timeout_us);
    put_bytes(&w, f->kind, f->kind_len);
    put_bytes(&w, f->args, f->args_len);
    put_uint(&w, (uint32_t)f->crashes, 4);
    put_uint(&w, (uint32_t)f->generation, 4);
    put_i64(&w, f->created_at_us);
    put_bytes(&w, f->queue, f->queue_len);
    put_bytes(&w, f->tags, f->tags_len);
    put_bytes(&w, f->metadata, f->metadata_len);
    put_bytes(&w, f->checkpoint, f->checkpoint_len);
    put_bytes(&w, f->predecessors, f->predecessors_len);
    frame_close(out, body, &w);
    return STATUS_OK;
}

enum status result_frame_put(struct buf *out, const struct result_frame *f, struct err *err)
{
    enum status st = check_length("result", f->result_len, JOB_RESULT_MAX, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_length("error", f->error_len, JOB_ERROR_MAX, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_length("log tail", f->log_tail_len, JOB_LOG_TAIL_MAX, err);
    if (st != STATUS_OK) {
        return st;
    }
    size_t body = RESULT_FIXED_BYTES + f->result_len + f->error_len + f->log_tail_len;
    struct writer w = {0};
    st = frame_open(out, FRAME_RESULT, body, &w, err);
    if (st != STATUS_OK) {
        return st;
    }
    put_i64(&w, f->id);
    put_i64(&w, f->fence);
    put_i64(&w, f->nonce);
    put_uint(&w, f->outcome, 1);
    put_uint(&w, f->leaving ? 1 : 0, 1);
    put_i64(&w, f->retry_after_us);
    put_i64(&w, f->ran_us);
    put_bytes(&w, f->result, f->result_len);
    put_bytes(&w, f->error, f->error_len);
    put_bytes(&w, f->log_tail, f->log_tail_len);
    frame_close(out, body, &w);
    return STATUS_OK;
}

enum status hello_frame_put(struct buf *out, const char *json, size_t len, struct err *err)
{
    struct writer w = {0};
    enum status st = frame_open(out, FRAME_HELLO, len, &w, err);
    if (st != STATUS_OK) {
        return st;
    }
    memcpy(w.at, json, len);
    w.at += len;
    frame_close(out, len, &w);
    return STATUS_OK;
}

enum status nudge_frame_put(struct buf *out, bool leaving, struct err *err)
{
    struct writer w = {0};
    enum status st = frame_open(out, FRAME_NUDGE, 1, &w, err);
    if (st != STATUS_OK) {
        return st;
    }
    put_uint(&w, leaving ? 1 : 0, 1);
    frame_close(out, 1, &w);
    return STATUS_OK;
}

enum status frame_take(const struct buf *in, enum frame_type *ret_type, const char **ret_body,
                       size_t *ret_len, size_t *ret_size, struct err *err)
{
    if (in->len < FRAME_HEAD) {
        return err_fail(err, STATUS_NOT_FOUND, "frame: its header is incomplete");
    }
    struct reader r = reader_of(buf_at(in), in->len);
    size_t length = (size_t)get_uint(&r, LENGTH_BYTES);
    uint64_t type = get_uint(&r, 1);
    uint64_t version = get_uint(&r, 1);
    if (length < FRAME_HEAD - LENGTH_BYTES || length > FRAME_MAX - LENGTH_BYTES) {
        return err_fail(err, STATUS_INVALID, "frame: length %zu is not in %d…%zu", length,
                        FRAME_HEAD - LENGTH_BYTES, FRAME_MAX - LENGTH_BYTES);
    }
    if (type < FRAME_HELLO || type > FRAME_NUDGE) {
        return err_fail(err, STATUS_INVALID, "frame: unknown type %d", (int)type);
    }
    if (version != RUNNER_PROTOCOL_VERSION) {
        return err_fail(err, STATUS_INVALID, "frame: version %d, expected %d", (int)version,
                        RUNNER_PROTOCOL_VERSION);
    }
    if (in->len < LENGTH_BYTES + length) {
        return err_fail(err, STATUS_NOT_FOUND, "frame: its body is incomplete");
    }
    *ret_type = (enum frame_type)type;
    *ret_body = (const char *)r.at;
    *ret_len = LENGTH_BYTES + length - FRAME_HEAD;
    *ret_size = LENGTH_BYTES + length;
    return STATUS_OK;
}

enum status job_frame_get(const char *body, size_t len, struct job_frame *ret, struct err *err)
{
    struct reader r = reader_of(body, len);
    struct job_frame f = {0};
    f.id = get_i64(&r);
    f.fence = get_i64(&r);
    f.nonce = get_i64(&r);
    f.attempt = get_i32(&r);
    f.max_attempts = get_i32(&r);
    f.timeout_us = get_i64(&r);
    f.kind = get_bytes(&r, JOB_NAME_MAX, &f.kind_len);
    f.args = get_bytes(&r, JOB_ARGS_MAX, &f.args_len);
    f.crashes = get_i32(&r);
    f.generation = get_i32(&r);
    f.created_at_us = get_i64(&r);
    f.queue = get_bytes(&r, JOB_NAME_MAX, &f.queue_len);
    f.tags = get_bytes(&r, RUNNER_TAGS_MAX, &f.tags_len);
    f.metadata = get_bytes(&r, JOB_METADATA_MAX, &f.metadata_len);
    f.checkpoint = get_bytes(&r, JOB_CHECKPOINT_MAX, &f.checkpoint_len);
    f.predecessors = get_bytes(&r, JOB_PREDECESSORS_MAX, &f.predecessors_len);
    if (!read_whole(&r)) {
        return err_fail(err, STATUS_INVALID,
                        "job frame: a body of %zu bytes does not match its fields", len);
    }
    if (f.id < 1 || f.fence < 1 || f.nonce < 1 || f.attempt < 1 || f.max_attempts < 1 ||
        f.timeout_us < 0 || f.kind_len == 0) {
        return err_fail(err, STATUS_INVALID, "job frame: a field is out of range");
    }
    *ret = f;
    return STATUS_OK;
}

static bool is_outcome(uint8_t outcome)
{
    return outcome == RESULT_UNSERVED || (outcome >= CLAIMD_DONE && outcome <= CLAIMD_OUTCOME_LAST);
}

enum status result_frame_get(const char *body, size_t len, struct result_frame *ret,
                             struct err *err)
{
    struct reader r = reader_of(body, len);
    struct result_frame f = {0};
    f.id = get_i64(&r);
    f.fence = get_i64(&r);
    f.nonce = get_i64(&r);
    f.outcome = (uint8_t)get_uint(&r, 1);
    uint64_t leaving = get_uint(&r, 1);
    f.leaving = leaving == 1;
    f.retry_after_us = get_i64(&r);
    f.ran_us = get_i64(&r);
    f.result = get_bytes(&r, JOB_RESULT_MAX, &f.result_len);
    f.error = get_bytes(&r, JOB_ERROR_MAX, &f.error_len);
    f.log_tail = get_bytes(&r, JOB_LOG_TAIL_MAX, &f.log_tail_len);
    if (!read_whole(&r)) {
        return err_fail(err, STATUS_INVALID,
                        "result frame: a body of %zu bytes does not match its fields", len);
    }
    if (f.id < 1 || f.fence < 1 || f.nonce < 1 || !is_outcome(f.outcome) || leaving > 1 ||
        f.ran_us < 0 || (f.retry_after_us > JOB_DELAY_US_MAX && !SEEDED_BUG(17))) {
        return err_fail(err, STATUS_INVALID, "result frame: a field is out of range");
    }
    *ret = f;
    return STATUS_OK;
}

enum status nudge_frame_get(const char *body, size_t len, bool *ret_leaving, struct err *err)
{
    struct reader r = reader_of(body, len);
    uint64_t leaving = get_uint(&r, 1);
    if (!read_whole(&r) || leaving > 1) {
        return err_fail(err, STATUS_INVALID, "nudge frame: a body of %zu bytes is wrong", len);
    }
    *ret_leaving = leaving == 1;
    return STATUS_OK;
}
