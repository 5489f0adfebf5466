/* SPDX-License-Identifier: Apache-2.0 */
#include "config/manual.h"

#include "config/options.h"

static enum status append_row(const struct option_def *o, struct buf *out, struct err *err)
{
    char env[80];
    char range[128];
    (void)option_env_name(o, env, sizeof env);
    option_range_text(o, range, sizeof range);
    return buf_printf(out, err, "| `%s` | `%s` | %s%s%s | %s | %s%s%s |\n", o->name, env,
                      o->default_text[0] == '\0' ? "" : "`", o->default_text,
                      o->default_text[0] == '\0' ? "" : "`", range, o->help,
                      o->is_real_time ? " Not scaled." : "", o->is_reloadable ? " ↻" : "");
}

enum status config_manual(struct buf *out, struct err *err)
{
    enum status st = buf_append_text(
        out,
        "# Configuration\n\n"
        "<!-- Made by `claimctl config doc` from config/options.c; a test compares. -->\n\n"
        "One JSON file for all programs, named by `--config` or `CLAIMD_CONFIG`. `claimctl` reads "
        "`/etc/claimd/claimd.json` where\nneither names one and that file is there (an empty "
        "`CLAIMD_CONFIG`: none); `claimctl help` and `config show --origin` say\nwhich was read. "
        "A variable of the environment wins over the file, the file over the default. Lists are "
        "separated by\ncommas in the environment. Unknown keys, wrong types and values outside "
        "their range are refused with exit code 2. Keys\nwith a dot lie in an object: "
        "`{\"lock\": {\"ttl_ms\": 10000}}`. Relative paths in a file start at the file's "
        "folder.\n\n"
        "At SIGHUP a daemon reads everything again. ↻: it takes the new value on; the others need "
        "a "
        "restart, and a line of the\nlog names those that differ. A configuration that is no "
        "longer good is told in one line and changes nothing.\n\n"
        "| key | environment | default | allowed | what it is |\n|---|---|---|---|---|\n",
        err);
    for (size_t i = 0; st == STATUS_OK && i < config_option_count; i++) {
        st = append_row(&config_options[i], out, err);
    }
    return st;
}
