/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands for queues, keys, kinds and schedules, and for setting all of them from a file: rows of
 * the table in commands.c. */
#include "ctl/commands/command_parts.h"
#include "ctl/core/ctl.h"

static const struct ctl_command rows[] = {
    {.noun = "queues",
     .words = "",
     .help = "Show each queue: depth by state, oldest due job, rate, who serves it.\n\n"
             "Depths of large queues are estimated: ~5000.",
     .examples = "claimctl queues",
     .act = &VERB_QUEUES},
    {.noun = "queues",
     .verb = "show",
     ONE_WORD("NAME"),
     .help = "Show one queue: its limits, what is kept, its open jobs by kind, its workers.\n\n"
             "If more than 100000 jobs are open, only the first ones are counted by kind.",
     .examples = "claimctl queues show images",
     .act = &VERB_QUEUE_SHOW},
    {.noun = "queues",
     .verb = "pause",
     .words = "[NAME]",
     .words_max = 1,
     .help = "Start no more jobs of a queue, or of all; running jobs continue.\n\n"
             "Workers learn of it with their next heartbeat, within 2 s. --all: those that have an "
             "open job, a worker or a setting now, not those that come later.",
     .examples = "claimctl queues pause images\nclaimctl queues pause --all",
     .options = {{"all", NULL, "each queue that there is"},
                 {"yes", NULL, "with --all: don't ask on a terminal"}},
     .run = queues_pause},
    {.noun = "queues",
     .verb = "resume",
     .words = "[NAME]",
     .words_max = 1,
     .help = "Start the jobs of a paused queue again, or of all.",
     .examples = "claimctl queues resume images\nclaimctl queues resume --all",
     .options = {{"all", NULL, "each queue that is paused"},
                 {"yes", NULL, "with --all: don't ask on a terminal"}},
     .run = queues_resume},
    {.noun = "queues",
     .verb = "limit",
     ONE_WORD("NAME"),
     .help = "Limit how many jobs of a queue run at a time, start, or are open.\n\n"
             "The limit holds from the next claim on, over all workers; running jobs continue. A "
             "queue that is full of open jobs, waiting or running, refuses new ones "
             "(exit code 5, SQLSTATE CL005).",
     .examples = "claimctl queues limit images --running 5\n"
                 "claimctl queues limit mails --rate 50/s\n"
                 "claimctl queues limit reports --max-open 1000\n"
                 "claimctl queues limit images --running none --rate none",
     .options = {{"running", "N", "at most so many, 1 to 10000, or none for no limit"},
                 {"rate", "N/UNIT", "at most N starts per s, m, h or d; none: no limit"},
                 {"max-open", "N", "at most N jobs that have not ended; none: no limit"}},
     .no_option = NO_LIMIT,
     .act = &VERB_QUEUE_LIMIT},
    {.noun = "queues",
     .verb = "weight",
     .words = "NAME N|none",
     .words_min = 2,
     .words_max = 2,
     .help = "Set what workers take of a queue beside the other queues they serve.\n\n"
             "N is 1 to 100. As soon as one queue of a worker has a weight, what it starts is "
             "shared among those with due jobs in proportion; a queue without a weight counts as "
             "1. Priorities then hold within a queue only. Workers learn of it within 2 s.",
     .examples = "claimctl queues weight mails 9\nclaimctl queues weight mails none",
     .act = &VERB_QUEUE_WEIGHT},
    {.noun = "queues",
     .verb = "retain",
     .words = "NAME [DAYS|default]",
     .words_min = 1,
     .words_max = 2,
     .help = RETAIN_HELP,
     .examples = "claimctl queues retain images 7d\n"
                 "claimctl queues retain images 90d --state discarded\n"
                 "claimctl queues retain images default\n"
                 "claimctl queues retain images",
     .options = {RETAIN_OPTION},
     .act = &VERB_QUEUE_RETAIN,
     .short_act = &VERB_QUEUE_RULES},
    {.noun = "queues",
     .verb = "clear",
     ONE_WORD("NAME"),
     .help = "Cancel the queued jobs of a queue." BULK_HELP,
     .examples = "claimctl queues clear images --dry-run",
     .options = {{"state", "STATE", "only in these states; default: all but running"},
                 {"kind", "NAME", "only of these kinds"},
                 BULK_OPTIONS},
     .run = queues_clear},
    {.noun = "keys",
     .verb = "list",
     .words = "",
     .help = "List patterns, and exclusive keys that are held or have a limit, up to 1000.",
     .examples = "claimctl keys list",
     .act = &VERB_KEYS},
    {.noun = "keys",
     .verb = "show",
     ONE_WORD("KEY"),
     .help = "Show an exclusive key: its limits, who holds it, and whose turn is next.",
     .examples = "claimctl keys show machine-17",
     .act = &VERB_KEY_JOBS},
    {.noun = "keys",
     .verb = "limit",
     ONE_WORD("KEY"),
     .help = "Limit how many jobs with an exclusive key run at a time, or start.\n\n"
             "Over all workers. Without a limit of its own, a key has one job at a time and no "
             "rate. KEY may be a pattern that ends in :* or /*: each key that begins so has "
             "that limit, unless it has its own.",
     .examples = "claimctl keys limit machine-17 --running 3\n"
                 "claimctl keys limit customer-7 --running 100 --rate 50/m\n"
                 "claimctl keys limit 'customer:*' --running 1 --rate 50/m\n"
                 "claimctl keys limit customer-7 --running none --rate none",
     .options = {{"running", "N", "at most so many, 1 to 1000; none is 1, or as a pattern says"},
                 {"rate", "N/UNIT", "at most N starts per s, m, h or d; none: no limit"}},
     .no_option = NO_LIMIT,
     .act = &VERB_KEY_LIMIT},
    {.noun = "kinds",
     .verb = "list",
     .words = "",
     .help = "List the kinds that workers have announced or that something is set for.\n\n"
             "workers: how many serve it now; announced: no, if none has said yet that it has it; "
             "set_by_hand: what kinds set has changed; kept: the rules of kinds retain.",
     .examples = "claimctl kinds list",
     .act = &VERB_KINDS},
    {.noun = "kinds",
     .verb = "show",
     ONE_WORD("NAME"),
     .help = "Show one kind: its settings, what kinds set has changed, what is kept.\n\n"
             "of_plugin: what its plugin says where something else was set.",
     .examples = "claimctl kinds show resize",
     .act = &VERB_KIND_SHOW},
    {.noun = "kinds",
     .verb = "pause",
     ONE_WORD("NAME"),
     .help = "Start no more jobs of a kind, in any queue; running jobs continue.\n\n"
             "Workers learn of it with their next heartbeat, within 2 s.",
     .examples = "claimctl kinds pause resize",
     .act = &VERB_KIND_PAUSE,
     .fixed = {"paused", "t"}},
    {.noun = "kinds",
     .verb = "resume",
     ONE_WORD("NAME"),
     .help = "Start the jobs of a paused kind again.",
     .examples = "claimctl kinds resume resize",
     .act = &VERB_KIND_PAUSE,
     .fixed = {"paused", "f"}},
    {.noun = "kinds",
     .verb = "limit",
     ONE_WORD("NAME"),
     .help =
         "Limit how many jobs of a kind run at a time, and start in a time.\n\n"
         "In all queues, also of jobs that are queued already. Jobs with two keys of their own are "
         "beyond it. RATE: 50/s, 100/m, 5/h or 1/d.",
     .examples = "claimctl kinds limit resize --running 4\n"
                 "claimctl kinds limit mail --rate 100/m\n"
                 "claimctl kinds limit resize --running none",
     .options = {{"running", "N", "1 to 1000, or none"},
                 {"rate", "RATE", "starts in a time, or none"}},
     .no_option = NO_LIMIT,
     .act = &VERB_KIND_LIMIT},
    {.noun = "kinds",
     .verb = "retain",
     .words = "NAME [DAYS|default]",
     .words_min = 1,
     .words_max = 2,
     .help = RETAIN_HELP,
     .examples = "claimctl kinds retain resize 2d --state completed\n"
                 "claimctl kinds retain invoice 365d\n"
                 "claimctl kinds retain invoice default",
     .options = {RETAIN_OPTION},
     .act = &VERB_KIND_RETAIN,
     .short_act = &VERB_KIND_RULES},
    {.noun = "kinds",
     .verb = "set",
     ONE_WORD("NAME"),
     .help = KIND_SET_HELP,
     .examples = "claimctl kinds set mail --timeout 5m --max-attempts 10\n"
                 "claimctl kinds set mail --timeout default\n"
                 "claimctl kinds set resize --keep-completed none",
     .options = {{"max-attempts", "N", "1 or more, or default"},
                 {"max-crashes", "N", "1 or more, or default"},
                 {"timeout", "TIME", "of one attempt, or default"},
                 {"grace", "TIME", "from being told to stop until being killed, or default"},
                 {"backoff", "FORM", "as of enqueue, or default"},
                 {"keep-log", "WHICH", "all, failed, or default"},
                 {"keep-completed", "DAYS", "none, 1d to 3650d, or default"}},
     .run = kinds_set},
    {.noun = "schedules",
     .verb = "list",
     .words = "",
     .help = "List schedules: when each is due, when it fired last, its last error.",
     .examples = "claimctl schedules list",
     .act = &VERB_SCHEDULES_LIST},
    {.noun = "schedules",
     .verb = "show",
     ONE_WORD("NAME"),
     .help = "Show one schedule, its next five ticks and what became of its last ten.",
     .examples = "claimctl schedules show nightly",
     .act = &VERB_SCHEDULE_SHOW},
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
                 "claimctl schedules set poll fetch 'every 90s' --overlap skip --missed none\n"
                 "claimctl schedules set sync sync @hourly --jitter 10m --unique sync",
     .options = {{"zone", "NAME", "time zone, such as Europe/Berlin; default UTC"},
                 {"args", "JSON|@FILE", "for the handler; default {}; @- reads standard input"},
                 {"queue", "NAME", "default: default"},
                 {"priority", "0-9", "0 is the highest; default 4"},
                 {"max-attempts", "N", "default: the kind's"},
                 {"timeout", "TIME", "of one attempt; default: the kind's"},
                 {"tag", "TEXT", "not empty; may be repeated"},
                 {"metadata", "JSON", "default: none"},
                 {"missed", "POLICY",
                  "ticks that are over a minute late: none, latest, all; "
                  "default latest"},
                 {"missed-window", "TIME", "leave out those that are older; default 1d"},
                 {"overlap", "POLICY", "while one of its jobs is open: run, skip; default run"},
                 {"jitter", "TIME", "a job becomes due up to this much after its tick; at most 1d"},
                 {"backoff", "FORM", "as of enqueue; default: the kind's"},
                 {"grace", "TIME", "from stop until being killed; default: the kind's"},
                 {"exclusive", "KEY", "only one job with this key runs at a time"},
                 {"second", "KEY", "a second exclusive key: they need a place of both"},
                 {"share", "KEY", "its tenant: jobs with different keys take turns"},
                 {"unique", "KEY", "skip a tick if a job with this key stands in the way"},
                 {"unique-by", "LIST", "a key made of kind, queue, args, args.NAME"},
                 {"unique-for", "TIME", "for this time, even if that job ends earlier"},
                 {"unique-states", "STATES", "queued, open, completed or all"},
                 {"on-conflict", "ACTION",
                  "what the skipped tick does with that job, if it waits: ignore (default), "
                  "replace_args, reschedule, replace"}},
     .run = schedules_set},
    {.noun = "schedules",
     .verb = "pause",
     ONE_WORD("NAME"),
     .help = "Pause a schedule: its ticks pass, and are not made up for.",
     .examples = "claimctl schedules pause nightly",
     .act = &VERB_SCHEDULE_PAUSE},
    {.noun = "schedules",
     .verb = "resume",
     ONE_WORD("NAME"),
     .help = "Resume a paused schedule; prints its next tick.",
     .examples = "claimctl schedules resume nightly",
     .act = &VERB_SCHEDULE_RESUME},
    {.noun = "schedules",
     .verb = "run",
     ONE_WORD("NAME"),
     .help = "Add a job of a schedule now, and print its id. Its ticks stay as they are.",
     .examples = "claimctl schedules run nightly",
     .act = &VERB_SCHEDULE_RUN},
    {.noun = "schedules",
     .verb = "delete",
     ONE_WORD("NAME"),
     .help = "Delete a schedule. Jobs that it has made stay.",
     .examples = "claimctl schedules delete nightly",
     .act = &VERB_SCHEDULE_DELETE},
    {.noun = "schedules",
     .verb = "next",
     ONE_WORD("NAME"),
     .help = "Show the next ticks of a schedule, in its zone as well.",
     .examples = "claimctl schedules next nightly --count 10",
     .options = {{"count", "N", "1 to 1000; default 5"}},
     .act = &VERB_SCHEDULE_NEXT},
    {.noun = "schedules",
     .verb = "apply",
     ONE_WORD("FILE|-"),
     .help =
         "Make the schedules those of a JSON file, all or none.\n\n"
         "{\"schedules\": [{\"name\": …, \"kind\": …, \"cron\": …}, …]}, and optionally "
         "\"zone\", \"args\", \"queue\", \"priority\", \"max_attempts\", \"timeout\", "
         "\"tags\", \"metadata\", \"missed\", \"missed_window\", \"overlap\", "
         "\"jitter\", \"backoff\", \"grace\", \"exclusive_key\", \"second_key\", \"share_key\", "
         "\"unique_key\", "
         "\"unique_by\" (an array), \"unique_for\", \"unique_states\", \"on_conflict\": as the "
         "options of schedules set. Unknown and duplicate keys are refused. Whether a schedule "
         "is paused stays as it is.",
     .examples = "claimctl schedules apply schedules.json --dry-run\n"
                 "claimctl schedules apply schedules.json --prune --yes",
     .options = {{"dry-run", NULL, "only show the difference"},
                 {"prune", NULL, "delete the schedules that the file does not have"},
                 {"yes", NULL, "with --prune: don't ask on a terminal"}},
     .run = schedules_apply},
    {.noun = "apply",
     ONE_WORD("FILE|-"),
     .help = APPLY_HELP,
     .examples = "claimctl apply claimd.json --dry-run\n"
                 "claimctl apply claimd.json --prune --yes",
     .options = {{"dry-run", NULL, "only show what would change"},
                 {"prune", NULL, "reset settings that the file does not have"},
                 {"yes", NULL, "with --prune: don't ask on a terminal"}},
     .run = apply},
};
const struct ctl_command_list ctl_queue_commands = {rows, ARRAY_COUNT(rows)};
