/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands/doctor/checks.h"

#include <stdio.h>
#include <stdlib.h>

#define HEAD "-- check: "
#define SUSPECT "-- suspect: "
#define WARNING "-- warning: "

static bool begins_with(const char *text, const char *part)
{
    return strncmp(text, part, strlen(part)) == 0;
}

/* Parses "-- check: NAME RULE TEXT". */
static enum status read_head(char *line, int number, struct checks *ret, struct err *err)
{
    struct check *c = &ret->list[ret->count];
    int len = 0;
    if (ret->count == CHECKS_MAX) {
        return err_fail(err, STATUS_LIMIT, "line %d: more than %d checks", number, CHECKS_MAX);
    }
    *c = (struct check){.sql = NULL};
    if (sscanf(line, HEAD "%31s %15s %n", c->name, c->rule, &len) != 2 || len == 0 ||
        line[len] == '\0' || strlen(line + len) >= sizeof c->says) {
        return err_fail(err, STATUS_INVALID, "line %d: must be '" HEAD "NAME RULE TEXT'", number);
    }
    (void)snprintf(c->says, sizeof c->says, "%s", line + len);
    ret->count++;
    return STATUS_OK;
}

/* Reads a line outside of a query: the head of the next query, a comment, or an empty line. */
static enum status read_outside(char *line, int number, bool *ret_is_inside, struct checks *ret,
                                struct err *err)
{
    if (begins_with(line, HEAD)) {
        *ret_is_inside = true;
        return read_head(line, number, ret, err);
    }
    if (line[0] != '\0' && !begins_with(line, "--")) {
        return err_fail(err, STATUS_INVALID, "line %d: a query without '" HEAD "…'", number);
    }
    return STATUS_OK;
}

/* The query begins with its first line that is not a comment. Its final semicolon is removed. */
static bool read_inside(char *line, size_t len, struct check *c)
{
    if (c->sql == NULL && begins_with(line, "--")) {
        c->is_suspect = c->is_suspect || begins_with(line, SUSPECT);
        c->is_warning = c->is_warning || begins_with(line, WARNING);
        return true;
    }
    if (c->sql == NULL) {
        c->sql = line;
    }
    if (len > 0 && line[len - 1] == ';') {
        line[len - 1] = '\0';
        return false;
    }
    return true;
}

enum status checks_read(const char *text, struct checks *ret, struct err *err)
{
    enum status st = STATUS_OK;
    bool is_inside = false;
    int number = 0;
    *ret = (struct checks){.text = strdup(text)};
    if (ret->text == NULL) {
        return err_fail(err, STATUS_NOMEM, "out of memory");
    }
    for (char *line = ret->text; st == STATUS_OK && *line != '\0';) {
        size_t len = strcspn(line, "\n");
        bool has_next = line[len] == '\n';
        line[len] = '\0';
        number++;
        if (is_inside) {
            is_inside = read_inside(line, len, &ret->list[ret->count - 1]);
            line[len] = is_inside && has_next ? '\n' : '\0'; /* the query continues */
        } else {
            st = read_outside(line, number, &is_inside, ret, err);
        }
        line += len + (has_next ? 1 : 0);
    }
    if (st == STATUS_OK && is_inside) {
        st = err_fail(err, STATUS_INVALID, "the last query does not end with a semicolon");
    }
    if (st != STATUS_OK) {
        checks_release(ret);
    }
    return st;
}

void checks_release(struct checks *checks)
{
    free(checks->text);
    *checks = (struct checks){.count = 0};
}

const struct check *checks_find(const struct checks *checks, const char *name)
{
    for (size_t i = 0; i < checks->count; i++) {
        if (strcmp(checks->list[i].name, name) == 0) {
            return &checks->list[i];
        }
    }
    return NULL;
}
