/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands for maps: rows of the table in commands.c. */
#include "ctl/commands/command_parts.h"
#include "ctl/core/ctl.h"

static const struct ctl_command rows[] = {
    {.noun = "map",
     .words = "[-- COMMAND...]",
     .words_max = 255,
     .help =
         "Run a command for each row of a query, each row completed once.\n\n"
         "claimctl map --sql 'TABLE asset' --concurrency 40 -- /srv/t.sh '{id}'\n\n"
         "The command must be one that workers allow (worker.commands), with {COLUMN} where the "
         "row's value goes. The rows are read in chunks by their key, and need no claimctl once "
         "they are loaded. The same call again runs what is new or has not completed.\n\n"
         "On a terminal, with --wait and with --into it follows the map to its end, and exits with "
         "1 if rows failed. Ctrl-C leaves it running; map attach follows it again.",
     .examples = "claimctl map --sql 'SELECT id FROM asset WHERE NOT done' --kind resize\n"
                 "claimctl map --sql 'TABLE asset' --into asset_result --kind resize\n"
                 "claimctl map --sql 'SELECT id FROM asset' --dry-run --kind resize",
     .options = {{"sql", "QUERY", "whose rows are mapped; it may not write"},
                 {"key", "COLUMN",
                  "unique, not null, with an index that sorts it; default: the first"},
                 {"batch", "NAME", "of the map; default: made of query and command"},
                 {"concurrency", "N", "1 to 1000 at a time on all workers; default: any"},
                 {"rate", "RATE", "starts in a time, such as 100/s; default: any"},
                 {"into", "TABLE",
                  "yours: key (unique), state, result jsonb, error, ended_at timestamptz"},
                 {"kind", "KIND", "in place of a command: the row is its args"},
                 {"queue", "NAME", "default: default"},
                 {"slow", NULL, "also without an index on the key"},
                 {"dry-run", NULL, "show the first three commands and the number of rows"},
                 {"wait", NULL, "until all rows have ended"},
                 {"quiet", NULL, "no progress on standard error"}},
     .run = map_run},
    {.noun = "map",
     .verb = "list",
     .words = "",
     .help = "List maps and how many of their rows have ended, newest first.",
     .examples = "claimctl map list",
     .act = &VERB_MAPS},
    {.noun = "map",
     .verb = "show",
     ONE_WORD("NAME"),
     .help = "Show a map; with --failed, the first hundred rows that did not complete.",
     .examples = "claimctl map show nightly\nclaimctl map show nightly --failed",
     .options = {{"failed", NULL, "rows that did not complete, with error and log"}},
     .run = map_show},
    {.noun = "map",
     .verb = "attach",
     ONE_WORD("NAME"),
     .help = "Load the rest of a map, if any, and follow it to its end.\n\n"
             "Exits with 1 if rows failed.",
     .examples = "claimctl map attach nightly",
     .options = {{"quiet", NULL, "no progress on standard error"}},
     .run = map_attach},
    {.noun = "map",
     .verb = "limit",
     ONE_WORD("NAME"),
     .help = "Change how much of a map may run at a time or start in a time.\n\n"
             "Takes effect at once; runs beyond a lower limit continue.",
     .examples = "claimctl map limit nightly --concurrency 80\n"
                 "claimctl map limit nightly --rate none",
     .options = {{"concurrency", "N", "1 to 1000 at a time on all workers; none: any"},
                 {"rate", "RATE", "starts in a time, such as 100/s; none: any"}},
     .act = &VERB_MAP_LIMIT,
     .no_option = "no limit is named: an option such as --concurrency"},
    {.noun = "map",
     .verb = "pause",
     ONE_WORD("NAME"),
     .help = "Start no more rows of a map; running jobs continue.",
     .examples = "claimctl map pause nightly",
     .act = &VERB_MAP_PAUSE,
     .fixed = {"paused", "t"}},
    {.noun = "map",
     .verb = "resume",
     ONE_WORD("NAME"),
     .help = "Go on with a paused map.",
     .examples = "claimctl map resume nightly",
     .act = &VERB_MAP_PAUSE,
     .fixed = {"paused", "f"}},
    {.noun = "map",
     .verb = "cancel",
     ONE_WORD("NAME"),
     .help = "Load no more of a map and cancel what is open of it.\n\n"
             "Rows that run are asked to end. The same map call continues with those that did not "
             "complete.",
     .examples = "claimctl map cancel nightly",
     .run = map_cancel},
    {.noun = "map",
     .verb = "retry",
     ONE_WORD("NAME"),
     .help = "Run the failed and cancelled rows of a map again, as they were read.",
     .examples = "claimctl map retry nightly --failed",
     .options = {{"failed", NULL, "all that did not complete"}},
     .run = map_retry},
    {.noun = "map",
     .verb = "results",
     ONE_WORD("NAME"),
     .help = "Print what became of the rows of a map, one JSON object per line.",
     .examples = "claimctl map results nightly\n"
                 "claimctl map results nightly --into asset_result",
     .options = {{"json-lines", NULL, "as without"},
                 {"into", "TABLE", "instead, put them into this table of yours, as map does"}},
     .run = map_results},
    {.noun = "map",
     .verb = "drop",
     ONE_WORD("NAME"),
     .help = "Forget a map without open rows, and its results.",
     .examples = "claimctl map drop nightly",
     .run = map_drop},
};
const struct ctl_command_list ctl_map_commands = {rows, ARRAY_COUNT(rows)};
