/* SPDX-License-Identifier: Apache-2.0
 *
 * The table from which parsing, help, completion and the manual's commands are made. */
#include "ctl/ctl.h"

#define MANY 1000

const struct ctl_command ctl_commands[] = {
    {.noun = "db",
     .verb = "migrate",
     .words = "",
     .help = "Bring the schema to the version of this build.",
     .examples = "claimctl db migrate",
     .run = db_migrate},
    {.noun = "db",
     .verb = "status",
     .words = "",
     .help = "Show which migrations are applied.",
     .examples = "claimctl db status",
     .run = db_status},
    {.noun = "db",
     .verb = "rollback",
     .words = "",
     .help = "Undo the last migration, with its data.",
     .examples = "claimctl db rollback --yes",
     .options = {{"yes", NULL, "do it"}},
     .run = db_rollback},
    {.noun = "db",
     .verb = "verify",
     .words = "",
     .help = "Check what the database holds against what claimd promises.\n\n"
             "Runs the queries of sql/check.sql, each for up to 10 minutes; a broken rule "
             "is named as in docs/guarantees.md. Jobs that the feed seems not to reach "
             "are looked up in Redis, for up to a full pass of the feed. Ends with 1 when "
             "a rule is broken.",
     .examples = "claimctl db verify\nclaimctl db verify --since 2h --json",
     .options = {{"after", "TIME", "how long what recovery ends may last; default 60s"},
                 {"since", "TIME", "leave out what ended before: an age, or a time"}},
     .run = db_verify},
    {.noun = "enqueue",
     .words = "[KIND]",
     .words_max = 1,
     .help = "Add one job and print its id, or a file of jobs.\n\n"
             "A file has one JSON object per line: {\"kind\": …} and, if wanted, "
             "\"args\", \"queue\", \"priority\", \"delay\" or \"at\", \"max_attempts\", "
             "\"timeout\", \"tags\", \"metadata\".\n"
             "It is stored as a whole, or, when one line is bad, not at all.\n"
             "TIME: 250ms, 10s, 5m, 2h, 1d; a number alone is seconds.\n"
             "Of a kind that no live worker of its queue serves standard error says so.",
     .examples = "claimctl enqueue resize --args '{\"width\": 80}' --queue images\n"
                 "claimctl enqueue report --at 2026-01-31T08:00:00Z --tag monthly\n"
                 "claimctl enqueue import --args @rows.json --delay 5m\n"
                 "zcat jobs.gz | claimctl enqueue --file -",
     .options = {{"args", "JSON|@FILE", "for the handler; default {}; @- is standard input"},
                 {"queue", "NAME", "default: default"},
                 {"priority", "0-9", "0 comes first; default 4"},
                 {"delay", "TIME", "not before: 250ms, 10s, 5m, 2h, 1d; 10 is 10s"},
                 {"at", "TIME", "not before: 2026-01-31T08:00:00Z"},
                 {"max-attempts", "N", "default: what the kind says"},
                 {"timeout", "TIME", "of one attempt; default: what the kind says"},
                 {"tag", "TEXT", "may be repeated"},
                 {"file", "FILE", "JSON lines; - is standard input"},
                 {"strict", NULL, "refuse what no live worker serves, instead of a warning"},
                 {"quiet", NULL, "with --file: no progress on standard error"}},
     .run = enqueue},
    {.noun = "jobs",
     .verb = "list",
     .words = "",
     .help = "List jobs, newest first.\n\n"
             "STATE: scheduled, retryable, available, running, completed, cancelled, "
             "discarded.\n"
             "TIME: an age such as 2h, or 2026-01-31T08:00:00Z; of a finished job it is "
             "its end, of an open one its creation. --state, --kind, --queue take "
             "several, by commas or repeated. A long list goes on where the last one "
             "ended: --after.\n\n"
             "COLUMNS, by commas: id, kind, queue, state, priority, attempt, created_at, "
             "ready_at, attempted_at, finalized_at, worker, worker_id, tags, args, "
             "metadata, result, error.",
     .examples = "claimctl jobs list --state discarded --kind resize --since 2h\n"
                 "claimctl jobs list --queue images,mail --columns id,worker,error\n"
                 "claimctl jobs list --state retryable --error timeout --limit 10 --json",
     .options = {{"state", "STATE", "only in these states"},
                 {"kind", "NAME", "only of these kinds"},
                 {"queue", "NAME", "only of these queues"},
                 {"tag", "TEXT", "only with this tag; repeated: with all of them"},
                 {"worker", "ID|HOST", "whose last attempt was there"},
                 {"since", "TIME", "from then on"},
                 {"until", "TIME", "before then"},
                 {"older-than", "AGE", "the same as --until with an age"},
                 {"error", "TEXT", "whose last error has this text"},
                 {"after", "ID", "go on below this id: next_after in JSON"},
                 {"columns", "COLUMNS", "which, in their order"},
                 {"limit", "N", "1 to 10000; default 50"}},
     .run = jobs_list},
    {.noun = "jobs",
     .verb = "show",
     .words = "ID",
     .words_min = 1,
     .words_max = 1,
     .help = "Show all of one job: where it is, what it waits for, what happened to it.\n\n"
             "Of args, metadata and result the first 1000 bytes; all of them in JSON.",
     .examples = "claimctl jobs show 42\nclaimctl jobs show 42 --full",
     .options = {{"full", NULL, "args, metadata and result as long as they are"}},
     .run = jobs_show},
    {.noun = "jobs",
     .verb = "watch",
     .words = "[ID...]",
     .words_max = MANY,
     .help = "Follow jobs until all have ended: one line for each change.\n\n"
             "Without an ID: up to 1000 of the open jobs that the options choose, the newest.\n"
             "Ends with 1 when one of them was discarded.",
     .examples = "claimctl jobs watch 42\nclaimctl jobs watch --tag monthly --json",
     .options = {{"state", "STATE", "only in these states; default: the open ones"},
                 {"kind", "NAME", "only of these kinds"},
                 {"queue", "NAME", "only of these queues"},
                 {"tag", "TEXT", "only with this tag; repeated: with all of them"},
                 {"worker", "ID|HOST", "whose last attempt was there"},
                 {"since", "TIME", "made (or ended) from then on"},
                 {"until", "TIME", "made (or ended) before then"},
                 {"older-than", "AGE", "the same as --until with an age"},
                 {"error", "TEXT", "whose last error has this text"},
                 {"every", "TIME", "between two looks; default 500ms"}},
     .run = jobs_watch},
    {.noun = "jobs",
     .verb = "cancel",
     .words = "ID...",
     .words_min = 1,
     .words_max = MANY,
     .help = "Cancel jobs that are not running.\n\n"
             "Each for itself: one that can't be cancelled keeps none of the others. The "
             "exit code is that of the worst.",
     .examples = "claimctl jobs cancel 42 43",
     .run = jobs_cancel},
    {.noun = "queues",
     .words = "",
     .help = "Show each queue: depth by state, oldest due job, rate, who serves it.\n\n"
             "Depths of large queues are estimated: ~5000.",
     .examples = "claimctl queues",
     .run = queues},
    {.noun = "workers",
     .words = "",
     .help = "List worker processes: slots, what they run and serve, age of their beat.",
     .examples = "claimctl workers\nclaimctl workers --all --json",
     .options = {{"all", NULL, "those that ended, too"}},
     .run = workers},
    {.noun = "stats",
     .words = "",
     .help = "Count jobs by queue and state, and what ended lately.\n\n"
             "Of large numbers of jobs some are estimated: ~5000.",
     .examples = "claimctl stats\nclaimctl stats --watch 5s",
     .options = {{"watch", "[TIME]", "look again every 2s, or every TIME, until Ctrl-C"}},
     .run = stats},
    {.noun = "top",
     .words = "",
     .help = "Watch queues, workers and rates on the whole screen; q ends it.\n\n"
             "Where standard output is no terminal: one look. NO_COLOR is honoured.",
     .examples = "claimctl top\nclaimctl top --every 500ms",
     .options = {{"every", "TIME", "between two looks; default 2s"}},
     .run = top},
    {.noun = "lock-nodes",
     .verb = "show",
     .words = "",
     .help = "Show the lock nodes that this cluster was made with, and lock.nodes.",
     .examples = "claimctl lock-nodes show",
     .run = lock_nodes_show},
    {.noun = "lock-nodes",
     .verb = "set",
     .words = "",
     .help = "Make lock.nodes of this configuration the list of the cluster.\n\n"
             "All daemons must be stopped. Waits for the longest lease in use, since one "
             "taken at the former nodes may live for so long; meanwhile no daemon starts. "
             "Cut off in between, it is run again. Ends with 5 while a daemon lives.",
     .examples = "claimctl lock-nodes set --yes",
     .options = {{"yes", NULL, "do it"},
                 {"force", NULL,
                  "though former nodes can't be asked whether dead workers' locks are "
                  "held"}},
     .run = lock_nodes_set},
    {.noun = "doctor",
     .words = "",
     .help = "Check servers, versions, policies, clocks, plugins; and say what to do.\n\n"
             "Ends with 1 when a line says FAIL.",
     .examples = "claimctl doctor\nclaimctl doctor --worker \"$(hostname)\"",
     .options = {{"worker", "ID|HOST", "only: does this worker beat? One line; for health checks"}},
     .run = doctor},
    {.noun = "dev",
     .words = "",
     .help = "Run a private cluster in the foreground until Ctrl-C.",
     .examples = "claimctl dev --workers 4 --plugins build/handlers",
     .options = {{"dir", "DIR", "where it lives; default /tmp/claimd-dev-UID; jobs stay there"},
                 {"workers", "N", "1 to 16; default 2"},
                 {"masters", "N", "Redis masters, 1 to 9; default 5"},
                 {"plugins", "DIR", "handlers; default: those of this build"}},
     .run = dev},
    {.noun = "config",
     .verb = "check",
     .words = "[FILE]",
     .words_max = 1,
     .help = "Check a configuration: prints ok, or what is wrong.",
     .examples = "claimctl config check /etc/claimd/claimd.json",
     .run = config_check},
    {.noun = "config",
     .verb = "show",
     .words = "[FILE]",
     .words_max = 1,
     .help =
         "Print the configuration in effect: file, environment and defaults together.\n\n"
         "Secrets are not in it: only the names of their files. With --origin it begins with the "
         "file that was read.",
     .examples = "claimctl config show /etc/claimd/claimd.json --origin",
     .options = {{"origin", NULL, "a table: each key, its value and where that came from"}},
     .run = config_show},
    {.noun = "config",
     .verb = "schema",
     .words = "",
     .help = "Print the JSON Schema of the configuration, for editors and checkers.",
     .examples = "claimctl config schema",
     .run = config_print_schema},
    {.noun = "config",
     .verb = "doc",
     .words = "",
     .help = "Print the manual of all keys (docs/config.md).",
     .examples = "claimctl config doc",
     .run = config_doc},
    {.noun = "completion",
     .words = "bash|zsh",
     .words_min = 1,
     .words_max = 1,
     .help = "Print a completion script for this shell.\n\n"
             "In bash: eval \"$(claimctl completion bash)\", in ~/.bashrc; in zsh the "
             "same with zsh, after compinit, or as the file _claimctl in a folder of "
             "$fpath.",
     .examples = "claimctl completion bash",
     .run = completion},
    {.noun = "help",
     .words = "[COMMAND...]",
     .words_max = 2,
     .help = "Explain a command, or list all.\n\n"
             "With --json all commands with their options and examples.",
     .examples = "claimctl help jobs list\nclaimctl help --json",
     .options = {{"man", NULL, "all commands as the source of a manual page (scdoc)"}},
     .run = help},
};
const size_t ctl_command_count = ARRAY_COUNT(ctl_commands);

const struct ctl_option ctl_common_options[] = {
    {"config", "FILE",
     "configuration; else $CLAIMD_CONFIG, else " CTL_CONFIG_STANDARD_PATH " if it is there, else "
     "defaults and environment"},
    {"json", NULL, "print JSON"},
    {"help", NULL, "this text"},
    {"version", NULL, "version of this build"},
};
const size_t ctl_common_option_count = ARRAY_COUNT(ctl_common_options);
