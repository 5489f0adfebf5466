/* SPDX-License-Identifier: Apache-2.0 */
#include "base/probe.h"

#include "base/parse.h"

#include <signal.h>

#define POINT_MAX 16
#define HANG (-1)

static struct { /* set once at start, by tests only */
    char point[POINT_MAX];
    int signal; /* or HANG */
    int64_t hits_left;
} armed;

enum status probe_init(struct err *err)
{
    const char *text = getenv("CLAIMD_PROBE");
    if (text == NULL || text[0] == '\0') {
        return STATUS_OK;
    }
    size_t len = strcspn(text, "=");
    const char *action = text[len] == '=' ? text + len + 1 : "";
    size_t action_len = strcspn(action, ":");
    bool is_kill = action_len == 4 && strncmp(action, "kill", 4) == 0;
    bool is_stop = action_len == 4 && strncmp(action, "stop", 4) == 0;
    bool is_hang = action_len == 4 && strncmp(action, "hang", 4) == 0;
    if (len == 0 || len >= POINT_MAX || !(is_kill || is_stop || is_hang)) {
        return err_fail(err, STATUS_INVALID,
                        "CLAIMD_PROBE '%s': must be POINT=kill, POINT=stop or POINT=hang, with :N "
                        "for the Nth hit",
                        text);
    }
    armed.hits_left = 1;
    if (action[action_len] == ':') {
        const char *count = action + action_len + 1;
        enum status st = parse_i64(count, strlen(count), 1, INT64_MAX, &armed.hits_left, err);
        if (st != STATUS_OK) {
            err_prefix(err, "CLAIMD_PROBE");
            return st;
        }
    }
    memcpy(armed.point, text, len);
    armed.signal = is_kill ? SIGKILL : is_stop ? SIGSTOP : HANG;
    return STATUS_OK;
}

void probe(const char *point)
{
    if (armed.signal == 0 || strcmp(armed.point, point) != 0) {
        return;
    }
    if (--armed.hits_left != 0) {
        return;
    }
    while (armed.signal == HANG) {
        (void)pause(); /* blocks this thread; the others go on */
    }
    (void)kill(getpid(), armed.signal);
}
