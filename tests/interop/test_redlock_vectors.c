/* SPDX-License-Identifier: Apache-2.0
 *
 * docs/lock-protocol.md and its vectors say what the code does: the scripts, and all that can be
 * said without a server. */
#include "base/clock.h"
#include "base/rand.h"
#include "redlock/core/scripts.h"
#include "redlock/rules/lease.h"
#include "redlock/rules/line_rules.h"
#include "redlock/rules/token.h"
#include "support/suite.h"
#include "vectors.h"

#include <stdio.h>
#include <string.h>

#define PAGE_MAX 65536

static json_t *vectors;

static void setup(void)
{
    vectors = vectors_load();
}

static void teardown(void)
{
    json_decref(vectors);
}

/* ---- scripts: the page lays them out in fewer lines ---- */

/* Without what follows the last word, and with one space between two words. */
static size_t squeeze(const char *text, size_t len, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < len; i++) {
        bool is_space = text[i] == ' ' || text[i] == '\n';
        ck_assert_uint_lt(used + 1, size);
        if (!is_space) {
            out[used++] = text[i];
        } else if (used > 0 && out[used - 1] != ' ') {
            out[used++] = ' ';
        }
    }
    used -= used > 0 && out[used - 1] == ' ';
    out[used] = '\0';
    return used;
}

static void read_page(char *page)
{
    FILE *f = fopen(LOCK_PAGE, "re");
    ck_assert_msg(f != NULL, "there is no %s", LOCK_PAGE);
    size_t len = fread(page, 1, PAGE_MAX - 1, f);
    ck_assert_uint_lt(len, PAGE_MAX - 1);
    page[len] = '\0';
    (void)fclose(f);
}

/* The block that begins with the line "-- NAME: …", without that line; it is appended to `out`. */
static size_t append_block(const char *page, const char *name, char *out, size_t size)
{
    char first[64];
    (void)snprintf(first, sizeof first, "```lua\n-- %s:", name);
    const char *start = strstr(page, first);
    ck_assert_msg(start != NULL, "the page has no script %s", name);
    ck_assert_msg(strstr(start + 1, first) == NULL, "the page has the script %s twice", name);
    start = strchr(start + strlen("```lua\n"), '\n');
    const char *end = start != NULL ? strstr(start, "```") : NULL;
    ck_assert_ptr_nonnull(end);
    return squeeze(start, (size_t)(end - start), out, size);
}

START_TEST(C9_the_page_has_every_script_as_the_code_has_it)
{
    static char page[PAGE_MAX];
    static char code[PAGE_MAX];
    static char told[PAGE_MAX];
    read_page(page);
    for (size_t i = 0; i < SCRIPTS_COUNT; i++) {
        const struct redis_script *s = scripts_all[i];
        size_t used = 0;
        if (s == &script_free_prefix) { /* claimd's workers', for those before them */
            continue;
        }
        if (i >= SCRIPTS_WITHOUT_LINES) {
            used = append_block(page, "lines", told, sizeof told);
            told[used++] = ' ';
        }
        (void)append_block(page, s->name, told + used, sizeof told - used);
        (void)squeeze(s->body, strlen(s->body), code, sizeof code);
        size_t same = 0;
        while (code[same] != '\0' && told[same] == code[same]) {
            same++;
        }
        ck_assert_msg(told[same] == code[same],
                      "the script %s: the page goes on with \"%.60s\", the code with \"%.60s\"",
                      s->name, told + same, code + same);
    }
}
END_TEST

/* ---- tokens ---- */

static unsigned char random_bytes[32];
static size_t random_len;

/* In place of the kernel's, by the linker. */
enum status __wrap_rand_bytes(void *ret, size_t len, struct err *err); /* NOLINT(*-identifier*) */
enum status __wrap_rand_bytes(void *ret, size_t len, struct err *err)
{
    (void)err;
    ck_assert_uint_eq(len, random_len);
    memcpy(ret, random_bytes, len);
    return STATUS_OK;
}

