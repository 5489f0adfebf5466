/* SPDX-License-Identifier: Apache-2.0
 *
 * The SQL of claimd as data, which cmake/EmbedSql.cmake embeds at build time from sql/queries,
 * sql/migrations and sql/functions. Each query file becomes a `const struct pg_statement
 * SQL_<FILE NAME>` in the generated "sql/queries.h". Its header lists the types of $1, $2, … in
 * order, as in `-- params: int8[], uuid, text`; for verbs, each type follows the parameter's name
 * (verbs/verb.h). Nothing here needs libpq. */
#ifndef CLAIMD_SQL_STATEMENT_H
#define CLAIMD_SQL_STATEMENT_H

/* A statement, prepared once per session under its name. `types`: one OID per parameter. */
struct pg_statement {
    const char *name;
    const char *sql;
    const unsigned *types;
    int type_count;
};

/* OIDs of src/include/catalog/pg_type.dat, which never change. */
#define PG_BOOL 16U
#define PG_INT8 20U
#define PG_INT2 21U
#define PG_INT4 23U
#define PG_TEXT 25U
#define PG_TID 27U
#define PG_FLOAT8 701U
#define PG_TIMESTAMPTZ 1184U
#define PG_INTERVAL 1186U
#define PG_UUID 2950U
#define PG_JSONB 3802U
#define PG_INT2_ARRAY 1005U
#define PG_INT4_ARRAY 1007U
#define PG_TEXT_ARRAY 1009U
#define PG_TID_ARRAY 1010U
#define PG_INT8_ARRAY 1016U

/* Versions are 1, 2, 3… without gaps, so a version is at sql_migrations[version - 1]. */
struct sql_migration {
    int version;
    const char *name; /* "0001_jobs" */
    const char *up;
    const char *down;
};

/* A file of sql/functions or sql/views. */
struct sql_functions {
    const char *name;   /* "functions/enqueue" */
    const char *names;  /* its functions, as text[]: "{enqueue,enqueue_many}" */
    const char *digest; /* SHA-256 of its text, 64 hex digits */
    const char *sql;
};

#endif
