/* SPDX-License-Identifier: Apache-2.0
 *
 * Binary parameters and results, and the SQLSTATE of a refusal. */
#include "sql/errors.h"
#include "store/pg/internal.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#define TID_BYTES 6
#define PG_EPOCH_UNIX_US (INT64_C(946684800) * 1000000) /* 2000-01-01 */
#define ARRAY_HEAD 20

/* ---- refusals ---- */

static const struct {
    const char *prefix; /* of the SQLSTATE; the first match counts */
    enum status status;
} sqlstates[] = {
    SQL_ERRORS,
    {"2200H", STATUS_LIMIT},
    {"22", STATUS_INVALID},
    {"23", STATUS_INVALID},
    {"54001", STATUS_INVALID},
    {"55P03", STATUS_TIMEOUT},
    {"57014", STATUS_TIMEOUT},
    {"40", STATUS_CONFLICT},
    {"08", STATUS_UNAVAILABLE},
    {"53", STATUS_UNAVAILABLE},
    {"57", STATUS_UNAVAILABLE},
    {"58", STATUS_UNAVAILABLE},
    {"25006", STATUS_UNAVAILABLE},
};

/* True if a row found no partition, an error that names no constraint: the day is missing, and the
 * row is fine. */
static bool has_no_partition(const PGresult *rows, const char *code)
{
    return code != NULL && strcmp(code, "23514") == 0 &&
           PQresultErrorField(rows, PG_DIAG_CONSTRAINT_NAME) == NULL;
}

