/* SPDX-License-Identifier: Apache-2.0
 *
 * `claimctl help`: the table of commands as text, as JSON, as the source of a manual page. */
#include "base/buf.h"
#include "ctl/core/help.h"

#include <jansson.h>

#define MANUAL_MAX ((size_t)1 << 20)

/* ---- JSON ---- */

static json_t *options_json(const struct ctl_option *options, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count && options[i].name != NULL; i++) {
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:s?, s:s}", "name", options[i].name, "value",
                                              options[i].value, "help", options[i].help));
    }
    return list;
}

static json_t *examples_json(const char *examples)
{
    json_t *list = json_array();
    for (const char *at = examples; *at != '\0';) {
        size_t len = strcspn(at, "\n");
        (void)json_array_append_new(list, json_stringn(at, len));
        at += len + (at[len] != '\0');
    }
    return list;
}

static json_t *command_json(const struct ctl_command *c)
{
    return json_pack("{s:s, s:s?, s:s, s:s, s:o, s:o}", "noun", c->noun, "verb", c->verb, "words",
                     c->words, "help", c->help, "examples", examples_json(c->examples), "options",
                     options_json(c->options, CTL_OPTIONS_MAX));
}

static enum status print_json(FILE *out, struct err *err)
{
    json_t *commands = json_array();
    for (size_t i = 0; i < ctl_command_count(); i++) {
        (void)json_array_append_new(commands, command_json(ctl_command_at(i)));
    }
    json_auto_t *root =
        json_pack("{s:s, s:o, s:o}", "version", CLAIMD_RELEASE, "commands", commands,
                  "common_options", options_json(ctl_common_options, ctl_common_option_count));
    if (root == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    bool ok = json_dumpf(root, out, JSON_INDENT(2)) == 0 && fputc('\n', out) != EOF;
    return ok ? STATUS_OK : err_fail_sys(err, STATUS_INTERNAL, errno, "cannot write");
}

/* ---- scdoc ---- */

/* What scdoc may take for markup gets a backslash. */
static enum status put_escaped(struct buf *out, const char *text, size_t len, struct err *err)
{
    return buf_append_escaped(out, text, len, "*_\\#.~[]|<>`+-", err);
}

static enum status put_bold(struct buf *out, const char *text, struct err *err)
{
    enum status st = buf_append_text(out, "*", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = put_escaped(out, text, strlen(text), err);
    if (st != STATUS_OK) {
        return st;
    }
    return buf_append_text(out, "*", err);
}

/* After a blank; an empty one is left out. */
static enum status put_word(struct buf *out, const char *word, struct err *err)
{
    if (word[0] == '\0') {
        return STATUS_OK;
    }
    enum status st = buf_append_text(out, " ", err);
    if (st != STATUS_OK) {
        return st;
    }
    return put_escaped(out, word, strlen(word), err);
}

static enum status put_option(struct buf *out, const struct ctl_option *o, const char *indent,
                              struct err *err)
{
    char name[40];
    (void)snprintf(name, sizeof name, "--%s", o->name);
    enum status st = buf_append_text(out, indent, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = put_bold(out, name, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = put_word(out, o->value != NULL ? o->value : "", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = buf_printf(out, err, "\n%s\t", indent);
    if (st != STATUS_OK) {
        return st;
    }
    st = put_escaped(out, o->help, strlen(o->help), err);
    if (st != STATUS_OK) {
        return st;
    }
    return buf_append_text(out, "\n\n", err);
}

/* Each line of `text` with `indent` before it; empty lines stay. */
static enum status put_lines(struct buf *out, const char *text, const char *indent, bool is_literal,
                             struct err *err)
{
    for (const char *at = text; *at != '\0';) {
        size_t len = strcspn(at, "\n");
        enum status st = len > 0 ? buf_append_text(out, indent, err) : STATUS_OK;
        if (st != STATUS_OK) {
            return st;
        }
        st = is_literal ? buf_append(out, at, len, err) : put_escaped(out, at, len, err);
        if (st != STATUS_OK) {
            return st;
        }
        st = buf_append_text(out, "\n", err);
        if (st != STATUS_OK) {
            return st;
        }
        at += len + (at[len] != '\0');
    }
    return STATUS_OK;
}

static enum status put_command(struct buf *out, const struct ctl_command *c, struct err *err)
{
    char name[80];
    (void)snprintf(name, sizeof name, "claimctl %s%s%s", c->noun, c->verb != NULL ? " " : "",
                   c->verb != NULL ? c->verb : "");
    enum status st = put_bold(out, name, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = put_word(out, c->words, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = buf_append_text(out, "\n", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = put_lines(out, c->help, "\t", false, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = buf_append_text(out, "\n", err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < CTL_OPTIONS_MAX && c->options[i].name != NULL; i++) {
        st = put_option(out, &c->options[i], "\t", err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    st = buf_append_text(out, "\t```\n", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = put_lines(out, c->examples, "\t", true, err);
    if (st != STATUS_OK) {
        return st;
    }
    return buf_append_text(out, "\t```\n\n", err);
}

static enum status print_man(FILE *out, struct err *err)
{
    autobuf struct buf text = BUF_INIT(MANUAL_MAX);
    enum status st = buf_append_text(&text, "# COMMANDS\n\n", err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < ctl_command_count(); i++) {
        st = put_command(&text, ctl_command_at(i), err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    st = buf_append_text(&text, "# OPTIONS OF ALL COMMANDS\n\n", err);
    if (st != STATUS_OK) {
        return st;
    }
    for (size_t i = 0; i < ctl_common_option_count; i++) {
        st = put_option(&text, &ctl_common_options[i], "", err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    if (fwrite(buf_at(&text), 1, text.len, out) != text.len) {
        return err_fail_sys(err, STATUS_INTERNAL, errno, "cannot write");
    }
    return STATUS_OK;
}

enum status help(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    if (ctl->is_json) {
        return print_json(ctl->out, err);
    }
    if (ctl_value(args, "man") != NULL) {
        return print_man(ctl->out, err);
    }
    const char *noun = args->word_count > 0 ? args->words[0] : NULL;
    const char *verb = args->word_count > 1 ? args->words[1] : "";
    if (noun == NULL) {
        help_overview(ctl->out, ctl);
        return STATUS_OK;
    }
    const struct ctl_command *c = help_find(noun, verb);
    if (c != NULL) {
        help_command(ctl->out, c);
    } else if (help_is_noun(noun) && verb[0] == '\0') {
        help_noun(ctl->out, noun);
    } else {
        return err_fail(err, STATUS_INVALID, "unknown command '%.40s%s%.40s'; see claimctl help",
                        noun, verb[0] != '\0' ? " " : "", verb);
    }
    return STATUS_OK;
}
