/* SPDX-License-Identifier: Apache-2.0
 *
 * The table from which parsing, help, completion and the manual's commands are made. */
#include "ctl/ctl.h"

#define MANY 1000

/* Which jobs: ctl/filter.c. */
#define FILTER_OPTIONS(standard)                                                            \
    {"state", "STATE", "only in these states; " standard},                                  \
        {"kind", "NAME", "only of these kinds"}, {"queue", "NAME", "only of these queues"}, \
        {"tag", "TEXT", "only with this tag; repeated: with all of them"},                  \
        {"metadata", "JSON", "only whose metadata contain this object"},                    \
        {"worker", "ID|HOST", "whose last attempt ran there"},                              \
        {"since", "TIME", "created (or ended) at this time or later"},                      \
        {"until", "TIME", "created (or ended) before this time"},                           \
        {"older-than", "AGE", "the same as --until with an age"},                           \
    {                                                                                       \
        "error", "TEXT", "whose last error contains this text"                              \
    }

/* What is done to all of them: ctl/act_matches.c. */
#define BULK_OPTIONS                                                               \
    {"limit", "N", "at most so many, the newest; default: all, up to 10 million"}, \
        {"dry-run", NULL, "only show how many jobs there are, and which"},         \
        {"yes", NULL, "don't ask on a terminal"},                                  \
    {                                                                              \
        "quiet", NULL, "no progress on standard error"                             \
    }
#define BULK_HELP                                                                                  \
    "\n\nOptions choose jobs as for jobs list. They are worked on in batches of 1000, the oldest " \
    "first. After an interruption the same command goes on with the rest."

