/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"
#include "support/suite.h"

#include <check.h>
#include <stdint.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define IS_KEEPING 0 /* so that every use after free is detected */
#else
#define IS_KEEPING 1
#endif

START_TEST(a_block_that_was_given_back_is_taken_again)
{
    struct pool p = {0};
    void *first = pool_take(&p, 500);
    pool_give(&p, first);
    void *second = pool_take(&p, 300); /* of the same class */
    ck_assert(!IS_KEEPING || second == first);
    pool_give(&p, second);
    pool_release(&p);
}
END_TEST

START_TEST(a_block_is_zeroed_each_time_and_aligned)
{
    static const char zeros[1000];
    struct pool p = {0};
    for (size_t size = 1; size <= sizeof zeros; size++) {
        char *block = pool_take(&p, size);
        ck_assert_ptr_nonnull(block);
        ck_assert_uint_eq((uintptr_t)block % _Alignof(max_align_t), 0);
        ck_assert_mem_eq(block, zeros, size);
        memset(block, 'x', size);
        pool_give(&p, block);
    }
    pool_release(&p);
}
END_TEST

START_TEST(what_is_kept_is_bounded)
{
    static const size_t sizes[] = {1, 128, 129, 60000, 70000, (size_t)1 << 20};
    static void *blocks[5000];
    struct pool p = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t count = sizes[s] > 1000 ? 20 : 5000;
        for (size_t i = 0; i < count; i++) {
            blocks[i] = pool_take(&p, sizes[s]);
            ck_assert_ptr_nonnull(blocks[i]);
        }
        for (size_t i = 0; i < count; i++) {
            pool_give(&p, blocks[i]);
        }
    }
    size_t bytes = 0;
    for (size_t i = 0; i < POOL_CLASSES; i++) {
        bytes += p.counts[i] * ((size_t)128 << i);
    }
    ck_assert_uint_le(bytes, POOL_CLASSES * ((size_t)256 << 10));
    ck_assert(!IS_KEEPING || bytes > 0);
    pool_release(&p);
    ck_assert_ptr_null(p.kept[0]);
}
END_TEST

START_TEST(nothing_is_given_back_without_harm)
{
    struct pool p = {0};
    pool_give(&p, NULL);
    pool_release(&p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base_pool");
    TCase *t = tcase_create("base_pool");
    tcase_add_test(t, a_block_that_was_given_back_is_taken_again);
    tcase_add_test(t, a_block_is_zeroed_each_time_and_aligned);
    tcase_add_test(t, what_is_kept_is_bounded);
    tcase_add_test(t, nothing_is_given_back_without_harm);
    suite_add_tcase(s, t);
    return suite_run(s);
}