static const char *connect_hint(const char *text)
{
    static const struct {
        const char *found;
        const char *hint;
    } hints[] = {
        {"password authentication failed", "; correct the user, or postgres.password_file"},
        {"no password supplied", "; name a file in postgres.password_file"},
        {"too many c", "; raise max_connections, or the role's or database's limit"},
        {"connection slots are reserved", "; raise max_connections, or free connections"},
        {"no pg_hba.conf entry", "; let this host in by pg_hba.conf"},
        {"read-only", "; name the primary too in postgres.conninfo"},
        {"hot standby", "; name the primary too in postgres.conninfo"},
        {"does not exist", "; create it, or correct postgres.conninfo"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(hints); i++) {
        if (strstr(text, hints[i].found) != NULL) {
            return hints[i].hint;
        }
    }
    return "";
}

/* libpq's texts end with a line feed and may have several lines: one per address, or a detail. */
void pg_connect_text(const char *libpq, char ret_text[PG_CONNECT_TEXT_SIZE])
{
    const char *hint = connect_hint(libpq);
    size_t room = PG_CONNECT_TEXT_SIZE - strlen(hint) - 1;
    size_t n = 0;
    for (const char *p = libpq; *p != '\0' && n + 2 < room; p++) {
        bool is_end = *p == '\n' && p[strspn(p, "\n\t ")] == '\0';
        bool is_gap = (*p == ' ' || *p == '\t') && (n == 0 || ret_text[n - 1] == ' ');
        if (is_end) {
            break;
        }
        if (*p == '\n') {
            ret_text[n++] = ';';
        }
        if (!is_gap) {
            ret_text[n++] = *p == '\n' || *p == '\t' ? ' ' : *p;
        }
    }
    (void)snprintf(ret_text + n, PG_CONNECT_TEXT_SIZE - n, "%s", hint);
}

void pg_err_from(struct err *err, const PGresult *rows)
{
    if (err == NULL || err->status != STATUS_OK) {
        return;
    }
    const char *code = PQresultErrorField(rows, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(rows, PG_DIAG_MESSAGE_PRIMARY);
    enum status st = STATUS_INTERNAL;
    for (size_t i = 0; code != NULL && i < ARRAY_COUNT(sqlstates); i++) {
        if (strncmp(code, sqlstates[i].prefix, strlen(sqlstates[i].prefix)) == 0) {
            st = sqlstates[i].status;
            break;
        }
    }
    if (has_no_partition(rows, code)) {
        st = STATUS_UNAVAILABLE;
    }
    if (text == NULL) {
        text = PQresultErrorMessage(rows); /* libpq itself made the error */
    }
    err_set(err, st, 0, "%.*s", (int)strcspn(text, "\n"), text);
    size_t len = code != NULL ? strnlen(code, sizeof err->code - 1) : 0;
    if (len > 0) {
        memcpy(err->code, code, len);
        err->code[len] = '\0';
    }
}

/* ---- results ---- */

int pg_row_count(const struct pg_result *r)
{
    return PQntuples(r->rows);
}

bool pg_is_null(const struct pg_result *r, int row, int column)
{
    assert(row >= 0 && row < PQntuples(r->rows) && column >= 0 && column < PQnfields(r->rows));
    return PQgetisnull(r->rows, row, column) != 0;
}

static const char *value_of(const struct pg_result *r, int row, int column, int *ret_len)
{
    assert(!pg_is_null(r, row, column));
    *ret_len = PQgetlength(r->rows, row, column);
    return PQgetvalue(r->rows, row, column);
}

static int64_t read_i64(const char *bytes)
{
    uint64_t wire = 0;
    memcpy(&wire, bytes, sizeof wire);
    return (int64_t)be64toh(wire);
}

int64_t pg_i64(const struct pg_result *r, int row, int column)
{
    int len = 0;
    const char *bytes = value_of(r, row, column, &len);
    if (len == 8) {
        return read_i64(bytes);
    }
    if (len == 4) {
        uint32_t wire = 0;
        memcpy(&wire, bytes, sizeof wire);
        return (int32_t)be32toh(wire);
    }
    assert(len == 2);
    uint16_t wire = 0;
    memcpy(&wire, bytes, sizeof wire);
    return (int16_t)be16toh(wire);
}

bool pg_bool(const struct pg_result *r, int row, int column)
{
    int len = 0;
    const char *bytes = value_of(r, row, column, &len);
    assert(len == 1);
    return bytes[0] != 0;
}

int64_t pg_time_us(const struct pg_result *r, int row, int column)
{
    int64_t since_2000 = pg_i64(r, row, column);
    if (since_2000 > INT64_MAX - PG_EPOCH_UNIX_US) { /* infinity */
        return INT64_MAX;
    }
    return since_2000 + PG_EPOCH_UNIX_US;
}

/* Format: src/backend/utils/adt/tid.c, tidsend(): block, then the number within it. */
int64_t pg_tid(const struct pg_result *r, int row, int column)
{
    if (pg_is_null(r, row, column)) {
        return PG_TID_NULL;
    }
    int len = 0;
    const char *bytes = value_of(r, row, column, &len);
    uint64_t wire = 0;
    assert(len == TID_BYTES);
    memcpy((char *)&wire + sizeof wire - TID_BYTES, bytes, TID_BYTES);
    return (int64_t)be64toh(wire);
}

const char *pg_text(const struct pg_result *r, int row, int column, size_t *ret_len)
{
    int len = 0;
    const char *bytes = value_of(r, row, column, &len);
    if (ret_len != NULL) {
        *ret_len = (size_t)len;
    }
    return bytes;
}

/* ---- parameters ---- */

struct pg_param pg_param_i64(int64_t value, char storage[8])
{
    uint64_t wire = htobe64((uint64_t)value);
    memcpy(storage, &wire, sizeof wire);
    return (struct pg_param){.bytes = storage, .len = 8};
}

struct pg_param pg_param_i32(int32_t value, char storage[4])
{
    uint32_t wire = htobe32((uint32_t)value);
    memcpy(storage, &wire, sizeof wire);
    return (struct pg_param){.bytes = storage, .len = 4};
}

struct pg_param pg_param_bool(bool value)
{
    static const char wire[2] = {0, 1};
    return (struct pg_param){.bytes = &wire[value ? 1 : 0], .len = 1};
}

struct pg_param pg_param_text(const char *text)
{
    return (struct pg_param){.bytes = text, .len = text != NULL ? (int)strlen(text) : 0};
}

struct pg_param pg_param_buf(const struct buf *array)
{
    return (struct pg_param){.bytes = array->len > 0 ? buf_at(array) : "", .len = (int)array->len};
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    if (at == NULL) {
        return -1;
    }
    int value = (int)(at - digits);
    return value < 16 ? value : value - 6;
}

/* Hyphens may be anywhere, as in PostgreSQL. */
enum status pg_param_uuid(const char *text, char storage[16], struct pg_param *ret, struct err *err)
{
    unsigned char bytes[16] = {0};
    size_t digits = 0;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '-') {
            continue;
        }
        int value = hex_digit(*c);
        if (value < 0 || digits == 32) {
            return err_fail(err, STATUS_INVALID, "'%.40s' is not a UUID", text);
        }
        bytes[digits / 2] = (unsigned char)(bytes[digits / 2] * 16 + value);
        digits++;
    }
    if (digits != 32) {
        return err_fail(err, STATUS_INVALID, "'%.40s' is not a UUID", text);
    }
    memcpy(storage, bytes, sizeof bytes);
    *ret = (struct pg_param){.bytes = storage, .len = 16};
    return STATUS_OK;
}

