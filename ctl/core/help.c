/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/core/help.h"

#include "base/nearest.h"
#include "ctl/core/table_text.h"
#include "ctl/core/wrap.h"

#define NAME_WIDTH 24
#define TEXT_COLUMN (NAME_WIDTH + 3)
#define TEXT_WIDTH_MIN 24
#define WIDTH_MAX 100 /* longer lines are hard to read */

void help_print_name(FILE *out, const struct ctl_command *c)
{
    (void)fprintf(out, "claimctl %s%s%s", c->noun, c->verb != NULL ? " " : "",
                  c->verb != NULL ? c->verb : "");
}

const struct ctl_command *help_find(const char *noun, const char *verb)
{
    const struct ctl_command *alone = NULL;
    for (size_t i = 0; i < ctl_command_count(); i++) {
        const struct ctl_command *c = ctl_command_at(i);
        if (strcmp(c->noun, noun) != 0) {
            continue;
        }
        if (c->verb == NULL) {
            alone = c;
        } else if (strcmp(c->verb, verb) == 0) {
            return c;
        }
    }
    return alone;
}

bool help_is_noun(const char *word)
{
    bool is_noun = false;
    for (size_t i = 0; i < ctl_command_count(); i++) {
        is_noun = is_noun || strcmp(ctl_command_at(i)->noun, word) == 0;
    }
    return is_noun;
}

/* ---- help ---- */

static size_t width_of(FILE *out)
{
    size_t width = table_style_of(out).width;
    return width < WIDTH_MAX ? width : WIDTH_MAX;
}

/* Prints a name, and its meaning beside it. */
static void print_pair(FILE *out, const char *name, const char *text)
{
    size_t width = width_of(out);
    (void)fprintf(out, "  %-*s ", NAME_WIDTH, name);
    (void)wrap_print(out, text,
                     width > TEXT_COLUMN + TEXT_WIDTH_MIN ? width - TEXT_COLUMN : TEXT_WIDTH_MIN,
                     TEXT_COLUMN);
}

static void print_options(FILE *out, const struct ctl_option *options, size_t count)
{
    for (size_t i = 0; i < count && options[i].name != NULL; i++) {
        const char *value = options[i].value;
        char name[48];
        (void)snprintf(name, sizeof name, "--%s%s%s", options[i].name,
                       value == NULL || value[0] == '[' ? "" : " ", value != NULL ? value : "");
        print_pair(out, name, options[i].help);
    }
}

static void print_line(FILE *out, const struct ctl_command *c)
{
    char name[64];
    char first[96];
    (void)snprintf(name, sizeof name, "%s%s%s%s%s", c->noun, c->verb != NULL ? " " : "",
                   c->verb != NULL ? c->verb : "", c->words[0] != '\0' ? " " : "", c->words);
    (void)snprintf(first, sizeof first, "%.*s", (int)strcspn(c->help, "\n"), c->help);
    print_pair(out, name, first);
}

static void print_examples(FILE *out, const struct ctl_command *c)
{
    for (const char *at = c->examples; *at != '\0';) {
        size_t len = strcspn(at, "\n");
        (void)fprintf(out, "  %.*s\n", (int)len, at);
        at += len + (at[len] != '\0');
    }
}

static void print_configuration(FILE *out, const struct ctl *ctl)
{
    static const char *const reasons[] = {[CTL_CONFIG_NONE] = "no file: defaults and environment",
                                          [CTL_CONFIG_OPTION] = " (--config)",
                                          [CTL_CONFIG_VARIABLE] = " ($CLAIMD_CONFIG)",
                                          [CTL_CONFIG_STANDARD] =
                                              " (it exists, and no other was named)"};
    (void)fprintf(out, "\nConfiguration: %s%s\n", ctl->config_path != NULL ? ctl->config_path : "",
                  reasons[ctl->config_from]);
}

void help_overview(FILE *out, const struct ctl *ctl)
{
    (void)fprintf(out, "usage: claimctl COMMAND [OPTION…]\n\n");
    for (size_t i = 0; i < ctl_command_count(); i++) {
        print_line(out, ctl_command_at(i));
    }
    (void)fprintf(out, "\nEach command takes:\n");
    print_options(out, ctl_common_options, ctl_common_option_count);
    (void)fputc('\n', out);
    (void)wrap_print(out,
                     "Examples and options of a command: claimctl COMMAND --help\n\n"
                     "TIME: 250ms, 10s, 5m, 2h, 1d; a number alone is seconds.\n\n"
                     "Exit codes: 0 done, 1 failed, 2 usage, configuration or bad input, 3 "
                     "dependency unavailable, 4 not found, 5 not possible in this state.",
                     width_of(out), 0);
    print_configuration(out, ctl);
}

