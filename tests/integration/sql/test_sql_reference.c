/* SPDX-License-Identifier: Apache-2.0
 *
 * docs/guide/sql.md has each function that producers, operators and readers may call, as in the
 * catalog (name, parameters, types, result), and no other function. */
#include "base/buf.h"
#include "support/pg_fixture.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE_MAX ((size_t)1 << 20)
#define TYPE(oid) "replace(format_type(" oid ", NULL), 'timestamp with time zone', 'timestamptz')"
/* "#name" of each function, then its parameters, then its result. */
static const char parts[] =
    "WITH f AS (SELECT * FROM pg_proc p WHERE p.pronamespace = 'claimd'::regnamespace AND EXISTS "
    "(SELECT FROM unnest('{claimd_admin,claimd_producer,claimd_reader}'::text[]) r WHERE "
    "has_function_privilege(r, p.oid, 'EXECUTE'))), parts AS (SELECT proname, 0 AS n, '#' || "
    "proname AS part FROM f UNION ALL SELECT f.proname, a.n, a.name || ' ' || " TYPE(
        "a.type") " FROM f, unnest(f.proargnames, COALESCE(f.proallargtypes, "
                  "f.proargtypes::oid[])) WITH "
                  "ORDINALITY AS a(name, type, n) UNION ALL SELECT proname, 1000, '→ ' || CASE "
                  "WHEN proretset "
                  "THEN 'setof ' ELSE '' END || " TYPE(
                      "prorettype") " FROM f WHERE prorettype <> 'record'::regtype) SELECT ";

static struct sql *db;
static char page[PAGE_MAX]; /* each run of whitespace is one space */

static void setup(void)
{
    char path[512];
    size_t len = 0;
    world_setup();
    db = sql_open(world.conninfo);
    (void)snprintf(path, sizeof path, "%s/docs/guide/sql.md", getenv("CLAIMD_SOURCE_DIR"));
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    for (int c = fgetc(file); c != EOF && len < sizeof page - 1; c = fgetc(file)) {
        bool is_space = isspace(c) != 0;
        if (!is_space || (len > 0 && page[len - 1] != ' ')) {
            page[len++] = is_space ? ' ' : (char)c;
        }
    }
    page[len] = '\0';
    (void)fclose(file);
}

static void teardown(void)
{
    sql_close(db);
    world_teardown();
}

/* Returns the signature of a function, from its heading to the end of the block; NULL if it is
 * missing. */
static const char *find_section(const char *name, const char **ret_end)
{
    char heading[160];
    (void)snprintf(heading, sizeof heading, "### %.60s ``` %.60s(", name, name);
    const char *begin = strstr(page, heading);
    *ret_end = begin == NULL ? NULL : strstr(begin + strlen(heading), "``` ");
    return begin;
}

static size_t count_headings(void)
{
    size_t count = 0;
    for (const char *p = strstr(page, " ### "); p != NULL; p = strstr(p + 1, " ### ")) {
        count++;
    }
    return count;
}

START_TEST(the_reference_has_every_public_function_with_its_parameters_and_result)
{
    int64_t count = sql_number(db, "%scount(*)::text FROM parts", parts);
    const char *begin = NULL;
    const char *end = NULL;
    size_t functions = 0;
    for (int64_t i = 0; i < count; i++) {
        const char *part = sql_text(db, "%spart FROM parts ORDER BY proname, n OFFSET %lld LIMIT 1",
                                    parts, (long long)i);
        if (part[0] == '#') {
            functions++;
            begin = find_section(part + 1, &end);
            ck_assert_msg(begin != NULL && end != NULL, "docs/guide/sql.md lacks %s", part + 1);
            continue;
        }
        const char *found = begin == NULL ? NULL : strstr(begin, part);
        ck_assert_msg(found != NULL && found < end &&
                          isalnum((unsigned char)found[strlen(part)]) == 0,
                      "docs/guide/sql.md: '%s' is not in '%.60s…'", part, begin);
    }
    ck_assert_uint_gt(functions, 30);
    ck_assert_uint_eq(count_headings(), functions);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sql reference");
    TCase *tc = tcase_create("sql reference");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_reference_has_every_public_function_with_its_parameters_and_result);
    suite_add_tcase(s, tc);
    return world_run(s);
}
