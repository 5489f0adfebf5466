/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of routes. Requests are matched against it, and openapi.json is made from it. */
#include "ctl/commands/doctor/doctor.h"
#include "web/jobs.h"

#define FIELDS(list) .fields = (list), .field_count = ARRAY_COUNT(list)
#define SHAPES(list) .shapes = (list), .shape_count = ARRAY_COUNT(list)
#define COLUMNS(list) .columns = (list), .column_count = ARRAY_COUNT(list)
#define READ .method = "GET", .role = WEB_READER
#define ACT .method = "POST", .role = WEB_OPERATOR

/* ---- session ---- */

static const struct table_column session_columns[] = {
    {"mode", CELL_TEXT},    {"role", CELL_TEXT},    {"who", CELL_TEXT},
    {"login", CELL_BOOL},   {"by", CELL_TEXT},      {"shows_args", CELL_BOOL},
    {"can_act", CELL_BOOL}, {"cluster", CELL_TEXT}, {"colour", CELL_TEXT},
    {"version", CELL_TEXT}, {"now", CELL_TEXT}};
static const struct web_shape session_shapes[] = {
    {"session", COLUMNS(session_columns), .is_record = true}};
static const struct web_field login_fields[] = {{"token", "string", "a token of web.tokens_file"}};

/* ---- series ---- */

static const struct table_column series_columns[] = {
    {"at", CELL_TEXT},          {"completed", CELL_NUMBER},  {"discarded", CELL_NUMBER},
    {"cancelled", CELL_NUMBER}, {"wait_p95_s", CELL_NUMBER}, {"run_p95_s", CELL_NUMBER},
    {"estimated", CELL_BOOL}};
static const struct table_column period_columns[] = {{"seconds", CELL_NUMBER},
                                                     {"step_s", CELL_NUMBER}};
static const struct web_shape series_shapes[] = {
    {"series", COLUMNS(series_columns)}, {"period", COLUMNS(period_columns), .is_record = true}};
static const struct web_field series_fields[] = {{"period", "string", "15m (default), 1h or 24h"}};

/* ---- doctor ---- */

static const struct web_shape doctor_shapes[] = {
    {"checks", .columns = report_columns, .column_count = REPORT_COLUMNS}};

static const struct web_shape nodes_shapes[] = {{"lock_nodes", COLUMNS(lock_node_columns)}};

/* ---- jobs ---- */

static const struct web_field jobs_fields[] = {
    {"state", "list",
     "waiting, scheduled, retryable, available, running, completed, cancelled, discarded"},
    {"kind", "list", "kinds"},
    {"queue", "list", "queues"},
    {"tag", "list", "tags; a job must have all of them"},
    {"worker", "string", "id or host of a worker"},
    {"since", "string", "an age such as 2h, or a time such as 2026-01-31T08:00:00Z"},
    {"until", "string", "as since"},
    {"older-than", "string", "an age such as 2h"},
    {"error", "string", "a text within the error"},
    {"metadata", "string", "a JSON object that the job's metadata contains"},
    {"batch", "integer", "id of a batch"},
    {"owner", "string", "role that owns the job"},
    {"map", "string", "name of a map"},
    {"q", "string",
     "a text within the args, as PostgreSQL writes them; reads the newest 10,000 jobs that the "
     "other parameters choose"},
    {"limit", "integer", "1 to 500; default 50"},
    {"after", "integer", "goes on behind this id: next_after of the page before"},
    {"columns", "string", "of the answer, separated by commas"}};
static const struct table_column job_columns[] = {
    {"id", CELL_NUMBER},         {"kind", CELL_TEXT},       {"queue", CELL_TEXT},
    {"state", CELL_TEXT},        {"priority", CELL_NUMBER}, {"attempt", CELL_NUMBER},
    {"created_at", CELL_TIME},   {"ready_at", CELL_TIME},   {"attempted_at", CELL_TIME},
    {"finalized_at", CELL_TIME}, {"worker", CELL_TEXT},     {"worker_id", CELL_TEXT},
    {"tags", CELL_TEXT},         {"args", CELL_JSON},       {"metadata", CELL_JSON},
    {"result", CELL_JSON},       {"error", CELL_TEXT},      {"progress", CELL_TEXT},
    {"owner", CELL_TEXT}};
