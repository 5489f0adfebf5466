/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/options/job_check.h"

#include "base/clock.h"
#include "base/parse.h"
#include "model/job.h"

enum status job_refuse_json(const char *name, const json_error_t *where, struct err *err)
{
    enum json_error_code code = json_error_code(where);
    if (code == json_error_null_character || code == json_error_null_byte_in_key) {
        return err_fail(err, STATUS_INVALID, "%s\\u0000 is not allowed in a text (column %d)", name,
                        where->column);
    }
    if (code == json_error_numeric_overflow) {
        return err_fail(err, STATUS_INVALID, "%sa number is too large (column %d)", name,
                        where->column);
    }
    return err_fail(err, STATUS_INVALID, "%s%s%s (column %d)", name,
                    code == json_error_duplicate_key ? "" : "not JSON: ", where->text,
                    where->column);
}

enum status job_json_check(const char *name, const char *json, size_t len, struct err *err)
{
    if (len > JOB_ARGS_MAX) {
        return err_fail(err, STATUS_INVALID, "%s%zu bytes of JSON text; allowed: at most %zu", name,
                        len, JOB_ARGS_MAX);
    }
    json_error_t where;
    json_auto_t *value = json_loadb(json, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &where);
    return value == NULL ? job_refuse_json(name, &where, err) : STATUS_OK;
}

enum status job_args_check(const char *json, size_t len, struct err *err)
{
    return job_json_check("args: ", json, len, err);
}

enum status job_metadata_check(const char *json, size_t len, struct err *err)
{
    if (len > JOB_METADATA_MAX) {
        return err_fail(err, STATUS_INVALID,
                        "metadata: %zu bytes of JSON text; allowed: at most %zu", len,
                        JOB_METADATA_MAX);
    }
    json_error_t where;
    json_auto_t *value = json_loadb(json, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &where);
    if (value == NULL) {
        return job_refuse_json("metadata: ", &where, err);
    }
    if (!json_is_object(value)) {
        return err_fail(err, STATUS_INVALID, "metadata: allowed: a JSON object");
    }
    return STATUS_OK;
}

bool job_tags_are_allowed(const json_t *tags)
{
    for (size_t i = 0; i < json_array_size(tags); i++) {
        if (json_string_length(json_array_get(tags, i)) == 0) { /* or it is not a text */
            return false;
        }
    }
    return json_is_array(tags);
}

enum status job_duration_check(const char *name, const char *text, int64_t min_us, int64_t max_us,
                               int64_t *ret_us, struct err *err)
{
    enum status st = parse_duration_us(text, ret_us, err);
    if (st == STATUS_OK && (*ret_us < min_us || *ret_us > max_us)) {
        st = err_fail(err, STATUS_INVALID, "'%.40s' is not allowed; allowed: %s to %lld day%s",
                      text, min_us == 0 ? "0" : "1ms", (long long)(max_us / (86400 * US_PER_S)),
                      max_us == 86400 * US_PER_S ? "" : "s");
    }
    if (st != STATUS_OK) {
        err_prefix(err, "%s", name);
    }
    return st;
}
