/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/command_words.h"

#include <ctype.h>

#define WORD_MAX 131072 /* Linux's limit of an argument, with its NUL */
#define AS_JSON ":json"

/* Returns the length of the "{name}" or "{name:json}" that the text begins with; 0 = none. */
static size_t braces(const char *text, size_t *ret_name)
{
    size_t len = text[0] == '{' ? 1 : 0;
    while (len > 0 && (isalnum((unsigned char)text[len]) || text[len] == '_')) {
        len++;
    }
    *ret_name = len > 0 ? len - 1 : 0;
    if (len > 1 && strncmp(text + len, AS_JSON, strlen(AS_JSON)) == 0) {
        len += strlen(AS_JSON);
    }
    return len > 1 && text[len] == '}' ? len + 1 : 0;
}

size_t command_piece(const char *at, enum command_piece *ret, size_t *ret_name)
{
    size_t inner = 0;
    size_t single = braces(at, ret_name);
    size_t doubled = at[0] == '{' ? braces(at + 1, &inner) : 0;
    if (doubled > 0 && at[1 + doubled] == '}') {
        *ret = COMMAND_BRACES;
        return doubled + 2;
    }
    if (single == 0) {
        *ret = COMMAND_OCTET;
        return 1;
    }
    *ret = single == *ret_name + 2 ? COMMAND_ARG : COMMAND_JSON;
    return single;
}

static enum status put_value(struct buf *out, const json_t *args, const char *name, size_t len,
                             bool is_json, bool may_begin_with_dash, struct err *err)
{
    const json_t *value = json_is_object(args) ? json_object_getn(args, name, len) : NULL;
    bool is_plain = json_is_string(value) || json_is_number(value) || json_is_boolean(value);
    if (value == NULL || (!is_json && !is_plain)) {
        return err_fail(err, STATUS_INVALID,
                        "args have no %s for {%.*s} of the command, expected a text, a number or a "
                        "boolean",
                        value == NULL ? "value" : "plain value", (int)len, name);
    }
    autofree char *json = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    const char *said = json_is_string(value) && !is_json ? json_string_value(value) : json;
    if (said == NULL) {
        return err_fail(err, STATUS_NOMEM, "command");
    }
    if (said[0] == '-' && !may_begin_with_dash) {
        return err_fail(err, STATUS_INVALID,
                        "args.%.*s begins with '-', which the program would take for an option: "
                        "put \"--\" before {%.*s} in the command",
                        (int)len, name, (int)len, name);
    }
    return buf_append_text(out, said, err);
}

static enum status put_word(struct buf *out, const char *word, const json_t *args, bool is_operand,
                            struct err *err)
{
    enum status st = STATUS_OK;
    for (const char *at = word; *at != '\0' && st == STATUS_OK;) {
        enum command_piece piece = COMMAND_OCTET;
        size_t name = 0;
        size_t size = command_piece(at, &piece, &name);
        if (piece == COMMAND_OCTET) {
            st = buf_append_byte(out, *at, err);
        } else if (piece == COMMAND_BRACES) {
            st = buf_append(out, at + 1, size - 2, err);
        } else {
            st = put_value(out, args, at + 1, name, piece == COMMAND_JSON, is_operand || at > word,
                           err);
        }
        at += size;
    }
    if (st != STATUS_OK) {
        return st;
    }
    return buf_append_byte(out, '\0', err);
}

enum status command_words_fill(struct command_words *w, const char *const *template,
                               const json_t *args, struct err *err)
{
    bool is_operand = false;
    for (size_t i = 0; template[i] != NULL; i++) {
        w->at[w->count++] = w->bytes.len;
        enum status st = i == 0 ? buf_append(&w->bytes, template[0], strlen(template[0]) + 1, err)
                                : put_word(&w->bytes, template[i], args, is_operand, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (w->bytes.len - w->at[i] > WORD_MAX) {
            return err_fail(err, STATUS_LIMIT,
                            "an argument of the command has %zu bytes, at most %d",
                            w->bytes.len - w->at[i] - 1, WORD_MAX - 1);
        }
        is_operand = is_operand || strcmp(template[i], "--") == 0;
    }
    return STATUS_OK;
}
