/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/core/cli.h"

#include "base/build.h"
#include "base/parse.h"
#include "ctl/core/ctl.h"
#include "ctl/core/help.h"

#include <assert.h>
#include <getopt.h>
#include <jansson.h>
#include <locale.h>

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

/* ---- parsing ---- */

/* The table for getopt: the command's options, then the common ones, then the end. */
/* First value that is not a letter. Each option has its own value, or getopt would not detect
 * ambiguous abbreviations. */
#define LONG_OPTION 256
#define LONG_OPTIONS_MAX (CTL_OPTIONS_MAX + 8 + 1)

static int argument_of(const struct ctl_option *o)
{
    return o->value == NULL     ? no_argument
           : o->value[0] == '[' ? optional_argument
                                : required_argument;
}

static size_t add_options(struct option *table, size_t at, const struct ctl_option *options,
                          size_t count)
{
    for (size_t i = 0; i < count && options[i].name != NULL; i++) {
        assert(at < LONG_OPTIONS_MAX - 1);
        table[at] = (struct option){.name = options[i].name,
                                    .has_arg = argument_of(&options[i]),
                                    .val = LONG_OPTION + (int)at};
        at++;
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
        line->ctl.config_from = CTL_CONFIG_OPTION;
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

/* Sets the reason why getopt refused argv[optind - 1], or the letter in it. */
static enum status refuse_option(const struct ctl_command *command, const struct option *table,
                                 const char *given, struct err *err)
{
    if (strncmp(given, "--", 2) != 0) {
        return err_fail(err, STATUS_INVALID, "unknown option -%c: options have two dashes", optopt);
    }
    const char *name = given + 2;
    size_t len = strcspn(name, "=");
    const char *matches[2] = {NULL, NULL};
    size_t count = 0;
    for (size_t i = 0; table[i].name != NULL && count < 2; i++) {
        if (strncmp(table[i].name, name, len) == 0) {
            matches[count++] = table[i].name;
        }
    }
    if (count == 2 && len > 0) {
        return err_fail(err, STATUS_INVALID, "--%.*s is ambiguous: --%s or --%s", (int)len, name,
                        matches[0], matches[1]);
    }
    if (count == 1 && len > 0) {
        return err_fail(err, STATUS_INVALID, "--%s takes no value", matches[0]);
    }
    char text[64];
    (void)snprintf(text, sizeof text, "%.*s", (int)len, name);
    return help_unknown_option(command, text, err);
}

/* Accepts "--watch 2s" for an optional value: getopt itself accepts only "--watch=2s". */
static const char *loose_value(const struct ctl_command *command, const struct option *option,
                               int argc, char **argv)
{
    bool is_loose = option->has_arg == optional_argument && optarg == NULL && command != NULL &&
                    command->words_max == 0 && optind < argc && argv[optind][0] != '-';
    return is_loose ? argv[optind++] : optarg;
}

/* Reads options up to the first word (`stop_at_word`), or all of them, and gathers the words behind
 * them. */
static enum status parse_options(struct command_line *line, const struct ctl_command *command,
                                 bool stop_at_word, int argc, char **argv, struct err *err)
{
    struct option table[LONG_OPTIONS_MAX] = {{0}};
    size_t count = 0;
    if (command != NULL) {
        count = add_options(table, count, command->options, CTL_OPTIONS_MAX);
    }
    (void)add_options(table, count, ctl_common_options, ctl_common_option_count);
    optind = 0; /* glibc: start again */
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
            return refuse_option(command, table, argv[optind - 1], err);
        }
        enum status st = take_option(line, table[index].name,
                                     loose_value(command, &table[index], argc, argv), err);
        if (st != STATUS_OK) {
            return st;
        }
    }
    line->args.words = argv + optind;
    line->args.word_count = (size_t)(argc - optind);
    return STATUS_OK;
}

/* Finds the command that the first words name, and removes these words. */
static const struct ctl_command *find_command(struct ctl_args *args)
{
    const char *noun = args->word_count > 0 ? args->words[0] : "";
    const char *verb = args->word_count > 1 ? args->words[1] : "";
    const struct ctl_command *c = help_find(noun, verb);
    size_t taken = c == NULL ? 0 : c->verb == NULL ? 1 : 2;
    args->words += taken;
    args->word_count -= taken;
    return c;
}

/* No command has these words: prints the help of the noun, or what is wrong. */
static int run_unknown(const struct ctl_args *args)
{
    const char *noun = args->words[0];
    const char *verb = args->word_count > 1 ? args->words[1] : "";
    if (help_is_noun(noun) && strcmp(verb, "--help") == 0) {
        help_noun(stdout, noun);
        return CTL_DONE;
    }
    help_unknown_command(noun, verb[0] == '-' ? "" : verb);
    return CTL_USAGE;
}

/* ---- running ---- */

static enum status check_words(const struct ctl_command *c, const struct ctl_args *args,
                               struct err *err)
{
    if (args->word_count < c->words_min) {
        return err_fail(err, STATUS_INVALID, "%s is missing", c->words);
    }
    if (args->word_count > c->words_max) {
        return err_fail(err, STATUS_INVALID, "unexpected argument '%.80s'",
                        args->words[c->words_max]);
    }
    return STATUS_OK;
}

