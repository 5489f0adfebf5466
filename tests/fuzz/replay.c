/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target without libFuzzer: replay SECONDS FILE… gives it each file, then random
 * changes of them until the time is over. The seed is printed, and taken from $SEED if that is set;
 * what crashed is left in ./crash. */
#include "base/clock.h"
#include "base/parse.h"
#include "base/rand.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define INPUT_MAX 4096
#define FILES_MAX 256
#define CHANGES_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const words[] = {"$-1\r\n",
                                    "$27\r\n",
                                    "*3\r\n:",
                                    ":1\r\n",
                                    "+OK\r\n",
                                    "*2\r\n$-1\r\n",
                                    "-NOSCRIPT x",
                                    "-LOADING x",
                                    ":-2\r\n",
                                    "*-1\r\n",
                                    "$1048576\r\n",
                                    "*1048576\r\n",
                                    ":9223372036854775807\r\n"};

struct bytes {
    uint8_t at[INPUT_MAX];
    size_t len;
};

static bool load(const char *path, struct bytes *ret)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, ret->at, sizeof ret->at) : -1;
    ret->len = n > 0 ? (size_t)n : 0;
    return n >= 0;
}

/* Kept until the target returned. */
static void run(const struct bytes *b)
{
    autoclose int fd = open("crash", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ssize_t n = write(fd, b->at, b->len);
    (void)n;
    (void)LLVMFuzzerTestOneInput(b->at, b->len);
}

static void change(struct bytes *b, struct rand *rand)
{
    size_t at = b->len > 0 ? (size_t)rand_below(rand, (int64_t)b->len) : 0;
    const char *word = words[rand_below(rand, ARRAY_COUNT(words))];
    switch (rand_below(rand, 5)) {
    case 0:
        b->at[at] = (uint8_t)rand_below(rand, 256);
        break;
    case 1:
        b->at[at] ^= (uint8_t)(1U << rand_below(rand, 8));
        break;
    case 2: /* cut out */
        b->len -= b->len > 1;
        memmove(b->at + at, b->at + at + 1, b->len - at);
        break;
    case 3: /* put in, with its length before it */
        if (b->len + strlen(word) + 1 < INPUT_MAX) {
            size_t len = strlen(word);
            memmove(b->at + at + len + 1, b->at + at, b->len - at);
            b->at[at] = (uint8_t)len;
            memcpy(b->at + at + 1, word, len);
            b->len += len + 1;
        }
        break;
    default: /* write over */
        if (at + strlen(word) < b->len) {
            memcpy(b->at + at, word, strlen(word));
        }
        break;
    }
}

int main(int argc, char **argv)
{
    static struct bytes corpus[FILES_MAX];
    size_t count = 0;
    int64_t seed = clock_boot_us();
    int64_t us = 0;
    size_t runs = 0;
    struct rand rand;
    if (argc < 3 || parse_duration_us(argv[1], &us, NULL) != STATUS_OK) {
        (void)fprintf(stderr, "usage: replay SECONDS FILE…\n");
        return 2;
    }
    for (int i = 2; i < argc && count < FILES_MAX; i++) {
        if (!load(argv[i], &corpus[count])) {
            (void)fprintf(stderr, "can't read %s\n", argv[i]);
            return 2;
        }
        run(&corpus[count++]);
    }
    const char *given = getenv("SEED"); /* NOLINT(concurrency-mt-unsafe) */
    if (given != NULL && parse_i64(given, strlen(given), 0, INT64_MAX, &seed, NULL) != STATUS_OK) {
        return 2;
    }
    printf("%zu inputs, then changes of them: SEED=%" PRId64 "\n", count, seed);
    (void)fflush(stdout);
    rand_seed(&rand, (uint64_t)seed);
    for (int64_t end_us = clock_boot_us() + us; clock_boot_us() < end_us; runs++) {
        struct bytes b = corpus[rand_below(&rand, (int64_t)count)];
        for (int64_t left = rand_below(&rand, CHANGES_MAX) + 1; left > 0; left--) {
            change(&b, &rand);
        }
        run(&b);
    }
    (void)unlink("crash");
    printf("%zu runs\n", runs);
    return 0;
}
