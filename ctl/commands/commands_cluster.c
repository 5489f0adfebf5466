/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands for the database, the cluster and claimctl itself: rows of the table in commands.c. */
#include "ctl/commands/command_parts.h"
#include "ctl/core/ctl.h"

static const struct ctl_command db_rows[] = {
    {.noun = "db",
     .verb = "migrate",
     .words = "",
     .help = "Migrate the schema to the version of this build.\n\n"
             "Then load the SQL functions that this build has otherwise. Those of a newer release "
             "are left, and it exits with 5.",
     .examples = "claimctl db migrate\nclaimctl db migrate --functions",
     .options = {{"functions", NULL, "load all functions again, even those edited by hand"}},
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
     .help = "Undo the last migration and delete its data.\n\n"
             "The SQL functions become those of the release before.",
     .examples = "claimctl db rollback --yes",
     .options = {{"yes", NULL, "do it"}},
     .run = db_rollback},
    {.noun = "db",
     .verb = "finish",
     .words = "",
     .help = "End an upgrade: programs of an older release can't start any more.\n\n"
             "What they would break can be used from then on. Refuses while one of them works.",
     .examples = "claimctl db finish",
     .run = db_finish},
    {.noun = "db",
     .verb = "trust-clock",
     .words = "",
     .help = "Say that PostgreSQL's clock is right, although it has jumped.\n\n"
             "After a jump the leader deletes nothing of the history for 24 hours, and doctor "
             "fails. This ends that at once: what is old by the clock is deleted.",
     .examples = "claimctl db trust-clock --yes",
     .options = {{"yes", NULL, "do it"}},
     .run = db_trust_clock},
    {.noun = "db",
     .verb = "verify",
     .words = "",
     .help = "Check that the database keeps claimd's guarantees.\n\n"
             "Runs the queries in sql/check.sql, each for up to 10 minutes; rules are named as in "
             "docs/guarantees.md. Jobs that the feed seems to miss are looked up in Redis, for up "
             "to one full pass of the feed. Exits with 1 if a rule is broken.",
     .examples = "claimctl db verify\nclaimctl db verify --since 2h --json",
     .options = {{"after", "TIME", "how long recovery may take before a job counts; default 60s"},
                 {"since", "TIME", "ignore jobs that ended before: an age, or a time"}},
     .run = db_verify},
};
const struct ctl_command_list ctl_db_commands = {db_rows, ARRAY_COUNT(db_rows)};

