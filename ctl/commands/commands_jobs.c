/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands for jobs and batches: rows of the table in commands.c. */
#include "ctl/commands/command_parts.h"
#include "ctl/core/ctl.h"

static const struct ctl_command rows[] = {
    {.noun = "enqueue",
     .words = "[KIND|-]",
     .words_max = 1,
     .help = ENQUEUE_HELP,
     .examples = "claimctl enqueue resize --args '{\"width\": 80}' --queue images\n"
                 "claimctl enqueue report --at 2026-01-31T08:00:00Z --tag monthly\n"
                 "claimctl enqueue import --args @rows.json --delay 5m\n"
                 "claimctl enqueue push --expires-in 10m\n"
                 "claimctl enqueue sync --unique customer-7 --on-conflict ignore\n"
                 "claimctl enqueue mail --batch 7\n"
                 "zcat jobs.gz | claimctl enqueue -",
     .options =
         {{"args", "JSON|@FILE", "for the handler; default {}; @- reads standard input"},
          {"queue", "NAME", "default: default"},
          {"priority", "0-9", "0 is the highest; default 4"},
          {"delay", "TIME", "start no earlier than in 250ms, 10s, 5m, 2h, 1d; 10 is 10s"},
          {"at", "TIME", "start no earlier than 2026-01-31T08:00:00Z"},
          {"expires-in", "TIME", "discard it if it has not begun within 250ms, 10s, 5m"},
          {"expires-at", "TIME", "discard it if it has not begun by 2026-01-31T09:00:00Z"},
          {"max-attempts", "N", "default: the kind's"},
          {"timeout", "TIME", "of one attempt; default: the kind's"},
          {"grace", "TIME", "from being told to stop until being killed; default: the kind's"},
          {"backoff", "FORM", "fixed:30s, list:1s,5s, linear:10s:1h, exponential:15s:1h~10%"},
          {"tag", "TEXT", "not empty; may be repeated"},
          {"metadata", "JSON|@FILE", "an object, for people and for jobs list"},
          {"exclusive", "KEY", "only one job with this key runs at a time"},
          {"second", "KEY", "a second exclusive key: it needs a place of both"},
          {"after", "ID[,ID...]", "wait until these jobs have ended"},
          {"batch", "ID", "add it to this batch, or all jobs of the file"},
          {"if-dead", "ACTION", "if one did not complete: cancel (default), run, hold"},
          {"share", "KEY", "its tenant: jobs with different keys take turns"},
          {"unique", "KEY", "only if no other job with this key stands in the way"},
          {"unique-by", "LIST", "a key made of kind, queue, args, args.NAME; or --unique for each"},
          {"unique-for", "TIME", "for this time, even if that job ends earlier"},
          {"unique-states", "STATES", "queued, open, completed or all"},
          {"on-conflict", "ACTION", "error (default), ignore, replace_args, reschedule, replace"},
          {"file", "FILE", "JSON lines; - is standard input"},
          {"dry-run", NULL, "with --file: try it, and store nothing"},
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
         "error, progress, owner.",
     .examples = "claimctl jobs list --state discarded --kind resize --since 2h\n"
                 "claimctl jobs list --queue images,mail --columns id,worker,error\n"
                 "claimctl jobs list --tag monthly --metadata '{\"customer\": 7}'\n"
                 "claimctl jobs list --state retryable --error timeout --limit 10 --json",
     .options = {FILTER_OPTIONS("default: all"),
                 {"after", "ID", "continue behind this id: next_after in JSON"},
                 {"columns", "COLUMNS", "columns to show, in this order"},
                 {"limit", "N", "1 to 10000; default 50"}},
     .run = jobs_list},
    {.noun = "jobs",
     .verb = "show",
     ONE_WORD("ID"),
     .help = "Show one job: its state, what it waits for, what happened to it.\n\n"
             "Shows the first 1000 bytes of args, metadata and result; JSON has all.",
     .examples = "claimctl jobs show 42\nclaimctl jobs show 42 --full\n"
                 "claimctl jobs show 42 --log 2 --generation 0",
     .options = {{"full", NULL, "show args, metadata and result in full"},
                 {"log", "N|all", "the end of the log of attempt N; default: the last with one"},
                 {"generation", "N", "the log of an attempt before a retry; the first one is 0"}},
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
             "A running job is asked to end, and is `cancelling`: it ends as cancelled, unless its "
             "handler is done first.\n\n"
             "A job that can't be cancelled does not stop the others. The "
             "exit code is that of the worst failure." BULK_HELP,
     .examples = "claimctl jobs cancel 42 43\n"
                 "claimctl jobs cancel --queue images --older-than 2h --dry-run",
     .options = {FILTER_OPTIONS("default: all open ones"), BULK_OPTIONS},
     .run = jobs_cancel},
    {.noun = "jobs",
     .verb = "retry",
     .words = "[ID...]",
     .words_max = MANY,
     .help = "Run jobs now, by ID or by options: again, or before their time.\n\n"
             "A finished job runs again, with all its attempts; a completed one needs "
             "--even-completed, or --state completed. A retryable or scheduled job becomes due, "
             "and keeps its attempts. One that is due stays as it is. A job that can't be retried "
             "does not stop the others." BULK_HELP,
     .examples = "claimctl jobs retry 42\n"
                 "claimctl jobs retry --state retryable --kind mail\n"
                 "claimctl jobs retry --kind mail --since 2h --error 'no route' --dry-run",
     .options = {FILTER_OPTIONS("default: discarded"),
                 BULK_OPTIONS,
                 {"even-completed", NULL, "with IDs: completed ones, too"}},
     .run = jobs_retry},
    {.noun = "jobs",
     .verb = "edit",
     .words = "[ID]",
     .words_max = 1,
     .help = "Change a queued job and print its new version, or all that options choose.\n\n"
             "Fields that are not named stay. A job runs as it is when it is claimed. A running "
             "job is not changed (exit code 5), except by --apply next: then its next attempt, if "
             "there is one, has the change. --expect refuses if the job has changed since. jobs "
             "show lists all edits.\n\n"
             "With an ID, --queue, --tag and --metadata are the same as --set-queue, --set-tag and "
             "--set-metadata; without, they choose jobs." BULK_HELP,
     .examples = "claimctl jobs edit 42 --args '{\"width\": 90}' --priority 0\n"
                 "claimctl jobs edit 42 --delay 2h --expect 3\n"
                 "claimctl jobs edit 42 --timeout 10m --apply next\n"
                 "claimctl jobs edit 42 --timeout default --max-attempts default\n"
                 "claimctl jobs edit --queue images --kind resize --set-queue bulk --dry-run",
     .options = {{"args", "JSON|@FILE", "for the handler; @- reads standard input"},
                 {"priority", "0-9", "0 is the highest"},
                 {"set-queue", "NAME", "move it to this queue"},
                 {"delay", "TIME", "start no earlier than in 250ms, 10s, 5m, 2h, 1d; 0 is now"},
                 {"at", "TIME", "start no earlier than 2026-01-31T08:00:00Z"},
                 {"expires-in", "TIME", "discard it if it has not begun within 250ms, 10s, 5m"},
                 {"expires-at", "TIME", "by 2026-01-31T09:00:00Z; an empty text: never"},
                 {"max-attempts", "N", "more than it has had, or default: the kind's"},
                 {"timeout", "TIME", "of one attempt, or default: the kind's"},
                 {"grace", "TIME", "from stop until being killed, or default: the kind's"},
                 {"set-tag", "TEXT",
                  "instead of those that it has; may be repeated; an empty text: none"},
                 {"set-metadata", "JSON|@FILE", "instead of what it has; null: none"},
                 {"backoff", "FORM", "as of enqueue, or default (or an empty text): the kind's"},
                 {"exclusive", "KEY", "another exclusive key; an empty text: none"},
                 {"second", "KEY", "another second key; an empty text: none"},
                 {"share", "KEY", "the new tenant; an empty text: none"},
                 {"apply", "WHEN", "now (default), or next: a running job at its next attempt"},
                 {"expect", "VERSION", "with an ID: only if it has this version"},
                 FILTER_OPTIONS("default: all that do not run"),
                 BULK_OPTIONS},
     .run = jobs_edit},
    {.noun = "jobs",
     .verb = "delete",
     .words = "[ID...]",
     .words_max = MANY,
     .help = "Delete finished jobs from the history, by ID or by options.\n\n"
             "This deletes all their generations and failed attempts, too. A job that can't be "
             "deleted does not stop the others." BULK_HELP,
     .examples = "claimctl jobs delete 42\n"
                 "claimctl jobs delete --state completed --kind mail --older-than 2d --dry-run",
     .options = {FILTER_OPTIONS("default: all finished ones"), BULK_OPTIONS},
     .run = jobs_delete},
    {.noun = "batches",
     .verb = "list",
     .words = "",
     .help = "List batches and how many of their jobs have ended, the newest 100.",
     .examples = "claimctl batches list",
     .act = &VERB_BATCHES},
    {.noun = "batches",
     .verb = "show",
     ONE_WORD("ID"),
     .help = "Show a batch and up to 100 of its jobs, those that failed first.",
     .examples = "claimctl batches show 7",
     .act = &VERB_BATCH_JOBS},
    {.noun = "batches",
     .verb = "open",
     .words = "[NAME]",
     .words_max = 1,
     .help = "Open a batch and print its id.\n\n"
             "Add jobs to it by enqueue --batch and batches add, then close it. NAME: at most 200 "
             "bytes.",
     .examples = "claimctl batches open\n"
                 "claimctl batches open 'newsletter 42' --follow-up '{\"kind\": \"report\"}'\n"
                 "claimctl batches open import --on-failure '{\"kind\": \"alert\"}'",
     .options = {{"follow-up", "JSON|@FILE",
                  "a job as enqueue_many() takes it, made once all have ended"},
                 {"on-success", "JSON|@FILE", "a job that is made if all have completed"},
                 {"on-failure", "JSON|@FILE", "a job that is made if one did not complete"}},
     .run = batches_open},
    {.noun = "batches",
     .verb = "add",
     .words = "ID JOB...",
     .words_min = 2,
     .words_max = MANY,
     .help = "Add jobs that have not ended to a batch that is open, all or none.\n\n"
             "A job is in one batch at most; a second time is no error.",
     .examples = "claimctl batches add 7 42 43",
     .options = {{"dry-run", NULL, "try it, and change nothing"}},
     .run = batches_add},
    {.noun = "batches",
     .verb = "close",
     ONE_WORD("ID"),
     .help = "Close a batch to new jobs: it is over when all its jobs have ended.",
     .examples = "claimctl batches close 7",
     .act = &VERB_BATCH_CLOSE},
    {.noun = "batches",
     .verb = "cancel",
     ONE_WORD("ID"),
     .help = "Close a batch and cancel its jobs that have not ended." BULK_HELP,
     .examples = "claimctl batches cancel 7 --dry-run",
     .options = {BULK_OPTIONS},
     .run = batches_cancel},
};
const struct ctl_command_list ctl_job_commands = {rows, ARRAY_COUNT(rows)};