static enum status append_u32(struct buf *out, uint32_t value, struct err *err)
{
    uint32_t wire = htobe32(value);
    return buf_append(out, &wire, sizeof wire, err);
}

/* Format: src/backend/utils/adt/arrayfuncs.c, array_recv(): number of dimensions, whether there are
 * NULLs, element type, then length and lower bound of the one dimension. An empty array has no
 * dimension. */
static enum status append_head(struct buf *out, bool has_null, unsigned type, size_t count,
                               struct err *err)
{
    const uint32_t head[] = {count > 0 ? 1 : 0, has_null ? 1 : 0, type, (uint32_t)count, 1};
    size_t words = count > 0 ? ARRAY_COUNT(head) : 3;
    assert(count <= INT32_MAX);
    for (size_t i = 0; i < words; i++) {
        enum status st = append_u32(out, head[i], err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

enum status pg_array_i64(struct buf *out, const int64_t *values, size_t count, struct err *err)
{
    enum status st = buf_reserve(out, ARRAY_HEAD + count * 12, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = append_head(out, false, PG_INT8, count, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < count; i++) {
        struct {
            uint32_t len;
            char value[8];
        } element = {.len = htobe32(8)};
        (void)pg_param_i64(values[i], element.value);
        st = buf_append(out, &element, sizeof element, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

enum status pg_array_tid(struct buf *out, const int64_t *values, size_t count, struct err *err)
{
    bool has_null = false;
    for (size_t i = 0; i < count; i++) {
        has_null = has_null || values[i] == PG_TID_NULL;
    }
    enum status st = append_head(out, has_null, PG_TID, count, err);
    for (size_t i = 0; i < count && st == STATUS_OK; i++) {
        bool is_null = values[i] == PG_TID_NULL;
        st = append_u32(out, is_null ? UINT32_MAX : TID_BYTES, err);
        if (st == STATUS_OK && !is_null) {
            uint64_t wire = htobe64((uint64_t)values[i]);
            st = buf_append(out, (char *)&wire + sizeof wire - TID_BYTES, TID_BYTES, err);
        }
    }
    return st;
}

enum status pg_array_text(struct buf *out, const char *const *values, const size_t *lens,
                          size_t count, struct err *err)
{
    bool has_null = false;
    for (size_t i = 0; i < count; i++) {
        has_null = has_null || values[i] == NULL;
    }
    enum status st = append_head(out, has_null, PG_TEXT, count, err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < count; i++) {
        size_t len = 0;
        if (values[i] != NULL) {
            len = lens != NULL ? lens[i] : strlen(values[i]);
        }
        st = append_u32(out, values[i] != NULL ? (uint32_t)len : UINT32_MAX, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = buf_append(out, values[i], len, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}