static const struct web_shape jobs_shapes[] = {
    {"jobs", COLUMNS(job_columns), .is_partial = true},
    {"page", COLUMNS(jobs_page_columns), .is_record = true}};

static const struct table_column acted_columns[] = {{"id", CELL_NUMBER}, {"state", CELL_TEXT}};
static const struct web_shape acted_shapes[] = {{"job", COLUMNS(acted_columns), .is_record = true}};
static const struct web_field retry_fields[] = {
    {"even_completed", "boolean", "also if the job is completed"}};

static const struct table_column enqueued_columns[] = {{"id", CELL_NUMBER},
                                                       {"inserted", CELL_BOOL}};
static const struct web_shape enqueued_shapes[] = {
    {"job", COLUMNS(enqueued_columns), .is_record = true}};
static const struct web_field many_fields[] = {
    {"jobs", "array", "1 to 1000 objects, as claimd.enqueue_many() takes them; all or none"}};
static const struct table_column many_columns[] = {{"jobs", CELL_NUMBER}};
static const struct web_shape many_shapes[] = {
    {"enqueued", COLUMNS(many_columns), .is_record = true}};

/* ---- many jobs ---- */

static const struct web_field bulk_fields[] = {
    {"act", "string", "retry, cancel or delete"},
    {"ids", "array", "1 to 1000 ids"},
    {"filter", "object", "in place of ids: as the query of GET /api/v1/jobs"},
    {"dry_run", "boolean", "only count and show what the filter chooses"},
    {"limit", "integer", "1 to 10000 jobs that the filter chooses; default 10000"}};
static const struct table_column bulk_columns[] = {{"id", CELL_NUMBER},
                                                   {"kind", CELL_TEXT},
                                                   {"queue", CELL_TEXT},
                                                   {"state", CELL_TEXT},
                                                   {"error", CELL_TEXT}};
static const struct table_column failed_columns[] = {{"id", CELL_NUMBER}, {"error", CELL_TEXT}};
static const struct table_column summary_columns[] = {{"matched", CELL_NUMBER},
                                                      {"done", CELL_NUMBER},
                                                      {"failed", CELL_NUMBER},
                                                      {"is_dry_run", CELL_BOOL},
                                                      {"is_cut", CELL_BOOL}};
static const struct web_shape bulk_shapes[] = {
    {"jobs", COLUMNS(bulk_columns), .is_optional = true, .is_partial = true},
    {"failed", COLUMNS(failed_columns), .is_optional = true},
    {"summary", COLUMNS(summary_columns), .is_record = true, .is_optional = true}};

/* ---- audit ---- */

static const struct table_column before_columns[] = {{"next_before", CELL_NUMBER}};
#define AUDIT_SHAPES 1

static const struct web_shape audit_page[AUDIT_SHAPES] = {
    {"page", COLUMNS(before_columns), .is_record = true}};

/* ---- the table ---- */

