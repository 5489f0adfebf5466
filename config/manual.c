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

/* clang-format off */
static const char introduction[] =
    "# Configuration\n\n"
    "<!-- Made by `claimctl config doc` from config/options.c; a test compares. -->\n\n"
    "One JSON file for all programs, named by `--config` or `CLAIMD_CONFIG`. Without either, `claimctl` reads\n"
    "`/etc/claimd/claimd.json` if it exists (an empty `CLAIMD_CONFIG`: no file); `claimctl help` and `config show --origin`\n"
    "say which file was read. An environment variable wins over the file, the file over the default. Lists are separated\n"
    "by commas in the environment. Unknown keys, wrong types and values outside their range are refused with exit code 2.\n"
    "Keys with a dot lie in an object: `{\"lock\": {\"ttl_ms\": 10000}}`. Relative paths in a file start at the file's folder.\n\n"
    "At SIGHUP a daemon reads everything again. It adopts the new values of the keys marked ↻; the others need a restart,\n"
    "and a log line names those that differ. If the new configuration is not valid, one log line says so and nothing\n"
    "changes.\n\n";
static const char expert_introduction[] =
    "\n## Expert keys\n\n"
    "Their defaults suit nearly everybody. Some must fit each other (`claimctl config check`), or be the same on every\n"
    "host; `time_scale` is for tests. Change one to solve a problem that you have measured.\n\n";
static const char table_head[] =
    "| key | environment | default | allowed | what it is |\n|---|---|---|---|---|\n";
/* clang-format on */

static enum status append_table(bool is_expert, struct buf *out, struct err *err)
{
    enum status st = buf_append_text(out, table_head, err);
    for (size_t i = 0; i < config_option_count && st == STATUS_OK; i++) {
        if (config_options[i].is_expert == is_expert) {
            st = append_row(&config_options[i], out, err);
        }
    }
    return st;
}

enum status config_manual(struct buf *out, struct err *err)
{
    enum status st = buf_append_text(out, introduction, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = append_table(false, out, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = buf_append_text(out, expert_introduction, err);
    if (st != STATUS_OK) {
        return st;
    }
    return append_table(true, out, err);
}
