/* SPDX-License-Identifier: Apache-2.0
 *
 * The dump of the effective configuration as a file, and the schema of such files. */
#include "config/dump.h"
#include "support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>

#define OUT_MAX ((size_t)1 << 20)

static json_t *given_json(const char *format, const char *text)
{
    json_error_t where;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    ck_assert_msg(root != NULL, "%s: %s", format, where.text);
    return root;
}

static json_t *dumped(const struct config *c, bool *ret_is_masked)
{
    struct err err = {0};
    autobuf struct buf out = BUF_INIT(OUT_MAX);
    ck_assert_int_eq(config_dump(c, &out, ret_is_masked, &err), STATUS_OK);
    return given_json("dump", buf_at(&out));
}

static json_t *given_schema(void)
{
    struct err err = {0};
    autobuf struct buf out = BUF_INIT(OUT_MAX);
    ck_assert_int_eq(config_schema(&out, &err), STATUS_OK);
    return given_json("schema", buf_at(&out));
}

static json_t *source_file(const char *name, char *ret_text, size_t size)
{
    char path[1024];
    const char *source = getenv("CLAIMD_SOURCE_DIR");
    (void)snprintf(path, sizeof path, "%s/%s", source == NULL ? "." : source, name);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "no %s", path);
    ssize_t n = read(fd, ret_text, size - 1);
    ck_assert_int_ge(n, 0);
    ret_text[n] = '\0';
    return given_json(name, ret_text);
}

/* ---- a checker for the part of JSON Schema that the schema uses ---- */

static bool is_valid(const json_t *schema, const json_t *value);

static bool is_type(const json_t *schema, const json_t *value)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    return strcmp(type, "integer") == 0  ? json_is_integer(value)
           : strcmp(type, "number") == 0 ? json_is_number(value)
           : strcmp(type, "string") == 0 ? json_is_string(value)
           : strcmp(type, "array") == 0  ? json_is_array(value)
                                         : json_is_object(value);
}

static bool is_within(const json_t *schema, const char *low, const char *high, double n)
{
    const json_t *min = json_object_get(schema, low);
    const json_t *max = json_object_get(schema, high);
    return (min == NULL || n >= json_number_value(min)) &&
           (max == NULL || n <= json_number_value(max));
}

static bool is_chosen(const json_t *schema, const json_t *value)
{
    size_t i = 0;
    const json_t *item = NULL;
    const json_t *choices = json_object_get(schema, "enum");
    json_array_foreach(choices, i, item)
    {
        if (json_equal(item, value)) {
            return true;
        }
    }
    return choices == NULL;
}

static bool are_members_valid(const json_t *schema, const json_t *value)
{
    const char *key = NULL;
    json_t *member = NULL;
    const json_t *others = json_object_get(schema, "additionalProperties");
    ck_assert(json_is_false(others) || json_is_object(others));
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
    {
        const json_t *of = json_object_get(json_object_get(schema, "properties"), key);
        of = of == NULL ? others : of;
        if (!json_is_object(of) || !is_valid(of, member)) {
            return false;
        }
    }
    return true;
}

static bool are_items_valid(const json_t *schema, const json_t *value)
{
    size_t i = 0;
    const json_t *item = NULL;
    json_array_foreach(value, i, item)
    {
        if (!is_valid(json_object_get(schema, "items"), item)) {
            return false;
        }
    }
    return is_within(schema, "minItems", "maxItems", (double)json_array_size(value));
}

static bool is_valid(const json_t *schema, const json_t *value)
{
    if (!is_type(schema, value) || !is_chosen(schema, value)) {
        return false;
    }
    if (json_is_object(value)) {
        return are_members_valid(schema, value);
    }
    if (json_is_array(value)) {
        return are_items_valid(schema, value);
    }
    return json_is_string(value)
               ? is_within(schema, "minLength", "maxLength", (double)json_string_length(value))
               : is_within(schema, "minimum", "maximum", json_number_value(value));
}

/* ---- the schema ---- */

START_TEST(config_claimd_schema_json_is_what_the_table_says)
{
    static char text[OUT_MAX];
    struct err err = {0};
    autobuf struct buf wanted = BUF_INIT(OUT_MAX);
    ck_assert_int_eq(config_schema(&wanted, &err), STATUS_OK);
    json_auto_t *found = source_file("config/claimd.schema.json", text, sizeof text);
    ck_assert_msg(found != NULL && strcmp(text, buf_at(&wanted)) == 0,
                  "run: claimctl config schema > config/claimd.schema.json");
}
END_TEST

START_TEST(the_example_and_the_defaults_fit_the_schema)
{
    static char text[OUT_MAX];
    struct config c;
    struct err err = {0};
    bool is_masked = false;
    json_auto_t *schema = given_schema();
    ck_assert_str_eq(json_string_value(json_object_get(schema, "$schema")),
                     "https://json-schema.org/draft/2020-12/schema");
    json_auto_t *example = source_file("config/dev.json", text, sizeof text);
    ck_assert(is_valid(schema, example));
    ck_assert_int_eq(config_read(NULL, &c, &err), STATUS_OK);
    json_auto_t *defaults = dumped(&c, &is_masked);
    ck_assert(is_valid(schema, defaults));
}
END_TEST