static const struct ctl_command rows[] = {
    {.noun = "workers",
     .words = "",
     .help = "List workers: slots, what they run and serve, age of the last heartbeat.\n\n"
             "STATE: live, quiet (takes no new jobs), stale (silent), dead (its jobs are being "
             "rescued), rescued (all of them were), stopped (it ended by itself).\n"
             "REFUSED: files of handlers that it does not serve; claimctl doctor says why.",
     .examples = "claimctl workers\nclaimctl workers --all --json",
     .options = {{"all", NULL, "include those that have ended"}},
     .act = &VERB_WORKERS},
    {.noun = "workers",
     .verb = "quiet",
     ONE_WORD("ID|HOST"),
     .help =
         "Ask a worker, or all on a host, to take no new jobs.\n\n"
         "It learns of this with its next heartbeat, within 2 s, and stays so until it ends, or "
         "until workers resume.",
     .examples = "claimctl workers quiet build-7",
     .options = {{"dry-run", NULL, "only show which"},
                 {"yes", NULL, "don't ask on a terminal, if they are several"}},
     .act = &VERB_WORKER_ASK,
     .fixed = {"what", "be quiet"}},
    {.noun = "workers",
     .verb = "resume",
     ONE_WORD("ID|HOST"),
     .help = "Ask a worker that was asked to be quiet, or all on a host, to take jobs again.\n\n"
             "It learns of this with its next heartbeat, within 2 s. A draining worker is refused.",
     .examples = "claimctl workers resume build-7",
     .options = {{"dry-run", NULL, "only show which"},
                 {"yes", NULL, "don't ask on a terminal, if they are several"}},
     .act = &VERB_WORKER_ASK,
     .fixed = {"what", "resume"}},
    {.noun = "workers",
     .verb = "drain",
     ONE_WORD("ID|HOST"),
     .help = "Ask a worker, or all on a host, to finish the running jobs and then to stop.\n\n"
             "The same as SIGTERM: jobs that still run after worker.drain_ms are handed back.",
     .examples = "claimctl workers drain build-7",
     .options = {{"dry-run", NULL, "only show which"},
                 {"yes", NULL, "don't ask on a terminal, if they are several"}},
     .act = &VERB_WORKER_ASK,
     .fixed = {"what", "drain"}},
    {.noun = "owners",
     .words = "[on|off]",
     .words_max = 1,
     .help = "Show or set whether jobs belong to the roles that make them.\n\n"
             "Off: each producer may look at and cancel all jobs. On: those of the roles that it "
             "is or may SET ROLE to, and no others; jobs from before are left to admins. Waits up "
             "to 2 s for transactions that have made jobs.",
     .examples = "claimctl owners\nclaimctl owners on",
     .act = &VERB_OWNERS_SET,
     .short_act = &VERB_OWNERS},
    {.noun = "stats",
     .words = "",
     .help = "Count jobs by queue and state, and those that ended lately.\n\n"
             "Large counts are estimated: ~5000.",
     .examples = "claimctl stats\nclaimctl stats --watch 5s",
     .options = {{"watch", "[TIME]", "repeat every 2s, or every TIME, until Ctrl-C"}},
     .run = stats},
    {.noun = "top",
     .words = "",
     .help = "Watch queues, workers and rates full-screen; q quits.\n\n"
             "Prints once if standard output is not a terminal. Honours NO_COLOR.",
     .examples = "claimctl top\nclaimctl top --every 500ms",
     .options = {{"every", "TIME", "interval; default 2s"}},
     .run = top},
    {.noun = "lock-nodes",
     .verb = "show",
     .words = "",
     .help = "Show the cluster's lock nodes, and lock.nodes of this configuration.",
     .examples = "claimctl lock-nodes show",
     .run = lock_nodes_show},
    {.noun = "lock-nodes",
     .verb = "set",
     .words = "",
     .help = "Replace the cluster's lock nodes with lock.nodes of this configuration.\n\n"
             "All daemons must be stopped. Waits as long as the longest lease in use, since leases "
             "on the former nodes may live that long; meanwhile no daemon starts. If it is "
             "interrupted, run it again. Exits with 5 while a daemon is alive.",
     .examples = "claimctl lock-nodes set --yes",
     .options = {{"yes", NULL, "do it"},
                 {"force", NULL,
                  "even if former nodes can't be asked whether dead workers' locks are held"}},
     .run = lock_nodes_set},
    {.noun = "doctor",
     .words = "",
     .help = "Check servers, versions, policies, clocks and plugins, and say what to do.\n\n"
             "Exits with 1 if a line says FAIL.",
     .examples = "claimctl doctor\nclaimctl doctor --worker \"$(hostname)\"",
     .options = {{"worker", "ID|HOST",
                  "only check that this worker is alive; one line, for health checks"}},
     .run = doctor},
    {.noun = "dev",
     .words = "",
     .help =
         "Run a private cluster in the foreground until Ctrl-C.\n\n"
         "With --env it starts nothing, but prints what another shell needs to use the cluster "
         "that runs in that folder: PATH, CLAIMD_CONFIG, DATABASE (the connection), and PGHOST, "
         "PGPORT and PGUSER for psql and other programs. In that shell: "
         "eval \"$(claimctl dev --env)\"",
     .examples = "claimctl dev --workers 4 --plugins build/handlers\n"
                 "claimctl dev --database app\n"
                 "claimctl dev --env",
     .options = {{"dir", "DIR", "its folder; default /tmp/claimd-dev-UID; keeps the jobs"},
                 {"database", "NAME", "made if it is not there; default claimd"},
                 {"env", NULL, "print settings for a shell"},
                 {"workers", "N", "1 to 16; default 2"},
                 {"masters", "N", "Redis masters, 1 to 9; default 5"},
                 {"plugins", "DIR", "handlers; default: those of this build"},
                 {"handlers", "DIR", "files of handler programs; default none"}},
     .run = dev},
    {.noun = "handler",
     .verb = "new",
     ONE_WORD("NAME"),
     .help = "Make a folder with a handler that can be tested and run at once.\n\n"
             "The handler is of kind NAME. Its README.md says how to run it; its program `test` "
             "tries it without servers.",
     .examples = "claimctl handler new thumbnail --lang python",
     .options = {{"lang", "LANG", "c, python or sh"}},
     .run = handler_new},
    {.noun = "handlers",
     .verb = "check",
     .words = "FILE...|DIR",
     .words_min = 1,
     .words_max = MANY,
     .help = "Check files of handler programs as a worker does, without servers.\n\n"
             "Prints each mistake with its place in the file and what is allowed, and which kinds "
             "each good file serves and which args its command takes. Two handlers of one kind "
             "are a mistake, too. Nothing is started. Whose files are trusted is as for a worker "
             "of this user and configuration (worker.plugin_owners). Exits with 2 if anything is "
             "wrong.",
     .examples = "claimctl handlers check handlers\n"
                 "claimctl handlers check thumbnails.json --json",
     .run = handlers_check},
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
     .help = "Print the configuration in effect: file, environment and defaults.\n\n"
             "Secrets are left out: only their files are named. With --origin it begins with the "
             "file that was read.",
     .examples = "claimctl config show /etc/claimd/claimd.json --origin",
     .options = {{"origin", NULL, "show a table of keys, values and where each comes from"}},
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
     ONE_WORD("bash|zsh"),
     .help = "Print a completion script for this shell.\n\n"
             "bash: put eval \"$(claimctl completion bash)\" into ~/.bashrc. zsh: the same with "
             "zsh, after compinit, or save it as _claimctl in a folder of $fpath.",
     .examples = "claimctl completion bash",
     .run = completion},
    {.noun = "help",
     .words = "[COMMAND...]",
     .words_max = 2,
     .help = "Explain a command, or list all.\n\n"
             "--json prints all commands with their options and examples.",
     .examples = "claimctl help jobs list\nclaimctl help --json",
     .options = {{"man", NULL, "print all commands as the source of a manual page (scdoc)"}},
     .run = help},
};
const struct ctl_command_list ctl_cluster_commands = {rows, ARRAY_COUNT(rows)};