const struct ctl_command ctl_commands[] = {
    {.noun = "db",
     .verb = "migrate",
     .words = "",
     .help = "Migrate the schema to the version of this build.",
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
     .help = "Undo the last migration and delete its data.",
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
    {.noun = "enqueue",
     .words = "[KIND|-]",
     .words_max = 1,
     .help = "Add one job and print its id, or add a file of jobs (-: standard input).\n\n"
             "A file has one JSON object per line: {\"kind\": …} and, optionally, \"args\", "
             "\"queue\", \"priority\", \"delay\" or \"at\", \"max_attempts\", \"timeout\", "
             "\"tags\", \"metadata\".\n"
             "If one line is bad, nothing is stored.\n"
             "TIME: 250ms, 10s, 5m, 2h, 1d; a number alone is seconds.\n"
             "Warns on standard error if no live worker of the queue serves the kind.",
     .examples = "claimctl enqueue resize --args '{\"width\": 80}' --queue images\n"
                 "claimctl enqueue report --at 2026-01-31T08:00:00Z --tag monthly\n"
                 "claimctl enqueue import --args @rows.json --delay 5m\n"
                 "claimctl enqueue sync --unique customer-7 --on-conflict ignore\n"
                 "zcat jobs.gz | claimctl enqueue -",
     .options = {{"args", "JSON|@FILE", "for the handler; default {}; @- reads standard input"},
                 {"queue", "NAME", "default: default"},
                 {"priority", "0-9", "0 is the highest; default 4"},
                 {"delay", "TIME", "start no earlier than in 250ms, 10s, 5m, 2h, 1d; 10 is 10s"},
                 {"at", "TIME", "start no earlier than 2026-01-31T08:00:00Z"},
                 {"max-attempts", "N", "default: the kind's"},
                 {"timeout", "TIME", "of one attempt; default: the kind's"},
                 {"backoff", "FORM",
                  "fixed:30s, list:1s,5s, linear:10s:1h, exponential:15s:1h~10%"},
                 {"tag", "TEXT", "may be repeated"},
                 {"metadata", "JSON", "an object, for people and for jobs list"},
                 {"exclusive", "KEY", "of all jobs with this key one runs at a time"},
                 {"share", "KEY", "whose it is: jobs with different keys take turns"},
                 {"unique", "KEY", "only if no other job with this key stands in the way"},
                 {"unique-by", "LIST", "a key made of kind, queue, args, args.NAME"},
                 {"unique-for", "TIME", "so long, even if that job ends before"},
                 {"unique-states", "STATES", "queued, open, completed or all"},
                 {"on-conflict", "ACTION", "error (default), ignore, replace_args, reschedule"},
                 {"file", "FILE", "JSON lines; - is standard input"},
                 {"strict", NULL, "refuse, instead of warn, if no live worker serves the kind"},
                 {"quiet", NULL, "with --file: no progress on standard error"}},
     .run = enqueue},
    {.noun = "jobs",
     .verb = "list",
     .words = "",
     .help =
         "List jobs, newest first.\n\n"
         "STATE: waiting (for other jobs), scheduled, retryable, available, running, completed, "
         "cancelled, discarded.\n"
         "TIME: an age such as 2h, or a time such as 2026-01-31T08:00:00Z. It is compared with the "
         "end of a finished job and the creation of an open one. --state, --kind and --queue take "
         "several values, separated by commas or repeated. --after continues a long list.\n\n"
         "COLUMNS, separated by commas: id, kind, queue, state, priority, attempt, created_at, "
         "ready_at, attempted_at, finalized_at, worker, worker_id, tags, args, metadata, result, "
         "error, progress.",
     .examples = "claimctl jobs list --state discarded --kind resize --since 2h\n"
                 "claimctl jobs list --queue images,mail --columns id,worker,error\n"
                 "claimctl jobs list --tag monthly --metadata '{\"customer\": 7}'\n"
                 "claimctl jobs list --state retryable --error timeout --limit 10 --json",
     .options = {{"state", "STATE", "only in these states"},
                 {"kind", "NAME", "only of these kinds"},
                 {"queue", "NAME", "only of these queues"},
                 {"tag", "TEXT", "only with this tag; repeated: with all of them"},
                 {"metadata", "JSON", "only whose metadata contain this object"},
                 {"worker", "ID|HOST", "whose last attempt ran there"},
                 {"since", "TIME", "at this time or later"},
                 {"until", "TIME", "before this time"},
                 {"older-than", "AGE", "the same as --until with an age"},
                 {"error", "TEXT", "whose last error contains this text"},
                 {"after", "ID", "continue below this id: next_after in JSON"},
                 {"columns", "COLUMNS", "columns to show, in this order"},
                 {"limit", "N", "1 to 10000; default 50"}},
     .run = jobs_list},
    {.noun = "jobs",
     .verb = "show",
     .words = "ID",
     .words_min = 1,
     .words_max = 1,
     .help = "Show one job: its state, what it waits for, what happened to it.\n\n"
             "Shows the first 1000 bytes of args, metadata and result; JSON has all.",
     .examples =
         "claimctl jobs show 42\nclaimctl jobs show 42 --full\nclaimctl jobs show 42 --log 2",
     .options = {{"full", NULL, "show args, metadata and result in full"},
                 {"log", "N", "show the end of the log of attempt N; default: the last with one"}},
     .run = jobs_show},
    {.noun = "jobs",
     .verb = "watch",
     .words = "[ID...]",
     .words_max = MANY,
     .help = "Follow jobs until all have ended, one line per change.\n\n"
             "Without an ID: the newest open jobs that match the options, up to 1000.\n"
             "Exits with 1 if one of them was discarded.",
     .examples = "claimctl jobs watch 42\nclaimctl jobs watch --tag monthly --json",
     .options = {FILTER_OPTIONS("default: the open ones"),
                 {"every", "TIME", "interval; default 500ms"}},
     .run = jobs_watch},
    {.noun = "jobs",
     .verb = "cancel",
     .words = "[ID...]",
     .words_max = MANY,
     .help = "Cancel jobs, by ID or by options.\n\n"
             "One that runs is asked to end, and is `cancelling`: it ends as cancelled, unless its "
             "handler is done first.\n\n"
             "Each one independently: a job that can't be cancelled does not stop the others. The "
             "exit code is that of the worst failure." BULK_HELP,
     .examples = "claimctl jobs cancel 42 43\n"
                 "claimctl jobs cancel --queue images --older-than 2h --dry-run",
     .options = {FILTER_OPTIONS("default: all open ones"), BULK_OPTIONS},
     .run = jobs_cancel},
    {.noun = "jobs",
     .verb = "retry",
     .words = "[ID...]",
     .words_max = MANY,
     .help = "Run finished jobs again, by ID or by options, now and with all their attempts.\n\n"
             "Each one independently, as with jobs cancel. A completed job needs --even-completed, "
             "or --state completed." BULK_HELP,
     .examples = "claimctl jobs retry 42\n"
                 "claimctl jobs retry --kind mail --since 2h --error 'no route' --dry-run",
     .options = {FILTER_OPTIONS("default: discarded"),
                 BULK_OPTIONS,
                 {"even-completed", NULL, "with IDs: completed ones, too"}},
     .run = jobs_retry},
    {.noun = "jobs",
     .verb = "edit",
     .words = "ID",
     .words_min = 1,
     .words_max = 1,
     .help = "Change a queued job and print its new version.\n\n"
             "What is not named stays. What runs is what the job is when it is claimed; a running "
             "job is not changed (exit code 5), unless by --apply next: then its next attempt, if "
             "there is one, has the change. --expect refuses if somebody else was faster. jobs "
             "show lists all edits.",
     .examples = "claimctl jobs edit 42 --args '{\"width\": 90}' --priority 0\n"
                 "claimctl jobs edit 42 --delay 2h --expect 3\n"
                 "claimctl jobs edit 42 --timeout 10m --apply next",
     .options = {{"args", "JSON|@FILE", "for the handler; @- reads standard input"},
                 {"priority", "0-9", "0 is the highest"},
                 {"queue", "NAME", "move it to this queue"},
                 {"delay", "TIME", "start no earlier than in 250ms, 10s, 5m, 2h, 1d; 0 is now"},
                 {"at", "TIME", "start no earlier than 2026-01-31T08:00:00Z"},
                 {"max-attempts", "N", "more than it has had"},
                 {"timeout", "TIME", "of one attempt"},
                 {"tag", "TEXT", "these tags instead of those that it has; may be repeated"},
                 {"metadata", "JSON|@FILE", "instead of what it has"},
                 {"backoff", "FORM", "as of enqueue; an empty text: the kind's"},
                 {"exclusive", "KEY", "another exclusive key; an empty text: none"},
                 {"apply", "WHEN", "now (default), or next: a running job at its next attempt"},
                 {"expect", "VERSION", "only if it has this version"}},
     .run = jobs_edit},
    {.noun = "jobs",
     .verb = "delete",
     .words = "[ID...]",
     .words_max = MANY,
     .help = "Delete finished jobs from the history, by ID or by options.\n\n"
             "With all their generations and failed attempts. Each one independently, as with jobs "
             "cancel." BULK_HELP,
     .examples = "claimctl jobs delete 42\n"
                 "claimctl jobs delete --state completed --kind mail --older-than 2d --dry-run",
     .options = {FILTER_OPTIONS("default: all finished ones"), BULK_OPTIONS},
     .run = jobs_delete},
    {.noun = "queues",
     .words = "",
     .help = "Show each queue: depth by state, oldest due job, rate, who serves it.\n\n"
             "Depths of large queues are estimated: ~5000.",
     .examples = "claimctl queues",
     .run = queues},
    {.noun = "queues",
     .verb = "show",
     .words = "NAME",
     .words_min = 1,
     .words_max = 1,
     .help = "Show one queue: its open jobs by kind and priority, and its workers.\n\n"
             "Of more than 100000 open jobs the first ones are counted by kind.",
     .examples = "claimctl queues show images",
     .run = queues_show},
    {.noun = "queues",
     .verb = "pause",
     .words = "NAME",
     .words_min = 1,
     .words_max = 1,
     .help = "Start no more jobs of a queue; what runs goes on.\n\n"
             "Workers hear it with their next heartbeat, within 2 s.",
     .examples = "claimctl queues pause images",
     .run = queues_pause},
    {.noun = "queues",
     .verb = "resume",
     .words = "NAME",
     .words_min = 1,
     .words_max = 1,
     .help = "Start the jobs of a paused queue again.",
     .examples = "claimctl queues resume images",
     .run = queues_resume},
    {.noun = "queues",
     .verb = "limit",
     .words = "NAME",
     .words_min = 1,
     .words_max = 1,
     .help = "Limit how many jobs of a queue run at a time, start, or are open.\n\n"
             "What runs is limited from the next claim on, over all workers; what runs already "
             "runs on. A queue that is full of open jobs, waiting or running, refuses new ones "
             "(exit code 5, SQLSTATE CL005).",
     .examples = "claimctl queues limit images --running 5\n"
                 "claimctl queues limit mails --rate 50/s\n"
                 "claimctl queues limit reports --max-open 1000\n"
                 "claimctl queues limit images --running none --rate none",
     .options = {{"running", "N", "at most so many, 1 to 10000, or none for no limit"},
                 {"rate", "N/UNIT", "so many starts per s, m, h or d; or none for no limit"},
                 {"max-open", "N", "so many jobs that have not ended; or none for no limit"}},
     .run = queues_limit},
    {.noun = "queues",
     .verb = "clear",
     .words = "NAME",
     .words_min = 1,
     .words_max = 1,
     .help = "Cancel what is queued in a queue." BULK_HELP,
     .examples = "claimctl queues clear images --dry-run",
     .options = {{"state", "STATE", "only in these states; default: all but running"},
                 {"kind", "NAME", "only of these kinds"},
                 BULK_OPTIONS},
     .run = queues_clear},
    {.noun = "keys",
     .verb = "list",
     .words = "",
     .help = "List the exclusive keys that are held or have a limit, up to 1000.",
     .examples = "claimctl keys list",
     .run = keys_list},
    {.noun = "keys",
     .verb = "show",
     .words = "KEY",
     .words_min = 1,
     .words_max = 1,
     .help = "Show an exclusive key: its limits, who holds it, and whose turn is next.",
     .examples = "claimctl keys show machine-17",
     .run = keys_show},
    {.noun = "keys",
     .verb = "limit",
     .words = "KEY",
     .words_min = 1,
     .words_max = 1,
     .help = "Limit how many jobs with an exclusive key run at a time, or start.\n\n"
             "Over all workers. One at a time and no rate is what each key has that nobody has set "
             "a limit for.",
     .examples = "claimctl keys limit machine-17 --running 3\n"
                 "claimctl keys limit customer-7 --running 100 --rate 50/m\n"
                 "claimctl keys limit customer-7 --running none --rate none",
     .options = {{"running", "N", "at most so many, 1 to 1000; none is 1"},
                 {"rate", "N/UNIT", "so many starts per s, m, h or d; or none for no limit"}},
     .run = keys_limit},
    {.noun = "kinds",
     .verb = "list",
     .words = "",
     .help = "List the kinds that workers have announced, and how many serve them now.",
     .examples = "claimctl kinds list",
     .run = kinds_list},
    {.noun = "kinds",
     .verb = "pause",
     .words = "NAME",
     .words_min = 1,
     .words_max = 1,
     .help = "Start no more jobs of a kind, in any queue; what runs goes on.\n\n"
             "Workers hear it with their next heartbeat, within 2 s.",
     .examples = "claimctl kinds pause resize",
     .run = kinds_pause},
    {.noun = "kinds",
     .verb = "resume",
     .words = "NAME",
     .words_min = 1,
     .words_max = 1,
     .help = "Start the jobs of a paused kind again.",
     .examples = "claimctl kinds resume resize",
     .run = kinds_resume},
    {.noun = "batches",
     .verb = "list",
     .words = "",
     .help = "List batches and how many of their jobs have ended, the newest 100.",
     .examples = "claimctl batches list",
     .run = batches_list},
    {.noun = "batches",
     .verb = "show",
     .words = "ID",
     .words_min = 1,
     .words_max = 1,
     .help = "Show a batch and up to 100 of its jobs, those that failed first.",
     .examples = "claimctl batches show 7",
     .run = batches_show},
    {.noun = "batches",
     .verb = "close",
     .words = "ID",
     .words_min = 1,
     .words_max = 1,
     .help = "Let no more jobs into a batch: it is over when those it has have ended.",
     .examples = "claimctl batches close 7",
     .run = batches_close},
    {.noun = "batches",
     .verb = "cancel",
     .words = "ID",
     .words_min = 1,
     .words_max = 1,
     .help = "Close a batch and cancel its jobs that have not ended.",
     .examples = "claimctl batches cancel 7",
     .run = batches_cancel},
    {.noun = "schedules",
     .verb = "list",
     .words = "",
     .help = "List schedules: when each is due, when it fired last, its last error.",
     .examples = "claimctl schedules list",
     .run = schedules_list},
    {.noun = "schedules",
     .verb = "show",
     .words = "NAME",
     .words_min = 1,
     .words_max = 1,
     .help = "Show one schedule, its next five ticks and what became of its last ten.",
     .examples = "claimctl schedules show nightly",
     .run = schedules_show},
    {.noun = "schedules",
     .verb = "set",
     .words = "NAME KIND CRON",
     .words_min = 3,
     .words_max = 3,
     .help = "Make a schedule, or replace the one of this name; prints its next tick.\n\n"
             "CRON: five fields (minute hour day month weekday), six with the second in front, "
             "@hourly, @daily, @weekly, @monthly, @yearly, or 'every 90s' (s, m, h, d). An option "
             "that is left out means its default, also for a schedule that is there already.",
     .examples = "claimctl schedules set nightly backup '30 2 * * *' --zone Europe/Berlin\n"
                 "claimctl schedules set poll fetch 'every 90s' --overlap skip --missed none",
     .options = {{"zone", "NAME", "time zone, such as Europe/Berlin; default UTC"},
                 {"args", "JSON|@FILE", "for the handler; default {}; @- reads standard input"},
                 {"queue", "NAME", "default: default"},
                 {"priority", "0-9", "0 is the highest; default 4"},
                 {"max-attempts", "N", "default: the kind's"},
                 {"timeout", "TIME", "of one attempt; default: the kind's"},
                 {"tag", "TEXT", "may be repeated"},
                 {"metadata", "JSON", "default: none"},
                 {"missed", "POLICY",
                  "ticks that are over a minute late: none, latest, all; "
                  "default latest"},
                 {"missed-window", "TIME", "leave out those that are older; default 1d"},
                 {"overlap", "POLICY", "while a job of it is open: run, skip; default run"}},
     .run = schedules_set},
    {.noun = "schedules",
     .verb = "pause",
     .words = "NAME",
     .words_min = 1,
     .words_max = 1,
     .help = "Pause a schedule: its ticks pass, and are not made up for.",
     .examples = "claimctl schedules pause nightly",
     .run = schedules_pause},
    {.noun = "schedules",
     .verb = "resume",
     .words = "NAME",
     .words_min = 1,
     .words_max = 1,
     .help = "Resume a paused schedule; prints its next tick.",
     .examples = "claimctl schedules resume nightly",
     .run = schedules_resume},
    {.noun = "schedules",
     .verb = "run",
     .words = "NAME",
     .words_min = 1,
     .words_max = 1,
     .help = "Add a job of a schedule now, and print its id. Its ticks stay as they are.",
     .examples = "claimctl schedules run nightly",
     .run = schedules_run},
    {.noun = "schedules",
     .verb = "delete",
     .words = "NAME",
     .words_min = 1,
     .words_max = 1,
     .help = "Delete a schedule. Jobs that it has made stay.",
     .examples = "claimctl schedules delete nightly",
     .run = schedules_delete},
    {.noun = "schedules",
     .verb = "next",
     .words = "NAME",
     .words_min = 1,
     .words_max = 1,
     .help = "Show the next ticks of a schedule, in its zone as well.",
     .examples = "claimctl schedules next nightly --count 10",
     .options = {{"count", "N", "1 to 1000; default 5"}},
     .run = schedules_next},
    {.noun = "schedules",
     .verb = "apply",
     .words = "FILE|-",
     .words_min = 1,
     .words_max = 1,
     .help = "Make the schedules those of a JSON file, all or none.\n\n"
             "{\"schedules\": [{\"name\": …, \"kind\": …, \"cron\": …}, …]}, and optionally "
             "\"zone\", \"args\", \"queue\", \"priority\", \"max_attempts\", \"timeout\", "
             "\"tags\", \"metadata\", \"missed\", \"missed_window\", \"overlap\": as the "
             "options of schedules set. Unknown and duplicate keys are refused. Whether a schedule "
             "is paused stays as it is.",
     .examples = "claimctl schedules apply schedules.json --dry-run\n"
                 "claimctl schedules apply schedules.json --prune --yes",
     .options = {{"dry-run", NULL, "only show the difference"},
                 {"prune", NULL, "delete the schedules that the file does not have"},
                 {"yes", NULL, "with --prune: don't ask on a terminal"}},
     .run = schedules_apply},
    {.noun = "workers",
     .words = "",
     .help = "List workers: slots, what they run and serve, age of the last heartbeat.",
     .examples = "claimctl workers\nclaimctl workers --all --json",
     .options = {{"all", NULL, "include stopped ones"}},
     .run = workers},
    {.noun = "workers",
     .verb = "quiet",
     .words = "ID|HOST",
     .words_min = 1,
     .words_max = 1,
     .help = "Ask a worker, or all on a host, to take no new jobs.\n\n"
             "It hears it with its next heartbeat, within 2 s, and stays so until it ends.",
     .examples = "claimctl workers quiet build-7",
     .run = workers_quiet},
    {.noun = "workers",
     .verb = "drain",
     .words = "ID|HOST",
     .words_min = 1,
     .words_max = 1,
     .help = "Ask a worker, or all on a host, to end what runs, and then to end.\n\n"
             "The same as SIGTERM: what still runs after worker.drain_ms is handed back.",
     .examples = "claimctl workers drain build-7",
     .run = workers_drain},
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
     .help = "Run a private cluster in the foreground until Ctrl-C.",
     .examples = "claimctl dev --workers 4 --plugins build/handlers",
     .options = {{"dir", "DIR", "its folder; default /tmp/claimd-dev-UID; keeps the jobs"},
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
     .words = "bash|zsh",
     .words_min = 1,
     .words_max = 1,
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
const size_t ctl_command_count = ARRAY_COUNT(ctl_commands);

const struct ctl_option ctl_common_options[] = {
    {"config", "FILE",
     "configuration; else $CLAIMD_CONFIG, else " CTL_CONFIG_STANDARD_PATH " if it is there, else "
     "defaults and environment"},
    {"json", NULL, "print JSON"},
    {"help", NULL, "show this help"},
    {"version", NULL, "show the version"},
};
const size_t ctl_common_option_count = ARRAY_COUNT(ctl_common_options);