static void set_random(const char *hex)
{
    random_len = strlen(hex) / 2;
    ck_assert_uint_le(random_len, sizeof random_bytes);
    for (size_t i = 0; i < random_len; i++) {
        const char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        random_bytes[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
}

START_TEST(K1_random_bytes_become_tokens)
{
    static const char client[] = "clientclient";
    const json_t *v = NULL;
    const json_t *list = vectors_list(vectors_get(vectors, "tokens"), "drawn");
    for (size_t n = 0; (v = json_array_get(list, n)) != NULL; n++) {
        char prefix[REDLOCK_PREFIX_LEN + 1];
        char token[REDLOCK_TOKEN_LEN + 1];
        set_random(vectors_text(v, "bytes"));
        if (strlen(vectors_text(v, "text")) == REDLOCK_PREFIX_LEN) {
            ck_assert_int_eq(token_draw_prefix(prefix, NULL), STATUS_OK);
            ck_assert_str_eq(prefix, vectors_text(v, "text"));
        } else {
            ck_assert_int_eq(token_draw(client, token, NULL), STATUS_OK);
            ck_assert_int_eq(memcmp(token, client, REDLOCK_PREFIX_LEN), 0);
            ck_assert_str_eq(token + REDLOCK_PREFIX_LEN, vectors_text(v, "text"));
        }
    }
}
END_TEST

START_TEST(L1_scores_are_written_and_read)
{
    const json_t *tokens = vectors_get(vectors, "tokens");
    const json_t *v = NULL;
    const json_t *list = vectors_list(tokens, "scored");
    for (size_t n = 0; (v = json_array_get(list, n)) != NULL; n++) {
        char token[REDLOCK_TOKEN_LEN + 1];
        const char *wanted = vectors_text(v, "token");
        (void)snprintf(token, sizeof token, "%s..........%s", vectors_text(v, "client"),
                       vectors_text(v, "rest"));
        line_write_score(token, vectors_i64(v, "score"));
        ck_assert_str_eq(token, wanted);
        ck_assert_int_eq(line_read_score(wanted, strlen(wanted)), vectors_i64(v, "score"));
    }
    list = vectors_list(tokens, "read");
    for (size_t n = 0; (v = json_array_get(list, n)) != NULL; n++) {
        const char *value = vectors_text(v, "value");
        ck_assert_int_eq(line_read_score(value, strlen(value)), vectors_i64(v, "score"));
    }
}
END_TEST

/* Of two that have one vote each, the later one yields. */
START_TEST(L1_L5_tokens_have_one_order)
{
    const json_t *tokens = vectors_list(vectors_get(vectors, "tokens"), "in_order");
    size_t count = json_array_size(tokens);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++) {
            const char *me = json_string_value(json_array_get(tokens, i));
            const char *other = json_string_value(json_array_get(tokens, k));
            struct line_view views[3] = {{.owner = LINE_MINE},
                                         {.owner = LINE_WAITER, .len = REDLOCK_TOKEN_LEN}};
            memcpy(views[1].value, other, REDLOCK_TOKEN_LEN);
            struct line_decision d = line_decide(views, ARRAY_COUNT(views), me, false);
            ck_assert_int_eq(d.step, k < i ? LINE_YIELD : LINE_LOOK);
        }
    }
}
END_TEST

/* ---- arithmetic ---- */

START_TEST(N8_fingerprints)
{
    const json_t *v = NULL;
    const json_t *list = vectors_list(vectors, "fingerprints");
    for (size_t n = 0; (v = json_array_get(list, n)) != NULL; n++) {
        const json_t *urls = vectors_get(v, "nodes");
        char nodes[1024];
        size_t len = 0;
        char text[REDLOCK_FINGERPRINT_SIZE];
        for (size_t i = 0; i < json_array_size(urls) && len < sizeof nodes; i++) {
            len += (size_t)snprintf(nodes + len, sizeof nodes - len, "%s%s", i > 0 ? "," : "",
                                    json_string_value(json_array_get(urls, i)));
        }
        ck_assert_int_eq(redlock_fingerprint(nodes, text, NULL), REDLOCK_OK);
        ck_assert_str_eq(text, vectors_text(v, "fingerprint"));
    }
}
END_TEST

START_TEST(A4_E9_deadlines_and_ttls)
{
    const json_t *v = NULL;
    const json_t *list = vectors_list(vectors, "drifts");
    for (size_t n = 0; (v = json_array_get(list, n)) != NULL; n++) {
        ck_assert_int_eq(lease_drift_us(vectors_i64(v, "ttl_us"), (int)vectors_i64(v, "ppm")),
                         vectors_i64(v, "drift_us"));
    }
    list = vectors_list(vectors, "leases");
    for (size_t n = 0; (v = json_array_get(list, n)) != NULL; n++) {
        const struct lease_terms terms = {.ttl_us = vectors_i64(v, "ttl_us"),
                                          .drift_us = vectors_i64(v, "drift_us"),
                                          .end_us = vectors_i64(v, "end_us")};
        int64_t t0_us = vectors_i64(v, "t0_us");
        ck_assert_int_eq(lease_start(&terms, t0_us).deadline_us, vectors_i64(v, "deadline_us"));
        ck_assert_int_eq(lease_ttl_us(&terms, t0_us) / US_PER_MS, vectors_i64(v, "px_ms"));
    }
}
END_TEST

START_TEST(A7_A9_A15_verdicts)
{
    static const char *const names[REDLOCK_RESULTS] = {[REDLOCK_OK] = "OK",
                                                       [REDLOCK_HELD] = "HELD",
                                                       [REDLOCK_SPLIT] = "SPLIT",
                                                       [REDLOCK_NO_QUORUM] = "NO_QUORUM",
                                                       [REDLOCK_LOST] = "LOST"};
    const json_t *v = NULL;
    const json_t *list = vectors_list(vectors, "verdicts");
    for (size_t n = 0; (v = json_array_get(list, n)) != NULL; n++) {
        const struct tally tally = {.nodes = (uint8_t)vectors_i64(v, "nodes"),
                                    .ok = (uint8_t)vectors_i64(v, "ok"),
                                    .refused = (uint8_t)vectors_i64(v, "refused"),
                                    .error = (uint8_t)vectors_i64(v, "error")};
        const char *wanted = vectors_text(v, "verdict");
        enum redlock_result verdict = REDLOCK_INVALID;
        ck_assert_int_eq(tally_verdict(&tally, vectors_i64(v, "validity_us"),
                                       vectors_i64(v, "min_validity_us"), &verdict),
                         wanted != NULL);
        ck_assert_str_eq(wanted != NULL ? names[verdict] : "", wanted != NULL ? wanted : "");
    }
}
END_TEST

