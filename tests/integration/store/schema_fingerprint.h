/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLAIMD_TESTS_SCHEMA_FINGERPRINT_H
#define CLAIMD_TESTS_SCHEMA_FINGERPRINT_H

/* The whole schema as rows `line`: columns, constraints, indexes, functions, triggers,
 * privileges. */
#define SCHEMA_LINES                                                                               \
    "("                                                                                            \
    "SELECT table_name || column_name || data_type || is_nullable || coalesce(column_default, '')" \
    "  || is_identity || coalesce(generation_expression, '') AS line"                              \
    "  FROM information_schema.columns WHERE table_schema = 'claimd'"                              \
    " UNION ALL SELECT conrelid::regclass::text || conname::text || pg_get_constraintdef(oid)"     \
    "  FROM pg_constraint WHERE connamespace = 'claimd'::regnamespace"                             \
    " UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'claimd'"                       \
    " UNION ALL SELECT pg_get_functiondef(oid) || coalesce(proacl::text, '') FROM pg_proc"         \
    "  WHERE pronamespace = 'claimd'::regnamespace"                                                \
    " UNION ALL SELECT viewname || definition FROM pg_views WHERE schemaname = 'claimd'"           \
    " UNION ALL SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = "     \
    "tgrelid"                                                                                      \
    "  WHERE relnamespace = 'claimd'::regnamespace AND NOT tgisinternal"                           \
    " UNION ALL SELECT relname::text || relkind::text || relowner::regrole::text || "              \
    "coalesce(relacl::text, '')"                                                                   \
    "  || coalesce(reloptions::text, '') FROM pg_class"                                            \
    "  WHERE relnamespace = 'claimd'::regnamespace AND relkind <> 't'"                             \
    " UNION ALL SELECT attrelid::regclass::text || attname::text || attacl::text FROM "            \
    "pg_attribute"                                                                                 \
    "  JOIN pg_class c ON c.oid = attrelid WHERE relnamespace = 'claimd'::regnamespace"            \
    "  AND attacl IS NOT NULL AND NOT attisdropped) lines"

/* The same as one number. */
#define FINGERPRINT "SELECT md5(string_agg(line, E'\\n' ORDER BY line)) FROM " SCHEMA_LINES

#endif
