/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/cli.h"

#include "ctl/ctl.h"

#include <assert.h>
#include <getopt.h>

static const struct ctl_option common_options[] = {
    {"config", "FILE", "configuration; else $CLAIMD_CONFIG, else defaults and environment"},
    {"json", NULL, "print JSON"},
    {"help", NULL, "this text"},
    {"version", NULL, "version of this build"},
};

struct command_line {
    struct ctl ctl;
    struct ctl_args args;
    bool wants_help;
    bool wants_version;
};

static enum ctl_exit exit_of(enum status st)
{
    switch (st) {
    case STATUS_OK:
        return CTL_DONE;
    case STATUS_INVALID:
    case STATUS_LIMIT:
        return CTL_USAGE;
    case STATUS_UNAVAILABLE:
    case STATUS_TIMEOUT:
        return CTL_UNAVAILABLE;
    case STATUS_NOT_FOUND:
        return CTL_NOT_FOUND;
    case STATUS_CONFLICT:
        return CTL_NOT_POSSIBLE;
    case STATUS_UNKNOWN:
    case STATUS_NOMEM:
    case STATUS_INTERNAL:
        break;
    }
    return CTL_FAILED;
}

/* ---- help ---- */

static void print_name(FILE *out, const struct ctl_command *c)
{
    (void)fprintf(out, "claimctl %s%s%s", c->noun, c->verb != NULL ? " " : "",
                  c->verb != NULL ? c->verb : "");
}

static void print_options(FILE *out, const struct ctl_option *options, size_t count)
{
    for (size_t i = 0; i < count && options[i].name != NULL; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "--%s%s%s", options[i].name,
                       options[i].value != NULL ? " " : "",
                       options[i].value != NULL ? options[i].value : "");
        (void)fprintf(out, "  %-22s %s\n", name, options[i].help);
    }
}

static void print_overview(FILE *out)
{
    (void)fprintf(out, "usage: claimctl COMMAND [OPTION…]\n\n");
    for (size_t i = 0; i < ctl_command_count; i++) {
        const struct ctl_command *c = &ctl_commands[i];
        char name[48];
        (void)snprintf(name, sizeof name, "%s %s%s%s", c->noun, c->verb != NULL ? c->verb : "",
                       c->verb != NULL && c->words[0] != '\0' ? " " : "", c->words);
        (void)fprintf(out, "  %-22s %.*s\n", name, (int)strcspn(c->help, "\n"), c->help);
    }
    (void)fprintf(out, "\nEach command takes:\n");
    print_options(out, common_options, ARRAY_COUNT(common_options));
    (void)fprintf(out, "\nExit codes: 0 done, 1 failed, 2 usage, configuration or bad input, 3 "
                       "dependency unavailable,\n4 not found, 5 not possible in this state.\n");
}

static void print_help(FILE *out, const struct ctl_command *c)
{
    (void)fprintf(out, "usage: ");
    print_name(out, c);
    (void)fprintf(out, " %s%s[OPTION…]\n\n%s\n\n", c->words, c->words[0] != '\0' ? " " : "",
                  c->help);
    print_options(out, c->options, CTL_OPTIONS_MAX);
    print_options(out, common_options, ARRAY_COUNT(common_options));
}

/* ---- parsing ---- */

/* getopt's table: the command's options, then the common ones, then the end. */
#define LONG_OPTIONS_MAX (CTL_OPTIONS_MAX + ARRAY_COUNT(common_options) + 1)

static size_t add_options(struct option *table, size_t at, const struct ctl_option *options,
                          size_t count)
{
    for (size_t i = 0; i < count && options[i].name != NULL; i++) {
        assert(at < LONG_OPTIONS_MAX - 1);
        table[at++] =
            (struct option){.name = options[i].name,
                            .has_arg = options[i].value != NULL ? required_argument : no_argument};
    }
    return at;
}

static enum status take_option(struct command_line *line, const char *name, const char *value,
                               struct err *err)
{
    struct ctl_args *args = &line->args;
    assert(name != NULL);
    if (strcmp(name, "config") == 0) {
        line->ctl.config_path = value;
    } else if (strcmp(name, "json") == 0) {
        line->ctl.is_json = true;
    } else if (strcmp(name, "help") == 0) {
        line->wants_help = true;
    } else if (strcmp(name, "version") == 0) {
        line->wants_version = true;
    } else if (args->given_count == CTL_GIVEN_MAX) {
        return err_fail(err, STATUS_INVALID, "more than %d options", CTL_GIVEN_MAX);
    } else {
        args->given[args->given_count].name = name;
        args->given[args->given_count].value = value == NULL ? "" : value;
        args->given_count++;
    }
    return STATUS_OK;
}