static const char *const misfits[] = {
    "{\"nodes\": 5}",
    "{\"lock\": {\"ttl\": 5}}",
    "{\"lock\": 5}",
    "{\"lock\": {\"ttl_ms\": \"5\"}}",
    "{\"lock\": {\"ttl_ms\": 5}}",
    "{\"lock\": {\"ttl_ms\": 2000.5}}",
    "{\"lock\": {\"fresh_nodes\": \"yes\"}}",
    "{\"lock\": {\"nodes\": \"a:1\"}}",
    "{\"lock\": {\"nodes\": [1]}}",
    "{\"lock\": {\"nodes\": [\"\"]}}",
    "{\"worker\": {\"queues\": []}}",
    "{\"worker\": {\"slots\": null}}",
    "{\"time_scale\": 0}",
    "{\"redis\": {\"prefix\": \"\"}}",
};

START_TEST(what_is_refused_for_itself_does_not_fit_the_schema)
{
    json_auto_t *schema = given_schema();
    json_auto_t *value = given_json("misfit", misfits[_i]);
    ck_assert(!is_valid(schema, value));
}
END_TEST

/* ---- the dump ---- */

static void read_text(const char *text, struct config *ret)
{
    char path[96];
    (void)snprintf(path, sizeof path, "%s/dump-XXXXXX", suite_tmp());
    struct err err = {0};
    autoclose int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    enum status st = config_read(path, ret, &err);
    (void)unlink(path);
    ck_assert_msg(st == STATUS_OK, "%s", err.msg);
}

START_TEST(a_dump_has_the_effect_of_what_it_was_made_from)
{
    static struct config first;
    static struct config second;
    bool is_masked = false;
    ck_assert_int_eq(setenv("CLAIMD_WORKER_STATE_DIR", "here", 1), 0);
    read_text("{\"time_scale\": 0.333, \"lock\": {\"nodes\": [\"a:1\", \"b:1\"], \"fresh_nodes\":"
              " \"trust\", \"ttl_ms\": 20001}, \"worker\": {\"plugin_dir\": \"plugins\"}}",
              &first);
    json_auto_t *dump = dumped(&first, &is_masked);
    autofree char *text = json_dumps(dump, 0);
    ck_assert(!is_masked);
    ck_assert_int_eq(unsetenv("CLAIMD_WORKER_STATE_DIR"), 0);
    read_text(text, &second);
    json_auto_t *again = dumped(&second, &is_masked);
    ck_assert(json_equal(dump, again));
    ck_assert_int_eq(second.lock.ttl_us, 20001000);
    ck_assert(second.lock.trust_fresh);
    char plugins[96];
    (void)snprintf(plugins, sizeof plugins, "%s/plugins", suite_tmp());
    ck_assert_str_eq(second.worker.plugin_dir, plugins);
    ck_assert_int_eq(second.worker.state_dir[0], '/');
}
END_TEST

START_TEST(a_dump_says_where_each_value_came_from)
{
    struct config c;
    ck_assert_int_eq(setenv("CLAIMD_LOCK_TTL_MS", "9000", 1), 0);
    read_text("{\"lock\": {\"ttl_ms\": 8000, \"guard_ms\": 1500}}", &c);
    ck_assert_int_eq(c.origins[option_find("lock.ttl_ms") - config_options], CONFIG_ENVIRONMENT);
    ck_assert_int_eq(c.origins[option_find("lock.guard_ms") - config_options], CONFIG_FILE);
    ck_assert_int_eq(c.origins[option_find("lock.nodes") - config_options], CONFIG_DEFAULT);
}
END_TEST

START_TEST(a_dump_has_no_secret)
{
    char path[96];
    (void)snprintf(path, sizeof path, "%s/secret-XXXXXX", suite_tmp());
    char text[512];
    struct config c;
    bool is_masked = false;
    autoclose int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "canary\n", 7), 7);
    (void)snprintf(text, sizeof text,
                   "{\"redis\": {\"password_file\": \"%s\"}, \"lock\": {\"nodes\":"
                   " [\"redis://u:canary@h:1\"]}}",
                   path);
    read_text(text, &c);
    (void)unlink(path);
    ck_assert_str_eq(c.redis.password, "canary");
    json_auto_t *dump = dumped(&c, &is_masked);
    autofree char *shown = json_dumps(dump, 0);
    ck_assert(is_masked);
    ck_assert_ptr_null(strstr(shown, "canary"));
    ck_assert_ptr_nonnull(strstr(shown, "redis://u:***@h:1"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config_dump");
    TCase *tests = tcase_create("config_dump");
    tcase_add_test(tests, config_claimd_schema_json_is_what_the_table_says);
    tcase_add_test(tests, the_example_and_the_defaults_fit_the_schema);
    tcase_add_loop_test(tests, what_is_refused_for_itself_does_not_fit_the_schema, 0,
                        ARRAY_COUNT(misfits));
    tcase_add_test(tests, a_dump_has_the_effect_of_what_it_was_made_from);
    tcase_add_test(tests, a_dump_says_where_each_value_came_from);
    tcase_add_test(tests, a_dump_has_no_secret);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
