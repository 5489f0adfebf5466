/* SPDX-License-Identifier: Apache-2.0 */
#include "chaos/handler_file.h"

#include "cluster/servers.h"

#include <errno.h>
#include <stdio.h>

#define PATH_SIZE (SERVER_PATH_MAX + 64)

enum status handler_file_write(const char *dir, const char *mode, json_t *kinds, struct err *err)
{
    char path[PATH_SIZE];
    char script[PATH_SIZE];
    char programs[PATH_SIZE];
    const char *name = NULL;
    json_t *kind = NULL;
    (void)snprintf(path, sizeof path, "%s/handlers", dir);
    (void)snprintf(programs, sizeof programs, "%s/programs", dir);
    (void)snprintf(script, sizeof script, "%s/programs/handlers.py", dir);
    json_t *command = json_pack("[s, s, s]", "/usr/bin/python3", script, mode);
    json_object_foreach(kinds, name, kind)
    {
        (void)json_array_append_new(command, json_string(name));
    }
    json_auto_t *file = json_pack("{s:o, s:s, s:{s:s}, s:o}", "command", command, "mode", mode,
                                  "env", "PYTHONPATH", programs, "kinds", kinds);
    enum status st = dir_ensure(path, 0755, err);
    if (st != STATUS_OK) {
        return st;
    }
    (void)snprintf(path, sizeof path, "%s/handlers/%s.json", dir, mode);
    return file != NULL && json_dump_file(file, path, JSON_INDENT(4)) == 0
               ? STATUS_OK
               : err_fail_sys(err, STATUS_UNAVAILABLE, errno, "write %s", path);
}
