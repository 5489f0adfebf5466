/* SPDX-License-Identifier: Apache-2.0
 *
 * `claimctl completion`: a script for bash or zsh, made from the table of commands. */
#include "ctl/core/ctl.h"
#include "ctl/core/table_text.h"

#define SCRIPT_MAX ((size_t)256 << 10)

static const char *next_word(const char *at, size_t *ret_len)
{
    at += strspn(at, "| ");
    *ret_len = strcspn(at, "| ");
    return at;
}

/* Options by the kind of value that they take. */
enum value_kind { VALUE_NONE, VALUE_FREE, VALUE_FILE, VALUE_FOLDER, VALUE_STATE };

static enum value_kind kind_of(const struct ctl_option *o)
{
    static const struct {
        const char *value;
        enum value_kind kind;
    } kinds[] = {{"FILE", VALUE_FILE}, {"DIR", VALUE_FOLDER}, {"STATE", VALUE_STATE}};
    if (o->value == NULL || o->value[0] == '[') {
        return VALUE_NONE; /* an optional value is not completed */
    }
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (strcmp(kinds[i].value, o->value) == 0) {
            return kinds[i].kind;
        }
    }
    return VALUE_FREE;
}

static void put_names_of(struct text *s, const struct ctl_option *options, size_t count,
                         enum value_kind kind, size_t *named)
{
    for (size_t i = 0; i < count && options[i].name != NULL; i++) {
        bool is_wanted =
            kind == VALUE_NONE ? kind_of(&options[i]) != VALUE_NONE : kind_of(&options[i]) == kind;
        if (is_wanted) {
            text_put(s, "%s--%s", (*named)++ > 0 ? "|" : "", options[i].name);
        }
    }
}

/* Puts "--a|--b": all options of this kind, as a pattern of `case`; VALUE_NONE: all that take a
 * value. */
static void put_pattern(struct text *s, enum value_kind kind)
{
    size_t named = 0;
    for (size_t i = 0; i < ctl_command_count(); i++) {
        put_names_of(s, ctl_command_at(i)->options, CTL_OPTIONS_MAX, kind, &named);
    }
    put_names_of(s, ctl_common_options, ctl_common_option_count, kind, &named);
    if (named == 0) {
        text_put(s, "--"); /* no option takes this kind of value */
    }
}

/* ---- lists: words for bash, 'word:help' for zsh ---- */

static void put_item(struct text *s, bool is_zsh, const char *word, size_t len, const char *help)
{
    if (!is_zsh) {
        text_put(s, "%.*s ", (int)len, word);
        return;
    }
    text_put(s, "'%.*s:", (int)len, word);
    for (const char *p = help; *p != '\0' && *p != '\n'; p++) {
        text_put(s, *p == '\'' ? "'\\'%c" : "%c", *p);
    }
    text_put(s, "' ");
}

static void put_options(struct text *s, bool is_zsh, const struct ctl_option *options, size_t count)
{
    for (size_t i = 0; i < count && options[i].name != NULL; i++) {
        char name[48];
        int len = snprintf(name, sizeof name, "--%s", options[i].name);
        put_item(s, is_zsh, name, (size_t)len, options[i].help);
    }
}

static void put_nouns(struct text *s, bool is_zsh)
{
    const char *last = "";
    for (size_t i = 0; i < ctl_command_count(); i++) {
        const struct ctl_command *c = ctl_command_at(i);
        if (strcmp(c->noun, last) != 0) {
            put_item(s, is_zsh, c->noun, strlen(c->noun), c->verb == NULL ? c->help : "…");
        }
        last = c->noun;
    }
}

static void put_verbs(struct text *s, bool is_zsh, const char *noun)
{
    for (size_t i = 0; i < ctl_command_count(); i++) {
        const struct ctl_command *c = ctl_command_at(i);
        if (strcmp(c->noun, noun) == 0 && c->verb != NULL) {
            put_item(s, is_zsh, c->verb, strlen(c->verb), c->help);
        }
    }
}

/* Puts the possible words of the command, if they are known. */
static void put_words(struct text *s, bool is_zsh, const struct ctl_command *c)
{
    if (strcmp(c->words, "[COMMAND...]") == 0) {
        put_nouns(s, is_zsh);
    } else if (strchr(c->words, '|') != NULL) {
        size_t len = 0;
        for (const char *at = next_word(c->words, &len); len > 0; at = next_word(at + len, &len)) {
            put_item(s, is_zsh, at, len, "");
        }
    }
}

/* Puts one branch per command, and per noun that needs a verb. */
static void put_branches(struct text *s, bool is_zsh)
{
    const char *start = is_zsh ? "list=(" : "list=\"";
    const char *end = is_zsh ? ") ;;\n" : "\" ;;\n";
    const char *last = "";
    for (size_t i = 0; i < ctl_command_count(); i++) {
        const struct ctl_command *c = ctl_command_at(i);
        if (c->verb != NULL && strcmp(c->noun, last) != 0) {
            text_put(s, "        (\"%s \") %s", c->noun, start);
            put_verbs(s, is_zsh, c->noun);
            text_put(s, "%s", end);
        }
        last = c->noun;
        text_put(s, "        (\"%s %s\"%s) %s", c->noun, c->verb == NULL ? "" : c->verb,
                 c->verb == NULL ? "*" : "", start);
        put_words(s, is_zsh, c);
        put_options(s, is_zsh, c->options, CTL_OPTIONS_MAX);
        put_options(s, is_zsh, ctl_common_options, ctl_common_option_count);
        text_put(s, "%s", end);
    }
    text_put(s, "        (\" \") %s", start);
    put_nouns(s, is_zsh);
    put_options(s, is_zsh, ctl_common_options, ctl_common_option_count);
    text_put(s, "%s", end);
}