START_TEST(E2_E3_E5_extensions)
{
    static const char *const names[] = {[EXTEND_OPEN] = "OPEN",
                                        [EXTEND_DONE] = "DONE",
                                        [EXTEND_DENIED] = "DENIED",
                                        [EXTEND_UNSURE] = "UNSURE"};
    const json_t *v = NULL;
    const json_t *list = vectors_list(vectors, "extensions");
    for (size_t n = 0; (v = json_array_get(list, n)) != NULL; n++) {
        const struct extend_tally tally = {.nodes = (uint8_t)vectors_i64(v, "nodes"),
                                           .confirmed = (uint8_t)vectors_i64(v, "confirmed"),
                                           .denied = (uint8_t)vectors_i64(v, "denied"),
                                           .error = (uint8_t)vectors_i64(v, "error")};
        ck_assert_str_eq(names[extend_tally_verdict(&tally)], vectors_text(v, "verdict"));
    }
}
END_TEST

/* ---- lines ---- */

static struct line_view view_of(const char *text)
{
    static const struct {
        const char *name;
        enum line_owner owner;
    } kinds[] = {{"silent", LINE_SILENT},
                 {"free", LINE_FREE},
                 {"mine", LINE_MINE},
                 {"foreign", LINE_FOREIGN}};
    struct line_view view = {.owner = LINE_WAITER};
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (strcmp(text, kinds[i].name) == 0) {
            return (struct line_view){.owner = kinds[i].owner};
        }
    }
    (void)snprintf(view.value, sizeof view.value, "%s", text);
    view.len = (uint8_t)strlen(view.value);
    return view;
}

START_TEST(L5_yields)
{
    static const char *const names[] = {[LINE_SLEEP] = "SLEEP",
                                        [LINE_LOOK] = "LOOK",
                                        [LINE_YIELD] = "YIELD",
                                        [LINE_GIVE_BACK] = "GIVE_BACK",
                                        [LINE_CONFIRM] = "CONFIRM"};
    const json_t *v = NULL;
    const json_t *list = vectors_list(vectors, "yields");
    for (size_t n = 0; (v = json_array_get(list, n)) != NULL; n++) {
        struct line_view views[REDLOCK_NODES_MAX];
        const json_t *nodes = vectors_get(v, "nodes");
        const char *to = vectors_text(v, "to");
        for (size_t i = 0; i < json_array_size(nodes); i++) {
            views[i] = view_of(json_string_value(json_array_get(nodes, i)));
        }
        struct line_decision d =
            line_decide(views, json_array_size(nodes), vectors_text(v, "token"),
                        json_is_true(vectors_get(v, "kept_long")));
        ck_assert_str_eq(names[d.step], vectors_text(v, "step"));
        ck_assert_str_eq(d.to != NULL ? d.to->value : "", to != NULL ? to : "");
    }
}
END_TEST

static unsigned bits_of(const json_t *numbers)
{
    unsigned bits = 0;
    for (size_t i = 0; i < json_array_size(numbers); i++) {
        bits |= 1U << json_integer_value(json_array_get(numbers, i));
    }
    return bits;
}

START_TEST(L3_L5_offers_of_a_quorum_are_confirmed_at_once)
{
    const json_t *v = NULL;
    const json_t *list = vectors_list(vectors, "confirms");
    for (size_t n = 0; (v = json_array_get(list, n)) != NULL; n++) {
        bool is_to_confirm =
            line_is_to_confirm(bits_of(vectors_get(v, "offered")), bits_of(vectors_get(v, "kept")),
                               (size_t)vectors_i64(v, "nodes"));
        ck_assert_int_eq(is_to_confirm, json_is_true(vectors_get(v, "is_to_confirm")));
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("redlock_vectors");
    TCase *t = tcase_create("redlock_vectors");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, C9_the_page_has_every_script_as_the_code_has_it);
    tcase_add_test(t, K1_random_bytes_become_tokens);
    tcase_add_test(t, L1_scores_are_written_and_read);
    tcase_add_test(t, L1_L5_tokens_have_one_order);
    tcase_add_test(t, N8_fingerprints);
    tcase_add_test(t, A4_E9_deadlines_and_ttls);
    tcase_add_test(t, A7_A9_A15_verdicts);
    tcase_add_test(t, E2_E3_E5_extensions);
    tcase_add_test(t, L5_yields);
    tcase_add_test(t, L3_L5_offers_of_a_quorum_are_confirmed_at_once);
    suite_add_tcase(s, t);
    return suite_run(s);
}
