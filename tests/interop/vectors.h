/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads lock-vectors.json: what docs/lock-protocol.md says, as examples. */
#ifndef CLAIMD_TESTS_INTEROP_VECTORS_H
#define CLAIMD_TESTS_INTEROP_VECTORS_H

#include <check.h>
#include <jansson.h>
#include <stdint.h>

/* The whole file, to be released with json_decref(). */
static inline json_t *vectors_load(void)
{
    json_error_t error;
    json_t *vectors = json_load_file(LOCK_VECTORS, 0, &error);
    ck_assert_msg(vectors != NULL, "%s:%d: %s", LOCK_VECTORS, error.line, error.text);
    return vectors;
}

static inline json_t *vectors_get(const json_t *v, const char *name)
{
    json_t *found = json_object_get(v, name);
    ck_assert_msg(found != NULL, "a vector without \"%s\"", name);
    return found;
}

static inline int64_t vectors_i64(const json_t *v, const char *name)
{
    const json_t *found = vectors_get(v, name);
    ck_assert_msg(json_is_integer(found), "\"%s\" of a vector is no integer", name);
    return json_integer_value(found);
}

/* NULL for null. */
static inline const char *vectors_text(const json_t *v, const char *name)
{
    return json_string_value(vectors_get(v, name));
}

/* A list that is not empty. */
static inline const json_t *vectors_list(const json_t *v, const char *name)
{
    const json_t *list = vectors_get(v, name);
    ck_assert_uint_gt(json_array_size(list), 0);
    return list;
}

#endif
