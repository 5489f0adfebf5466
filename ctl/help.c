/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/help.h"

#include "ctl/nearest.h"

#define NAME_WIDTH 24

void help_print_name(FILE *out, const struct ctl_command *c)
{
    (void)fprintf(out, "claimctl %s%s%s", c->noun, c->verb != NULL ? " " : "",
                  c->verb != NULL ? c->verb : "");
}

const struct ctl_command *help_find(const char *noun, const char *verb)
{
    for (size_t i = 0; i < ctl_command_count; i++) {
        const struct ctl_command *c = &ctl_commands[i];
        if (strcmp(c->noun, noun) == 0 && (c->verb == NULL || strcmp(c->verb, verb) == 0)) {
            return c;
        }
    }
    return NULL;
}

bool help_is_noun(const char *word)
{
    bool is_noun = false;
    for (size_t i = 0; i < ctl_command_count; i++) {
        is_noun = is_noun || strcmp(ctl_commands[i].noun, word) == 0;
    }
    return is_noun;
}

/* ---- what is known ---- */

static void print_options(FILE *out, const struct ctl_option *options, size_t count)
{
    for (size_t i = 0; i < count && options[i].name != NULL; i++) {
        const char *value = options[i].value;
        char name[48];
        (void)snprintf(name, sizeof name, "--%s%s%s", options[i].name,
                       value == NULL || value[0] == '[' ? "" : " ", value != NULL ? value : "");
        (void)fprintf(out, "  %-*s %s\n", NAME_WIDTH, name, options[i].help);
    }
}

static void print_line(FILE *out, const struct ctl_command *c)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s%s%s%s%s", c->noun, c->verb != NULL ? " " : "",
                   c->verb != NULL ? c->verb : "", c->words[0] != '\0' ? " " : "", c->words);
    (void)fprintf(out, "  %-*s %.*s\n", NAME_WIDTH, name, (int)strcspn(c->help, "\n"), c->help);
}

static void print_examples(FILE *out, const struct ctl_command *c)
{
    for (const char *at = c->examples; *at != '\0';) {
        size_t len = strcspn(at, "\n");
        (void)fprintf(out, "  %.*s\n", (int)len, at);
        at += len + (at[len] != '\0');
    }
}

void help_overview(FILE *out)
{
    (void)fprintf(out, "usage: claimctl COMMAND [OPTION…]\n\n");
    for (size_t i = 0; i < ctl_command_count; i++) {
        print_line(out, &ctl_commands[i]);
    }
    (void)fprintf(out, "\nEach command takes:\n");
    print_options(out, ctl_common_options, ctl_common_option_count);
    (void)fprintf(out, "\nExamples and options of a command: claimctl COMMAND --help\n"
                       "\nExit codes: 0 done, 1 failed, 2 usage, configuration or bad input, 3 "
                       "dependency unavailable,\n4 not found, 5 not possible in this state.\n");
}

void help_noun(FILE *out, const char *noun)
{
    (void)fprintf(out, "usage: claimctl %s COMMAND [OPTION…]\n\n", noun);
    for (size_t i = 0; i < ctl_command_count; i++) {
        if (strcmp(ctl_commands[i].noun, noun) == 0) {
            print_line(out, &ctl_commands[i]);
        }
    }
    (void)fprintf(out, "\nExamples:\n");
    for (size_t i = 0; i < ctl_command_count; i++) {
        if (strcmp(ctl_commands[i].noun, noun) == 0) {
            print_examples(out, &ctl_commands[i]);
        }
    }
}

void help_command(FILE *out, const struct ctl_command *c)
{
    (void)fprintf(out, "usage: ");
    help_print_name(out, c);
    (void)fprintf(out, " %s%s[OPTION…]\n\n%s\n\nExamples:\n", c->words,
                  c->words[0] != '\0' ? " " : "", c->help);
    print_examples(out, c);
    (void)fprintf(out, "\nOptions:\n");
    print_options(out, c->options, CTL_OPTIONS_MAX);
    print_options(out, ctl_common_options, ctl_common_option_count);
}

/* ---- what is not ---- */

static void print_known(const char *noun, bool is_noun)
{
    const char *last = "";
    for (size_t i = 0; i < ctl_command_count; i++) {
        const struct ctl_command *c = &ctl_commands[i];
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
        (void)fprintf(stderr, "claimctl: '%s' needs one more word:", noun);
        print_known(noun, true);
        return;
    }
    struct nearest nearest = {.wanted = is_noun ? verb : noun};
    for (size_t i = 0; i < ctl_command_count; i++) {
        const struct ctl_command *c = &ctl_commands[i];
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

const char *help_nearest_option(const struct ctl_command *c, const char *name)
{
    struct nearest nearest = {.wanted = name};
    for (size_t i = 0; c != NULL && i < CTL_OPTIONS_MAX && c->options[i].name != NULL; i++) {
        nearest_try(&nearest, c->options[i].name);
    }
    for (size_t i = 0; i < ctl_common_option_count; i++) {
        nearest_try(&nearest, ctl_common_options[i].name);
    }
    return nearest.found;
}
