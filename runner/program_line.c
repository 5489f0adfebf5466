/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/program_line.h"

#include "base/clock.h"
#include "base/parse.h"
#include "protocol/protocol.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#define DEPTH_MAX 1000
#define NUMBER_MAX 32                   /* characters of a number that is parsed */
#define NUMBER_LIMIT 9007199254740991.0 /* 2⁵³ − 1: exact in every JSON library */

/* ---- scanning JSON without changing it ---- */

struct scan {
    const char *at;
    const char *end;
};

static bool skip_value(struct scan *s, int depth);

static void skip_space(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\r')) {
        s->at++;
    }
}

static bool skip_char(struct scan *s, char wanted)
{
    skip_space(s);
    bool is_there = s->at < s->end && *s->at == wanted;
    s->at += is_there;
    return is_there;
}

static bool skip_word(struct scan *s, const char *word)
{
    size_t len = strlen(word);
    bool is_there = (size_t)(s->end - s->at) >= len && memcmp(s->at, word, len) == 0;
    s->at += is_there ? len : 0;
    return is_there;
}

static bool skip_digits(struct scan *s)
{
    const char *begin = s->at;
    while (s->at < s->end && isdigit((unsigned char)*s->at)) {
        s->at++;
    }
    return s->at > begin;
}

static bool skip_number(struct scan *s)
{
    s->at += s->at < s->end && *s->at == '-';
    if (s->at < s->end && *s->at == '0') {
        s->at++;
    } else if (!skip_digits(s)) {
        return false;
    }
    if (s->at < s->end && *s->at == '.') {
        s->at++;
        if (!skip_digits(s)) {
            return false;
        }
    }
    if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
        s->at++;
        s->at += s->at < s->end && (*s->at == '+' || *s->at == '-');
        return skip_digits(s);
    }
    return true;
}

static bool skip_escape(struct scan *s)
{
    char c = s->at < s->end ? *s->at++ : '\0';
    if (c == 'u') {
        for (int i = 0; i < 4; i++, s->at++) {
            if (s->at == s->end || !isxdigit((unsigned char)*s->at)) {
                return false;
            }
        }
        return true;
    }
    return c != '\0' && strchr("\"\\/bfnrt", c) != NULL;
}

static bool skip_string(struct scan *s)
{
    if (!skip_char(s, '"')) {
        return false;
    }
    while (s->at < s->end) {
        unsigned char c = (unsigned char)*s->at++;
        if (c == '"') {
            return true;
        }
        if (c < 0x20 || (c == '\\' && !skip_escape(s))) {
            return false;
        }
    }
    return false;
}

static bool skip_array(struct scan *s, int depth)
{
    if (!skip_char(s, '[')) {
        return false;
    }
    if (skip_char(s, ']')) {
        return true;
    }
    do {
        if (!skip_value(s, depth + 1)) {
            return false;
        }
    } while (skip_char(s, ','));
    return skip_char(s, ']');
}

static bool skip_object(struct scan *s, int depth)
{
    if (!skip_char(s, '{')) {
        return false;
    }
    if (skip_char(s, '}')) {
        return true;
    }
    do {
        if (!skip_string(s) || !skip_char(s, ':') || !skip_value(s, depth + 1)) {
            return false;
        }
    } while (skip_char(s, ','));
    return skip_char(s, '}');
}

static bool skip_value(struct scan *s, int depth)
{
    skip_space(s);
    if (s->at == s->end || depth > DEPTH_MAX) {
        return false;
    }
    switch (*s->at) {
    case '{':
        return skip_object(s, depth);
    case '[':
        return skip_array(s, depth);
    case '"':
        return skip_string(s);
    case 't':
        return skip_word(s, "true");
    case 'f':
        return skip_word(s, "false");
    case 'n':
        return skip_word(s, "null");
    default:
        return skip_number(s);
    }
}

/* Takes the next value, without the space around it. */
static bool take_value(struct scan *s, struct json_span *ret)
{
    skip_space(s);
    const char *begin = s->at;
    bool is_value = skip_value(s, 1);
    *ret = (struct json_span){.at = begin, .len = (size_t)(s->at - begin)};
    return is_value;
}

static bool is_null(struct json_span v)
{
    return v.len == 0 || v.at[0] == 'n';
}