/* True for files and folders, whose names may contain any bytes. */
static bool is_path(const char *kind, const char *value)
{
    return strcmp(kind, "FILE") == 0 || strcmp(kind, "DIR") == 0 ||
           (strcmp(kind, "JSON|@FILE") == 0 && value[0] == '@');
}

static enum status check_text(const char *dashes, const char *name, const char *value,
                              struct err *err)
{
    if (!utf8_is_clean(value, strlen(value))) {
        return err_fail(err, STATUS_INVALID, "%s%s: is not UTF-8; all texts must be", dashes, name);
    }
    return STATUS_OK;
}

/* Checks the texts here, because PostgreSQL would not name the option. */
static enum status check_texts(const struct ctl_command *c, const struct ctl_args *args,
                               struct err *err)
{
    enum status st = STATUS_OK;
    for (size_t i = 0; st == STATUS_OK && i < args->given_count; i++) {
        const struct ctl_option *o = c->options;
        while (strcmp(o->name, args->given[i].name) != 0) {
            o++;
        }
        if (o->value != NULL && !is_path(o->value, args->given[i].value)) {
            st = check_text("--", o->name, args->given[i].value, err);
        }
    }
    for (size_t i = 0; st == STATUS_OK && i < args->word_count; i++) {
        if (strstr(c->words, "FILE") == NULL) {
            st = check_text("", c->words, args->words[i], err);
        }
    }
    return st;
}

/* With --json, prints the error as JSON, but also on standard error: standard output has only
 * results. */
static void print_error(const struct ctl *ctl, enum ctl_exit code, const struct err *err)
{
    if (!ctl->is_json) {
        (void)fprintf(stderr, "claimctl: %s\n", err->msg);
        return;
    }
    json_t *root = json_pack("{s:{s:s, s:i, s:s*}}", "error", "message", err->msg, "exit",
                             (int)code, "sqlstate", err->code[0] != '\0' ? err->code : NULL);
    (void)json_dumpf(root, stderr, 0);
    (void)fputc('\n', stderr);
    json_decref(root);
}

static int run_command(struct command_line *line, const struct ctl_command *command)
{
    struct err err = {0};
    char **argv =
        line->args.words - 1; /* getopt skips the first word: the name of the program or command */
    int argc = (int)line->args.word_count + 1;
    enum status st = parse_options(line, command, false, argc, argv, &err);
    if (st == STATUS_OK && line->wants_help) {
        help_command(stdout, command);
        return CTL_DONE;
    }
    if (st == STATUS_OK) {
        st = check_words(command, &line->args, &err);
    }
    if (st == STATUS_OK) {
        st = check_texts(command, &line->args, &err);
    }
    if (st != STATUS_OK) {
        print_error(&line->ctl, CTL_USAGE, &err);
        if (!line->ctl.is_json) {
            (void)fprintf(stderr, "Try: ");
            help_print_name(stderr, command);
            (void)fprintf(stderr, " --help\n");
        }
        return CTL_USAGE;
    }
    st = command->run != NULL ? command->run(&line->ctl, &line->args, &err)
                              : ctl_call(&line->ctl, &line->args, command, &err);
    if (fflush(stdout) != 0 && st == STATUS_OK) {
        st = err_fail_sys(&err, STATUS_INTERNAL, errno, "cannot write");
    }
    if (st != STATUS_OK && err.msg[0] != '\0') {
        print_error(&line->ctl, exit_of(st), &err);
    }
    return line->ctl.is_declined ? CTL_DECLINED : (int)exit_of(st);
}

/* Uses UTF-8 if no locale is set, as in containers, so that non-ASCII text is printed unchanged. */
static void set_locale(void)
{
    if (setlocale(LC_CTYPE, "") == NULL || MB_CUR_MAX == 1) {
        (void)setlocale(LC_CTYPE, "C.UTF-8");
    }
}

int cli_main(int argc, char **argv)
{
    set_locale();
    struct command_line line = {.ctl = {.out = stdout}};
    struct err err = {0};
    ctl_find_config(&line.ctl, getenv("CLAIMD_CONFIG"), CTL_CONFIG_STANDARD_PATH);
    enum status st = parse_options(&line, NULL, true, argc, argv, &err);
    if (st != STATUS_OK) {
        (void)fprintf(stderr, "claimctl: %s\nTry: claimctl --help\n", err.msg);
        return CTL_USAGE;
    }
    if (line.wants_version) {
        (void)printf(line.ctl.is_json ? "{\"version\": \"%s\"}\n" : "claimctl %s\n", CLAIMD_BUILD);
        return CTL_DONE;
    }
    if (line.args.word_count == 0 || line.wants_help) {
        help_overview(line.wants_help ? stdout : stderr, &line.ctl);
        return line.wants_help ? CTL_DONE : CTL_USAGE;
    }
    const struct ctl_command *command = find_command(&line.args);
    if (command == NULL) {
        return run_unknown(&line.args);
    }
    return run_command(&line, command);
}