void help_noun(FILE *out, const char *noun)
{
    (void)fprintf(out, "usage: claimctl %s COMMAND [OPTION…]\n\n", noun);
    for (size_t i = 0; i < ctl_command_count(); i++) {
        if (strcmp(ctl_command_at(i)->noun, noun) == 0) {
            print_line(out, ctl_command_at(i));
        }
    }
    (void)fprintf(out, "\nExamples:\n");
    for (size_t i = 0; i < ctl_command_count(); i++) {
        if (strcmp(ctl_command_at(i)->noun, noun) == 0) {
            print_examples(out, ctl_command_at(i));
        }
    }
}

void help_command(FILE *out, const struct ctl_command *c)
{
    (void)fprintf(out, "usage: ");
    help_print_name(out, c);
    (void)fprintf(out, " %s%s[OPTION…]\n\n", c->words, c->words[0] != '\0' ? " " : "");
    (void)wrap_print(out, c->help, width_of(out), 0);
    (void)fprintf(out, "\nExamples:\n");
    print_examples(out, c);
    (void)fprintf(out, "\nOptions:\n");
    print_options(out, c->options, CTL_OPTIONS_MAX);
    print_options(out, ctl_common_options, ctl_common_option_count);
}

/* ---- unknown words ---- */

static void print_known(const char *noun, bool is_noun)
{
    const char *last = "";
    for (size_t i = 0; i < ctl_command_count(); i++) {
        const struct ctl_command *c = ctl_command_at(i);
        if (is_noun ? strcmp(c->noun, noun) == 0 : strcmp(c->noun, last) != 0) {
            (void)fprintf(stderr, " %s", is_noun ? c->verb : c->noun);
        }
        last = c->noun;
    }
    (void)fprintf(stderr, "\nTry: claimctl %s%s--help\n", is_noun ? noun : "", is_noun ? " " : "");
}

void help_unknown_command(const char *noun, const char *verb)
{
    bool is_noun = help_is_noun(noun);
    if (is_noun && verb[0] == '\0') {
        (void)fprintf(stderr, "claimctl: '%s' needs a subcommand:", noun);
        print_known(noun, true);
        return;
    }
    struct nearest nearest = {.wanted = is_noun ? verb : noun};
    for (size_t i = 0; i < ctl_command_count(); i++) {
        const struct ctl_command *c = ctl_command_at(i);
        if (!is_noun) {
            nearest_try(&nearest, c->noun);
        } else if (strcmp(c->noun, noun) == 0) {
            nearest_try(&nearest, c->verb);
        }
    }
    (void)fprintf(stderr, "claimctl: unknown command '%s%s%s'", noun, is_noun ? " " : "",
                  is_noun ? verb : "");
    if (nearest.found != NULL) {
        (void)fprintf(stderr, ", did you mean '%s%s%s'?", is_noun ? noun : "", is_noun ? " " : "",
                      nearest.found);
    }
    (void)fprintf(stderr, "; known:");
    print_known(noun, is_noun);
}

static void add_option(struct nearest *nearest, char known[ERR_TEXT_MAX], const char *name)
{
    size_t len = strlen(known);
    nearest_try(nearest, name);
    (void)snprintf(known + len, ERR_TEXT_MAX - len, " --%s", name);
}

enum status help_unknown_option(const struct ctl_command *c, const char *name, struct err *err)
{
    struct nearest nearest = {.wanted = name};
    char known[ERR_TEXT_MAX] = "";
    for (size_t i = 0; c != NULL && i < CTL_OPTIONS_MAX && c->options[i].name != NULL; i++) {
        add_option(&nearest, known, c->options[i].name);
    }
    for (size_t i = 0; i < ctl_common_option_count; i++) {
        add_option(&nearest, known, ctl_common_options[i].name);
    }
    bool is_near = nearest.found != NULL;
    return err_fail(err, STATUS_INVALID, "unknown option --%s%s%s%s; known:%s", name,
                    is_near ? ", did you mean --" : "", is_near ? nearest.found : "",
                    is_near ? "?" : "", known);
}