/* Reads options up to the first word (`stop_at_word`) or all of them, words gathered behind. */
static enum status parse_options(struct command_line *line, const struct ctl_command *command,
                                 bool stop_at_word, int argc, char **argv, struct err *err)
{
    struct option table[LONG_OPTIONS_MAX] = {{0}};
    size_t count = 0;
    if (command != NULL) {
        count = add_options(table, count, command->options, CTL_OPTIONS_MAX);
    }
    (void)add_options(table, count, common_options, ARRAY_COUNT(common_options));
    optind = 0; /* glibc: start over */
    opterr = 0;
    for (;;) {
        int index = 0;
        int c = getopt_long(argc, argv, stop_at_word ? "+:" : ":", table, &index);
        if (c < 0) {
            break;
        }
        if (c == ':') {
            return err_fail(err, STATUS_INVALID, "%s needs a value", argv[optind - 1]);
        }
        if (c == '?') {
            return err_fail(err, STATUS_INVALID, "unknown option %s", argv[optind - 1]);
        }
        enum status st = take_option(line, table[index].name, optarg, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    line->args.words = argv + optind;
    line->args.word_count = (size_t)(argc - optind);
    return STATUS_OK;
}

/* The command that the first words name; takes them. */
static const struct ctl_command *find_command(struct ctl_args *args)
{
    const char *noun = args->word_count > 0 ? args->words[0] : "";
    const char *verb = args->word_count > 1 ? args->words[1] : "";
    for (size_t i = 0; i < ctl_command_count; i++) {
        const struct ctl_command *c = &ctl_commands[i];
        if (strcmp(c->noun, noun) == 0 && (c->verb == NULL || strcmp(c->verb, verb) == 0)) {
            size_t taken = c->verb == NULL ? 1 : 2;
            args->words += taken;
            args->word_count -= taken;
            return c;
        }
    }
    return NULL;
}

/* Unknown: names the verbs of a known noun, else the nouns. */
static void print_unknown(const struct ctl_args *args)
{
    const char *noun = args->words[0];
    bool is_noun = false;
    for (size_t i = 0; i < ctl_command_count; i++) {
        is_noun = is_noun || strcmp(ctl_commands[i].noun, noun) == 0;
    }
    if (is_noun && args->word_count > 1) {
        (void)fprintf(stderr, "claimctl: unknown command '%s %s'; known:", noun, args->words[1]);
    } else if (is_noun) {
        (void)fprintf(stderr, "claimctl: '%s' needs one more word:", noun);
    } else {
        (void)fprintf(stderr, "claimctl: unknown command '%s'; known:", noun);
    }
    const char *last = "";
    for (size_t i = 0; i < ctl_command_count; i++) {
        const struct ctl_command *c = &ctl_commands[i];
        if (is_noun ? strcmp(c->noun, noun) == 0 : strcmp(c->noun, last) != 0) {
            (void)fprintf(stderr, " %s", is_noun ? c->verb : c->noun);
        }
        last = c->noun;
    }
    (void)fprintf(stderr, "\nTry: claimctl --help\n");
}

/* ---- running ---- */

static enum status check_words(const struct ctl_command *c, const struct ctl_args *args,
                               struct err *err)
{
    if (args->word_count < c->words_min) {
        return err_fail(err, STATUS_INVALID, "%s is missing", c->words);
    }
    if (args->word_count > c->words_max) {
        return err_fail(err, STATUS_INVALID, "'%.80s' is one word too many",
                        args->words[c->words_max]);
    }
    return STATUS_OK;
}

static int run_command(struct command_line *line, const struct ctl_command *command)
{
    struct err err = {0};
    char **argv =
        line->args.words - 1; /* getopt skips the first: the program's or command's name */
    int argc = (int)line->args.word_count + 1;
    enum status st = parse_options(line, command, false, argc, argv, &err);
    if (st == STATUS_OK && line->wants_help) {
        print_help(stdout, command);
        return CTL_DONE;
    }
    if (st == STATUS_OK) {
        st = check_words(command, &line->args, &err);
    }
    if (st != STATUS_OK) {
        (void)fprintf(stderr, "claimctl: %s\nTry: ", err.msg);
        print_name(stderr, command);
        (void)fprintf(stderr, " --help\n");
        return CTL_USAGE;
    }
    st = command->run(&line->ctl, &line->args, &err);
    if (fflush(stdout) != 0 && st == STATUS_OK) {
        st = err_fail_sys(&err, STATUS_INTERNAL, errno, "cannot write");
    }
    if (st != STATUS_OK) {
        (void)fprintf(stderr, "claimctl: %s\n", err.msg);
    }
    return (int)exit_of(st);
}

int cli_main(int argc, char **argv)
{
    const char *path = getenv("CLAIMD_CONFIG");
    bool has_path = path != NULL && path[0] != '\0';
    struct command_line line = {.ctl = {.config_path = has_path ? path : NULL, .out = stdout}};
    struct err err = {0};
    enum status st = parse_options(&line, NULL, true, argc, argv, &err);
    if (st != STATUS_OK) {
        (void)fprintf(stderr, "claimctl: %s\nTry: claimctl --help\n", err.msg);
        return CTL_USAGE;
    }
    if (line.wants_version) {
        (void)printf(line.ctl.is_json ? "{\"version\": \"%s\"}\n" : "claimctl %s\n",
                     CLAIMD_VERSION);
        return CTL_DONE;
    }
    if (line.args.word_count == 0 || line.wants_help) {
        print_overview(line.wants_help ? stdout : stderr);
        return line.wants_help ? CTL_DONE : CTL_USAGE;
    }
    const struct ctl_command *command = find_command(&line.args);
    if (command == NULL) {
        print_unknown(&line.args);
        return CTL_USAGE;
    }
    return run_command(&line, command);
}