const struct web_route web_routes[] = {
    {.method = "GET",
     .path = "/api/v1/session",
     .what = "Who asks, and what this server allows.",
     .role = WEB_NOBODY,
     .run = web_session,
     SHAPES(session_shapes)},
    {.method = "POST",
     .path = "/api/v1/login",
     .what = "Begins a session of a browser.",
     .role = WEB_NOBODY,
     .run = web_login,
     FIELDS(login_fields),
     SHAPES(session_shapes)},
    {.method = "POST",
     .path = "/api/v1/logout",
     .what = "Ends the session.",
     .role = WEB_NOBODY,
     .run = web_logout,
     SHAPES(session_shapes)},
    {READ, .path = "/api/v1/openapi.json", .what = "This description.", .run = web_openapi,
     .is_unlisted = true},
    {READ, .path = "/api/v1/events", .what = "A stream of server-sent events: counters, changed.",
     .run = web_events, .is_unlisted = true},

    {READ, .path = "/api/v1/overview",
     .what = "Queues, workers, ends of the last minutes, trouble.", .verb = &VERB_HEALTH,
     .make = web_make_verb},
    {READ, .path = "/api/v1/series",
     .what = "What ended in each of the last minutes, since this server started.",
     .run = web_series, FIELDS(series_fields), SHAPES(series_shapes)},
    {READ, .path = "/api/v1/stats", .what = "Jobs by queue and state, and those that ended lately.",
     .verb = &VERB_STATS, .make = web_make_verb},
    {READ, .path = "/api/v1/doctor", .what = "Checks of servers, versions, policies and clocks.",
     SHAPES(doctor_shapes), .make = web_make_doctor},
    {READ, .path = "/api/v1/lock-nodes",
     .what =
         "Whether each lock node votes, how fast it answers, and its clock against this host's.",
     SHAPES(nodes_shapes), .make = web_make_nodes},
    {READ, .path = "/api/v1/cluster", .what = "Schema, sizes, schedulers and workers.",
     .verb = &VERB_CLUSTER, .make = web_make_verb},
    {READ, .path = "/api/v1/queues", .what = "All queues.", .verb = &VERB_QUEUES,
     .make = web_make_verb},
    {READ, .path = "/api/v1/queues/{name}", .what = "One queue.", .verb = &VERB_QUEUE_SHOW,
     .run = web_queue_show},
    {ACT, .path = "/api/v1/queues/{name}/pause", .what = "Pauses a queue.",
     .verb = &VERB_QUEUE_PAUSE, .fixed = {"paused", "t"}},
    {ACT, .path = "/api/v1/queues/{name}/resume", .what = "Resumes a queue.",
     .verb = &VERB_QUEUE_PAUSE, .fixed = {"paused", "f"}},
    {ACT, .path = "/api/v1/queues/{name}/limit", .what = "Sets limits; none removes one.",
     .verb = &VERB_QUEUE_LIMIT},
    {ACT, .path = "/api/v1/queues/{name}/weight", .what = "Sets its share of the workers.",
     .verb = &VERB_QUEUE_WEIGHT},

    {READ, .path = "/api/v1/jobs", .what = "Jobs that a filter chooses, the newest first.",
     .run = web_jobs_list, FIELDS(jobs_fields), SHAPES(jobs_shapes)},
    {ACT, .path = "/api/v1/jobs", .what = "Adds a job.", .verb = &VERB_ENQUEUE_UNIQUE,
     .run = web_enqueue, .takes_key = true, SHAPES(enqueued_shapes)},
    {ACT, .path = "/api/v1/jobs/many", .what = "Adds jobs, all or none.", .run = web_enqueue_many,
     .takes_key = true, FIELDS(many_fields), SHAPES(many_shapes)},
    {ACT, .path = "/api/v1/jobs/bulk", .what = "Acts on many jobs, each for itself.",
     .run = web_bulk, FIELDS(bulk_fields), SHAPES(bulk_shapes)},
    {READ, .path = "/api/v1/jobs/{id}", .what = "All that is known about a job.",
     .verb = &VERB_JOB_SHOW, .run = web_job_show},
    {.method = "PATCH",
     .role = WEB_OPERATOR,
     .path = "/api/v1/jobs/{id}",
     .what = "Edits a job of the version in If-Match.",
     .verb = &VERB_EDIT,
     .run = web_job_edit,
     .not_asked = "ids,expect,all"},
    {.method = "DELETE",
     .role = WEB_OPERATOR,
     .path = "/api/v1/jobs/{id}",
     .what = "Deletes a finished job.",
     .run = web_job_act,
     SHAPES(acted_shapes)},
    {ACT, .path = "/api/v1/jobs/{id}/retry", .what = "Retries a job, or makes it due.",
     .run = web_job_act, FIELDS(retry_fields), SHAPES(acted_shapes)},
    {ACT, .path = "/api/v1/jobs/{id}/cancel", .what = "Cancels a job.", .run = web_job_act,
     SHAPES(acted_shapes)},

    {READ, .path = "/api/v1/kinds", .what = "All kinds.", .verb = &VERB_KINDS,
     .make = web_make_verb},
    {READ, .path = "/api/v1/kinds/{name}", .what = "One kind.", .verb = &VERB_KIND_SHOW},
    {ACT, .path = "/api/v1/kinds/{name}/pause", .what = "Pauses a kind.", .verb = &VERB_KIND_PAUSE,
     .fixed = {"paused", "t"}},
    {ACT, .path = "/api/v1/kinds/{name}/resume", .what = "Resumes a kind.",
     .verb = &VERB_KIND_PAUSE, .fixed = {"paused", "f"}},

    {READ, .path = "/api/v1/workers", .what = "Workers.", .verb = &VERB_WORKERS},
    {ACT, .path = "/api/v1/workers/{worker}/quiet", .what = "Asks workers to take no new jobs.",
     .verb = &VERB_WORKER_ASK, .fixed = {"what", "be quiet"}},
    {ACT, .path = "/api/v1/workers/{worker}/resume", .what = "Asks workers to take jobs again.",
     .verb = &VERB_WORKER_ASK, .fixed = {"what", "resume"}},
    {ACT, .path = "/api/v1/workers/{worker}/drain", .what = "Asks workers to end.",
     .verb = &VERB_WORKER_ASK, .fixed = {"what", "drain"}},

    {READ, .path = "/api/v1/schedules", .what = "All schedules.", .verb = &VERB_SCHEDULES_LIST},
    {READ, .path = "/api/v1/schedules/{name}", .what = "One schedule.", .verb = &VERB_SCHEDULE_SHOW,
     .not_asked = "count"},
    {READ, .path = "/api/v1/schedules/{name}/next", .what = "Its next ticks.",
     .verb = &VERB_SCHEDULE_NEXT},
    {ACT, .path = "/api/v1/schedules/{name}/pause", .what = "Pauses a schedule.",
     .verb = &VERB_SCHEDULE_PAUSE},
    {ACT, .path = "/api/v1/schedules/{name}/resume", .what = "Resumes a schedule.",
     .verb = &VERB_SCHEDULE_RESUME},
    {ACT, .path = "/api/v1/schedules/{name}/run", .what = "Adds a job of a schedule now.",
     .verb = &VERB_SCHEDULE_RUN},

    {READ, .path = "/api/v1/batches", .what = "The newest 100 batches.", .verb = &VERB_BATCHES,
     .not_asked = "batch"},
    {READ, .path = "/api/v1/batches/{batch}", .what = "One batch.", .verb = &VERB_BATCH_JOBS},
    {READ, .path = "/api/v1/maps", .what = "All maps.", .verb = &VERB_MAPS},
    {READ, .path = "/api/v1/maps/{name}", .what = "One map.", .verb = &VERB_MAP_SHOW},
    {READ, .path = "/api/v1/keys", .what = "Keys that have a limit or are held.",
     .verb = &VERB_KEYS, .not_asked = "key"},
    {READ, .path = "/api/v1/keys/{key}", .what = "One key.", .verb = &VERB_KEY_JOBS},
    {ACT, .path = "/api/v1/keys/{key}/limit",
     .what = "Sets limits of a key, or of all keys of a pattern; none removes one.",
     .verb = &VERB_KEY_LIMIT},

    {.method = "GET",
     .role = WEB_OPERATOR,
     .path = "/api/v1/audit",
     .what = "What was done through this server, the newest first.",
     .verb = &VERB_AUDIT,
     .run = web_audit_list,
     .shapes = audit_page,
     .shape_count = AUDIT_SHAPES},
};
const size_t web_route_count = ARRAY_COUNT(web_routes);

const struct web_route *web_route_of(const struct verb *verb)
{
    size_t i = 0;
    while (web_routes[i].verb != verb || web_routes[i].make == NULL) {
        i++;
    }
    return &web_routes[i];
}
