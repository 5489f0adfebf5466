/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts that several rows of the table of commands have in common. */
#ifndef CLAIMD_CTL_COMMAND_PARTS_H
#define CLAIMD_CTL_COMMAND_PARTS_H

#define MANY 1000
#define NO_LIMIT "no limit is named: an option such as --running"
#define ONE_WORD(name) .words = (name), .words_min = 1, .words_max = 1

/* Options that choose jobs, read by ctl/options/filter.c. */
#define FILTER_OPTIONS(standard)                                                            \
    {"state", "STATE", "only in these states; " standard},                                  \
        {"kind", "NAME", "only of these kinds"}, {"queue", "NAME", "only of these queues"}, \
        {"tag", "TEXT", "only with this tag; repeated: with all of them"},                  \
        {"metadata", "JSON", "only whose metadata contain this object"},                    \
        {"batch", "ID", "only of this batch"}, {"map", "NAME", "only of this map"},         \
        {"owner", "ROLE", "only of this role"},                                             \
        {"worker", "ID|HOST", "whose last attempt ran there"},                              \
        {"since", "TIME", "created (or ended) at this time or later"},                      \
        {"until", "TIME", "created (or ended) before this time"},                           \
        {"older-than", "AGE", "the same as --until with an age"},                           \
    {                                                                                       \
        "error", "TEXT", "whose last error contains this text"                              \
    }

/* Options of acts on all jobs that match, in ctl/commands/jobs/act_matches.c. */
#define BULK_OPTIONS                                                         \
    {"limit", "N", "at most N, the newest; default: all, up to 10 million"}, \
        {"dry-run", NULL, "only show how many jobs there are, and which"},   \
        {"yes", NULL, "don't ask on a terminal"},                            \
    {                                                                        \
        "quiet", NULL, "no progress on standard error"                       \
    }
#define BULK_HELP                                                                              \
    "\n\nOptions choose jobs as for jobs list. They are worked on 1000 at a time, the oldest " \
    "first. After an interruption the same command continues with the rest."

/* Used by ctl/commands/enqueue/enqueue.c. */
#define ENQUEUE_HELP                                                                     \
    "Add one job and print its id, or add a file of jobs (-: standard input).\n\n"       \
    "A file has one JSON object per line: {\"kind\": …} and, optionally, \"args\", "   \
    "\"queue\", \"priority\", \"delay\", \"at\" or \"scheduled_at\", \"max_attempts\", " \
    "\"timeout\", \"tags\", \"metadata\", \"backoff\"; slower: \"unique_key\", "         \
    "\"unique_by\", \"unique_for\", \"unique_states\", \"on_conflict\", "                \
    "\"exclusive_key\", \"second_key\", \"share_key\", \"after\" (ids), \"if_dead\", "   \
    "\"expires_at\", \"grace\".\n"                                                       \
    "If one line is bad, nothing is stored.\n"                                           \
    "TIME: 250ms, 10s, 5m, 2h, 1d; a number alone is seconds.\n"                         \
    "Warns on standard error if no live worker of the queue serves the kind."

#define RETAIN_HELP                                                                               \
    "Set or show how long finished jobs are kept.\n\n"                                            \
    "In whole days, 1d to 3650d; default: as long as scheduler.history_days says. A rule of the " \
    "kind comes before one of the queue. Without --state: all that have no rule of their own; "   \
    "default without --state removes all rules."
/* Used by ctl/commands/apply.c. */
#define APPLY_HELP                                                                                 \
    "Set what a JSON file says of queues, kinds, keys and schedules, all or none.\n\n"             \
    "{\"queues\": {NAME: {\"paused\", \"weight\", \"max_running\", \"rate\", \"max_open\", "       \
    "\"retain\"}}, \"kinds\": {NAME: {\"paused\", \"max_attempts\", \"max_crashes\", "             \
    "\"timeout\", \"grace\", \"backoff\", \"keep_log\", \"max_running\", \"rate\", \"retain\"}}, " \
    "\"keys\": {KEY: "                                                                             \
    "{\"max_running\", \"rate\"}}, \"schedules\": as schedules apply}\n"                           \
    "All of it is optional; what is left out stays, null takes it back. A kind may be one that "   \
    "no worker has announced yet. Prints a line for each change, or unchanged. --prune goes for "  \
    "the sections that the file has, and resumes nothing."

/* Used by ctl/commands/queues.c. */
#define KIND_SET_HELP                                                                            \
    "Set what jobs of a kind get that say nothing else, or if they are kept.\n\n"                \
    "In place of what its plugin says, until it is set to `default`. Workers hear of it within " \
    "10 s.\n"                                                                                    \
    "--keep-completed none: completed jobs are deleted as they end, and only counted, which is " \
    "cheaper; their result is lost. Failed and cancelled jobs are kept."
#define RETAIN_OPTION                                                                  \
    {                                                                                  \
        "state", "STATE", "only those that ended as completed, discarded or cancelled" \
    }

#endif