static bool is_string(struct json_span v)
{
    return v.len > 0 && v.at[0] == '"';
}

static bool span_is(struct json_span v, const char *json)
{
    return v.len == strlen(json) && memcmp(v.at, json, v.len) == 0;
}

/* ---- strings ---- */

static unsigned hex4(const char *at)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        value =
            16 * value + (unsigned)(isdigit((unsigned char)c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

/* Decodes \uXXXX. Half a surrogate pair becomes U+FFFD, and so does NUL, which PostgreSQL refuses
 * in texts. */
static unsigned take_code(const char **at, const char *end)
{
    unsigned code = hex4(*at);
    *at += 4;
    if (code >= 0xD800 && code < 0xDC00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        unsigned low = hex4(*at + 2);
        if (low >= 0xDC00 && low < 0xE000) {
            *at += 6;
            return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    return code == 0 || (code >= 0xD800 && code < 0xE000) ? 0xFFFD : code;
}

static size_t put_code(unsigned code, char ret[4])
{
    size_t more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char marks[] = {0, 0xC0, 0xE0, 0xF0};
    for (size_t i = more; i > 0; i--) {
        ret[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    ret[0] = (char)(marks[more] | code);
    return more + 1;
}

static char unescaped(char c)
{
    static const char from[] = "bfnrt";
    static const char to[] = "\b\f\n\r\t";
    const char *found = strchr(from, c);
    return found == NULL || c == '\0' ? c : to[found - from];
}

/* Takes the next character of a checked string, as UTF-8. Returns its length. */
static size_t take_character(const char **at, const char *end, char ret[4])
{
    if (**at != '\\') {
        int len = utf8_length(*at, (size_t)(end - *at));
        size_t n = len > 0 ? (size_t)len : 1;
        memcpy(ret, *at, n);
        *at += n;
        return n;
    }
    *at += 2;
    if ((*at)[-1] == 'u') {
        return put_code(take_code(at, end), ret);
    }
    ret[0] = unescaped((*at)[-1]);
    return 1;
}

size_t json_text(struct json_span string, char *ret_text, size_t size)
{
    size_t len = 0;
    ret_text[0] = '\0';
    if (!is_string(string)) {
        return 0;
    }
    const char *at = string.at + 1;
    const char *end = string.at + string.len - 1;
    while (at < end) {
        char character[4];
        size_t n = take_character(&at, end, character);
        if (len + n >= size) {
            break;
        }
        memcpy(ret_text + len, character, n);
        len += n;
    }
    ret_text[len] = '\0';
    return len;
}

/* ---- what a program says ---- */

struct members {
    struct json_span claimd;
    struct json_span kinds;
    struct json_span sigterm;
    struct json_span n;
    struct json_span log;
    struct json_span progress;
    struct json_span text;
    struct json_span checkpoint;
    struct json_span result;
    struct json_span end;
    struct json_span delay_ms;
    struct json_span error;
};

static struct json_span *member(struct members *m, struct json_span key)
{
    const struct {
        const char *key;
        struct json_span *value;
    } known[] = {{"\"claimd\"", &m->claimd},     {"\"kinds\"", &m->kinds},
                 {"\"sigterm\"", &m->sigterm},   {"\"n\"", &m->n},
                 {"\"log\"", &m->log},           {"\"progress\"", &m->progress},
                 {"\"text\"", &m->text},         {"\"checkpoint\"", &m->checkpoint},
                 {"\"result\"", &m->result},     {"\"end\"", &m->end},
                 {"\"delay_ms\"", &m->delay_ms}, {"\"error\"", &m->error}};
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        if (span_is(key, known[i].key)) {
            return known[i].value;
        }
    }
    return NULL;
}

static enum status take_member(struct scan *s, struct members *m, struct err *err)
{
    struct json_span key;
    struct json_span value;
    skip_space(s);
    if (s->at == s->end || *s->at != '"' || !take_value(s, &key) || !skip_char(s, ':') ||
        !take_value(s, &value)) {
        return err_fail(err, STATUS_INVALID, "a line that is not JSON");
    }
    struct json_span *known = member(m, key);
    if (known != NULL && known->len > 0) {
        return err_fail(err, STATUS_INVALID, "a line with %.*s twice", (int)key.len, key.at);
    }
    if (known != NULL) {
        *known = value;
    }
    return STATUS_OK;
}

static enum status take_members(const char *line, size_t len, struct members *ret, struct err *err)
{
    struct scan s = {.at = line, .end = line + len};
    if (!utf8_is_clean(line, len)) {
        return err_fail(err, STATUS_INVALID, "a line that is not UTF-8");
    }
    if (!skip_char(&s, '{')) {
        return err_fail(err, STATUS_INVALID, "a line that is not a JSON object");
    }
    if (!skip_char(&s, '}')) {
        do {
            enum status st = take_member(&s, ret, err);
            if (st != STATUS_OK) {
                return st;
            }
        } while (skip_char(&s, ','));
        if (!skip_char(&s, '}')) {
            return err_fail(err, STATUS_INVALID, "a line that is not JSON");
        }
    }
    skip_space(&s);
    if (s.at < s.end) {
        return err_fail(err, STATUS_INVALID, "a line with text after its JSON object");
    }
    return STATUS_OK;
}

static enum status number(struct json_span v, const char *name, int64_t *ret, struct err *err)
{
    char text[NUMBER_MAX + 1];
    size_t len = v.len < NUMBER_MAX ? v.len : NUMBER_MAX;
    memcpy(text, v.at, len);
    text[len] = '\0';
    bool is_number = v.len <= NUMBER_MAX && (text[0] == '-' || isdigit((unsigned char)text[0]));
    double value = is_number ? strtod(text, NULL) : 0;
    if (!is_number || value > NUMBER_LIMIT || value < -NUMBER_LIMIT) {
        return err_fail(err, STATUS_INVALID, "%s is %s%s, expected a number up to 2^53", name, text,
                        v.len > NUMBER_MAX ? "…" : "");
    }
    *ret = (int64_t)value;
    return STATUS_OK;
}

static enum status wants_string(struct json_span v, const char *name, struct err *err)
{
    if (!is_null(v) && !is_string(v)) {
        return err_fail(err, STATUS_INVALID, "%s is not a string", name);
    }
    return STATUS_OK;
}

static enum status read_end(const struct members *m, struct program_line *ret, struct err *err)
{
    int named = is_string(m->end) ? outcome_named(m->end.at + 1, m->end.len - 2) : 0;
    if (named == 0) {
        return err_fail(err, STATUS_INVALID,
                        "end is %.*s, expected done, retry, fail, snooze or cancel",
                        (int)(m->end.len < 40 ? m->end.len : 40), m->end.at);
    }
    ret->end = (enum claimd_outcome)named;
    ret->json = is_null(m->result) ? (struct json_span){.len = 0} : m->result;
    ret->text = m->error;
    ret->number = -1;
    if (!is_null(m->delay_ms)) {
        enum status st = number(m->delay_ms, "delay_ms", &ret->number, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return wants_string(m->error, "error", err);
}

static enum status read_said(const struct members *m, struct program_line *ret, struct err *err)
{
    switch (ret->said) {
    case SAID_HELLO:
        ret->kinds = m->kinds;
        ret->takes_sigterm = span_is(m->sigterm, "true");
        return number(m->claimd, "claimd", &ret->number, err);
    case SAID_LOG:
        ret->text = m->log;
        if (!is_string(m->log)) {
            return err_fail(err, STATUS_INVALID, "log is not a string");
        }
        return STATUS_OK;
    case SAID_PROGRESS:
        ret->text = m->text;
        if (wants_string(m->text, "text", err) != STATUS_OK) {
            return STATUS_INVALID;
        }
        return number(m->progress, "progress", &ret->number, err);
    case SAID_CHECKPOINT:
        ret->json = m->checkpoint;
        return STATUS_OK;
    case SAID_RESULT:
        ret->json = m->result;
        return STATUS_OK;
    case SAID_END:
        break;
    }
    return read_end(m, ret, err);
}

enum status program_line_parse(const char *line, size_t len, struct program_line *ret,
                               struct err *err)
{
    struct members m = {0};
    *ret = (struct program_line){.number = -1};
    enum status st = take_members(line, len, &m, err);
    if (st != STATUS_OK) {
        return st;
    }
    const struct {
        struct json_span value;
        enum program_said said;
    } sayings[] = {
        {m.end, SAID_END},           {m.claimd, SAID_HELLO},          {m.log, SAID_LOG},
        {m.progress, SAID_PROGRESS}, {m.checkpoint, SAID_CHECKPOINT}, {m.result, SAID_RESULT}};
    size_t i = 0;
    while (i < ARRAY_COUNT(sayings) && sayings[i].value.len == 0) {
        i++;
    }
    if (i == ARRAY_COUNT(sayings)) {
        return err_fail(err, STATUS_INVALID,
                        "a line without any of claimd, log, progress, checkpoint, result, end");
    }
    ret->said = sayings[i].said;
    if (m.n.len > 0) {
        st = number(m.n, "n", &ret->n, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return read_said(&m, ret, err);
}

bool program_line_has_kind(const struct program_line *hello, const char *kind)
{
    struct scan s = {.at = hello->kinds.at, .end = hello->kinds.at + hello->kinds.len};
    struct json_span item;
    char name[128];
    if (hello->kinds.len == 0 || !skip_char(&s, '[')) {
        return false;
    }
    do {
        if (!take_value(&s, &item)) {
            return false;
        }
        (void)json_text(item, name, sizeof name);
        if (strcmp(name, kind) == 0) {
            return true;
        }
    } while (skip_char(&s, ','));
    return false;
}

/* ---- what the host says ---- */

enum status program_line_put_hello(struct buf *out, struct err *err)
{
    return buf_printf(out, err, "{\"claimd\":[%d,%d]}\n", PROGRAM_PROTOCOL_VERSION,
                      PROGRAM_PROTOCOL_VERSION);
}

/* Replaces newlines by spaces: in JSON they stand only between tokens, never within strings. */
static enum status put_json(struct buf *out, const char *name, const char *json, size_t len,
                            struct err *err)
{
    enum status st = buf_printf(out, err, ",\"%s\":", name);
    if (st != STATUS_OK) {
        return st;
    }
    size_t begin = out->len;
    st = len > 0 ? buf_append(out, json, len, err) : buf_append_text(out, "null", err);
    for (size_t i = begin; st == STATUS_OK && i < out->len; i++) {
        char *c = buf_at(out) + i;
        *c = *c == '\n' || *c == '\r' ? ' ' : *c;
    }
    return st;
}

static size_t length(const char *text)
{
    return text == NULL ? 0 : strlen(text);
}

enum status program_line_put_job(struct buf *out, int64_t n, const struct claimd_context *job,
                                 int64_t now_us, struct err *err)
{
    const struct {
        const char *name;
        const char *json;
        size_t len;
    } texts[] = {{"args", job->args, job->args_len},
                 {"tags", job->tags, length(job->tags)},
                 {"metadata", job->metadata, length(job->metadata)},
                 {"checkpoint", job->checkpoint, job->checkpoint_len},
                 {"predecessors", job->predecessors, job->predecessors_len}};
    int64_t left_ms = (job->deadline_us - now_us) / US_PER_MS;
    enum status st = buf_printf(
        out, err,
        "{\"n\":%" PRId64 ",\"job\":%" PRId64 ",\"kind\":\"%s\",\"attempt\":%d,"
        "\"max_attempts\":%d,\"crashes\":%d,\"generation\":%d,\"fence\":%" PRId64
        ",\"key\":\"%s\",\"queue\":\"%s\",\"timeout_ms\":%" PRId64 ",\"created_at_us\":%" PRId64,
        n, job->id, job->kind, job->attempt, job->max_attempts, job->crashes, job->generation,
        job->fence, job->idempotency_key, job->queue == NULL ? "" : job->queue,
        left_ms > 0 ? left_ms : 0, job->created_at_us);
    for (size_t i = 0; st == STATUS_OK && i < ARRAY_COUNT(texts); i++) {
        st = put_json(out, texts[i].name, texts[i].json, texts[i].len, err);
    }
    if (st != STATUS_OK) {
        return st;
    }
    return buf_append_text(out, "}\n", err);
}

enum status program_line_put_stop(struct buf *out, int64_t n, const char *why, struct err *err)
{
    return buf_printf(out, err, "{\"stop\":\"%s\",\"n\":%" PRId64 "}\n", why, n);
}
