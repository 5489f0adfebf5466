/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl_bash.h"

#include "base/buf.h"
#include "base/clock.h"
#include "cluster/servers.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define LIMIT_US (120 * US_PER_S)
#define OUTPUT_MAX ((size_t)4 << 20)

static struct buf out;

void bash_setup(void)
{
    buf_init(&out, OUTPUT_MAX);
}

void bash_teardown(void)
{
    buf_release(&out);
}

int bash_run(const char *line)
{
    char path[4096];
    const char *folder = getenv("CLAIMD_BIN_DIR");
    const char *before = getenv("PATH");
    (void)snprintf(path, sizeof path, "PATH=%s:%s", folder == NULL ? "bin" : folder, before);
    const char *const argv[] = {"bash", "-c", line, NULL};
    const char *const env[] = {path, "CLAIMD_CONFIG=", NULL};
    struct err err = {0};
    int code = -1;
    buf_reset(&out);
    enum status st = program_run(argv, env, LIMIT_US, &out, &code, &err);
    ck_assert_msg(st == STATUS_OK, "%s: %s", line, err.msg);
    return code;
}

const char *bash_text(void)
{
    return out.len > 0 ? buf_at(&out) : "";
}
