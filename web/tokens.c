/* SPDX-License-Identifier: Apache-2.0 */
#include "web/tokens.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define FILE_MAX ((size_t)16 << 10)
#define PRINTABLE_FIRST '!'
#define PRINTABLE_LAST '~'

bool is_same_secret(const char *a, const char *b, size_t size)
{
    const volatile char *left = a;
    const volatile char *right = b;
    unsigned char differ = 0;
    for (size_t i = 0; i < size; i++) {
        differ |= (unsigned char)(left[i] ^ right[i]);
    }
    return differ == 0;
}

const struct token *tokens_find(const struct tokens *t, const char *text)
{
    char padded[TOKEN_SIZE] = "";
    const struct token *found = NULL;
    size_t len = strnlen(text, TOKEN_SIZE);
    memcpy(padded, text, len < TOKEN_SIZE ? len : 0);
    for (size_t i = 0; i < t->count; i++) {
        bool is_it = is_same_secret(padded, t->list[i].text, TOKEN_SIZE);
        found = is_it && len >= TOKEN_LEN_MIN ? &t->list[i] : found;
    }
    explicit_bzero(padded, sizeof padded);
    return found;
}

static bool is_printable(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c < PRINTABLE_FIRST || *c > PRINTABLE_LAST) {
            return false;
        }
    }
    return true;
}

/* The text of a refusal never repeats what may be a token. */
static enum status parse_line(const char *line, int number, struct tokens *t, struct err *err)
{
    char role[16] = "";
    char name[WEB_WHO_MAX] = "";
    char text[TOKEN_SIZE] = "";
    int end = 0;
    int words = sscanf(line, " %15s %63s %128s %n", role, name, text, &end);
    if (words <= 0 || role[0] == '#') {
        return STATUS_OK;
    }
    bool is_operator = strcmp(role, "operator") == 0;
    if (words != 3 || line[end] != '\0' || (!is_operator && strcmp(role, "reader") != 0)) {
        return err_fail(err, STATUS_INVALID,
                        "line %d: must be ROLE NAME TOKEN; roles: reader, operator; a token has at "
                        "most %d characters",
                        number, TOKEN_SIZE - 1);
    }
    if (strlen(text) < TOKEN_LEN_MIN || !is_printable(text) || !is_printable(name)) {
        return err_fail(err, STATUS_INVALID,
                        "line %d: a token must have %d to %d printable characters; for example the "
                        "output of: openssl rand -hex 24",
                        number, TOKEN_LEN_MIN, TOKEN_SIZE - 1);
    }
    if (tokens_find(t, text) != NULL) {
        return err_fail(err, STATUS_INVALID, "line %d: this token is there twice", number);
    }
    if (t->count == TOKENS_MAX) {
        return err_fail(err, STATUS_INVALID, "line %d: more than %d tokens", number, TOKENS_MAX);
    }
    struct token *token = &t->list[t->count++];
    *token = (struct token){.role = is_operator ? WEB_OPERATOR : WEB_READER};
    memcpy(token->name, name, sizeof name);
    memcpy(token->text, text, strlen(text));
    return STATUS_OK;
}

enum status tokens_parse(const char *text, struct tokens *ret, struct err *err)
{
    int number = 0;
    enum status st = STATUS_OK;
    *ret = (struct tokens){.count = 0};
    while (st == STATUS_OK && *text != '\0') {
        char line[512];
        size_t len = strcspn(text, "\n");
        if (len >= sizeof line) {
            return err_fail(err, STATUS_INVALID, "line %d: is too long", number + 1);
        }
        memcpy(line, text, len);
        line[len] = '\0';
        st = parse_line(line, ++number, ret, err);
        explicit_bzero(line, sizeof line);
        text += len + (text[len] == '\n');
    }
    if (st == STATUS_OK && ret->count == 0) {
        return err_fail(err, STATUS_INVALID, "has no token");
    }
    return st;
}

static enum status read_file(const char *path, char content[FILE_MAX + 1], struct err *err)
{
    struct stat info;
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &info) != 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot be read");
    }
    if (!S_ISREG(info.st_mode) || (info.st_mode & S_IRWXO) != 0) {
        return err_fail(err, STATUS_INVALID,
                        "must be a file that others than its owner and group can't read: chmod o= "
                        "FILE");
    }
    ssize_t len = read(fd, content, FILE_MAX + 1);
    if (len < 0) {
        return err_fail_sys(err, STATUS_INVALID, errno, "cannot be read");
    }
    if ((size_t)len > FILE_MAX || memchr(content, '\0', (size_t)len) != NULL) {
        return err_fail(err, STATUS_INVALID, "must be a text of at most %zu bytes", FILE_MAX);
    }
    content[len] = '\0';
    return STATUS_OK;
}

enum status tokens_load(const char *path, struct tokens *ret, struct err *err)
{
    autofree char *content = calloc(1, FILE_MAX + 2);
    if (content == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    enum status st = read_file(path, content, err);
    if (st == STATUS_OK) {
        st = tokens_parse(content, ret, err);
    }
    explicit_bzero(content, FILE_MAX + 2);
    if (st != STATUS_OK) {
        err_prefix(err, "web.tokens_file '%s'", path);
    }
    return st;
}
