/* SPDX-License-Identifier: Apache-2.0
 *
 * `claimctl help`: the table of commands as text, as JSON, or as the source of a manual page. */
#include "base/text.h"
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

/* Escapes with a backslash the characters that scdoc may take for markup. */
static void put_escaped(struct text *out, const char *text, size_t len)
{
    text_put_escaped(out, text, len, "*_\\#.~[]|<>`+-");
}

static void put_bold(struct text *out, const char *text)
{
    text_put(out, "*");
    put_escaped(out, text, strlen(text));
    text_put(out, "*");
}

/* Puts a space and the word; nothing if the word is empty. */
static void put_word(struct text *out, const char *word)
{
    text_put(out, "%s", word[0] != '\0' ? " " : "");
    put_escaped(out, word, strlen(word));
}

static void put_option(struct text *out, const struct ctl_option *o, const char *indent)
{
    char name[40];
    (void)snprintf(name, sizeof name, "--%s", o->name);
    text_put(out, "%s", indent);
    put_bold(out, name);
    put_word(out, o->value != NULL ? o->value : "");
    text_put(out, "\n%s\t", indent);
    put_escaped(out, o->help, strlen(o->help));
    text_put(out, "\n\n");
}

/* Puts each line of `text` behind a tab; empty lines stay empty. */
static void put_lines(struct text *out, const char *text, bool is_literal)
{
    for (const char *at = text; *at != '\0';) {
        size_t len = strcspn(at, "\n");
        text_put(out, "%s", len > 0 ? "\t" : "");
        if (is_literal) {
            text_put_bytes(out, at, len);
        } else {
            put_escaped(out, at, len);
        }
        text_put(out, "\n");
        at += len + (at[len] != '\0');
    }
}

static void put_command(struct text *out, const struct ctl_command *c)
{
    char name[80];
    (void)snprintf(name, sizeof name, "claimctl %s%s%s", c->noun, c->verb != NULL ? " " : "",
                   c->verb != NULL ? c->verb : "");
    put_bold(out, name);
    put_word(out, c->words);
    text_put(out, "\n");
    put_lines(out, c->help, false);
    text_put(out, "\n");
    for (size_t i = 0; i < CTL_OPTIONS_MAX && c->options[i].name != NULL; i++) {
        put_option(out, &c->options[i], "\t");
    }
    text_put(out, "\t```\n");
    put_lines(out, c->examples, true);
    text_put(out, "\t```\n\n");
}

static enum status print_man(FILE *out, struct err *err)
{
    autotext struct text text = TEXT_INIT(MANUAL_MAX);
    text_put(&text, "# COMMANDS\n\n");
    for (size_t i = 0; i < ctl_command_count(); i++) {
        put_command(&text, ctl_command_at(i));
    }
    text_put(&text, "# OPTIONS OF ALL COMMANDS\n\n");
    for (size_t i = 0; i < ctl_common_option_count; i++) {
        put_option(&text, &ctl_common_options[i], "");
    }
    return text_print(&text, out, err);
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
