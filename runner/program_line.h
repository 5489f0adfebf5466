/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines that the host and a handler program exchange (docs/handler-protocol.md). Pure. The
 * program is not trusted: each of its lines is checked as if an attacker had written it. */
#ifndef CLAIMD_RUNNER_PROGRAM_LINE_H
#define CLAIMD_RUNNER_PROGRAM_LINE_H

#include "base/buf.h"
#include "claimd/plugin.h"

#include <stdint.h>

#define PROGRAM_PROTOCOL_VERSION 1
#define PROGRAM_LINE_MAX ((size_t)128 << 10) /* to the host, with its newline */
#define PROGRAM_JOB_MAX ((size_t)1600 << 10) /* to the program */
#define PROGRAM_LOG_LINE_MAX ((size_t)8 << 10)

enum program_said {
    SAID_HELLO,
    SAID_LOG,
    SAID_PROGRESS,
    SAID_CHECKPOINT,
    SAID_RESULT, /* from a program that runs once: its result */
    SAID_END
};

/* JSON as it was written, borrowed from the line; len 0 = absent. */
struct json_span {
    const char *at;
    size_t len;
};

struct program_line {
    enum program_said said;
    int64_t n;               /* of the run; 0 = absent */
    int64_t number;          /* version of a hello, percent, or delay_ms of an end (−1: none) */
    struct json_span text;   /* a string: of a log, a progress, or the error of an end */
    struct json_span json;   /* a checkpoint or result */
    struct json_span kinds;  /* of a hello */
    bool takes_sigterm;      /* of a hello */
    enum claimd_outcome end; /* of an end */
};

/* Parses a line, given without its newline. INVALID: it is no JSON object in UTF-8, or no line of
 * the protocol. Unknown members are ignored. */
enum status program_line_parse(const char *line, size_t len, struct program_line *ret,
                               struct err *err) MUST_USE;

/* Writes the text of a JSON string as valid UTF-8 without NUL, cut to fit. Returns its length. */
size_t json_text(struct json_span string, char *ret_text, size_t size);

/* True if the hello's array of kinds has `kind`. */
bool program_line_has_kind(const struct program_line *hello, const char *kind);

/* Lines of the host: each function appends one line, or fails with LIMIT or NOMEM. */
enum status program_line_put_hello(struct buf *out, struct err *err) MUST_USE;
enum status program_line_put_job(struct buf *out, int64_t n, const struct claimd_context *job,
                                 int64_t now_us, struct err *err) MUST_USE;
enum status program_line_put_stop(struct buf *out, int64_t n, const char *why,
                                  struct err *err) MUST_USE;

#endif