static void put_values(struct text *s, const char *files, const char *folders, const char *format)
{
    text_put(s, "    case $prev in\n        (");
    put_pattern(s, VALUE_FILE);
    text_put(s, ") %s; return ;;\n        (", files);
    put_pattern(s, VALUE_FOLDER);
    text_put(s, ") %s; return ;;\n        (", folders);
    put_pattern(s, VALUE_STATE);
    text_put(s, ") ");
    text_put(s,
             "%s waiting scheduled retryable available running completed cancelled discarded%s; "
             "return ;;\n",
             format, format[0] == 'C' ? "\" -- \"$cur\"))" : "");
    text_put(s, "        (");
    put_pattern(s, VALUE_NONE);
    text_put(s, ") return ;;\n    esac\n    case \"$noun $verb\" in\n");
}

/* Finds noun and verb among the words before the cursor: words that are neither an option nor its
 * value. */
static void put_bash(struct text *s)
{
    text_put(s, "# bash completion, made by: claimctl completion bash\n"
                "_claimctl() {\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                "    local noun='' verb='' list='' i\n"
                "    COMPREPLY=()\n"
                "    if [[ $cur == = ]]; then\n"
                "        cur=''\n"
                "    elif [[ $prev == = ]]; then\n"
                "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
                "    fi\n"
                "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                "        case ${COMP_WORDS[i]} in\n"
                "            (");
    put_pattern(s, VALUE_NONE);
    text_put(s, ")\n"
                "                i=$((i + 1))\n"
                "                [[ ${COMP_WORDS[i]} != = ]] || i=$((i + 1)) ;;\n"
                "            (-*) ;;\n"
                "            (*)\n"
                "                if [[ -z $noun ]]; then noun=${COMP_WORDS[i]}\n"
                "                elif [[ -z $verb ]]; then verb=${COMP_WORDS[i]}; fi ;;\n"
                "        esac\n"
                "    done\n");
    put_values(s, "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))",
               "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\"))",
               "COMPREPLY=($(compgen -W \"");
    put_branches(s, false);
    text_put(s, "    esac\n"
                "    COMPREPLY=($(compgen -W \"$list\" -- \"$cur\"))\n"
                "}\n"
                "complete -o default -F _claimctl claimctl\n");
}

static void put_zsh(struct text *s)
{
    text_put(s, "#compdef claimctl\n"
                "# zsh completion, made by: claimctl completion zsh\n"
                "_claimctl() {\n"
                "    local cur=$words[CURRENT] prev=$words[CURRENT-1] noun='' verb=''\n"
                "    local -a list\n"
                "    integer i\n"
                "    for ((i = 2; i < CURRENT; i++)); do\n"
                "        case $words[i] in\n"
                "            (");
    put_pattern(s, VALUE_NONE);
    text_put(s, ") i=$((i + 1)) ;;\n"
                "            (-*) ;;\n"
                "            (*)\n"
                "                if [[ -z $noun ]]; then noun=$words[i]\n"
                "                elif [[ -z $verb ]]; then verb=$words[i]; fi ;;\n"
                "        esac\n"
                "    done\n");
    put_values(s, "_files", "_files -/", "compadd --");
    put_branches(s, true);
    text_put(s, "    esac\n"
                "    if [[ $cur != -* ]]; then\n"
                "        list=(${list:#--*})\n"
                "    fi\n"
                "    if (( $#list )); then\n"
                "        _describe 'claimctl' list\n"
                "    else\n"
                "        _files\n"
                "    fi\n"
                "}\n"
                "if [[ $funcstack[1] == _claimctl ]]; then\n"
                "    _claimctl \"$@\"\n"
                "else\n"
                "    compdef _claimctl claimctl\n"
                "fi\n");
}

enum status completion(struct ctl *ctl, const struct ctl_args *args, struct err *err)
{
    static const struct table_column columns[] = {{"shell", CELL_TEXT}, {"script", CELL_TEXT}};
    const char *shell = args->words[0];
    bool is_zsh = strcmp(shell, "zsh") == 0;
    if (!is_zsh && strcmp(shell, "bash") != 0) {
        return err_fail(err, STATUS_INVALID, "shell '%.40s' is not supported; allowed: bash, zsh",
                        shell);
    }
    autotext struct text text = TEXT_INIT(SCRIPT_MAX);
    if (is_zsh) {
        put_zsh(&text);
    } else {
        put_bash(&text);
    }
    if (!ctl->is_json || text.err.status != STATUS_OK) {
        return text_print(&text, ctl->out, err);
    }
    return PRINT_RECORD(ctl, "completion", columns, ((const char *const[]){shell, text_str(&text)}),
                        err);
}
