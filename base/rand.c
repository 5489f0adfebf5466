/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"

#include "base/clock.h"

#include <stdio.h>
#include <sys/random.h>

enum status rand_bytes(void *ret_bytes, size_t len, struct err *err)
{
    unsigned char *out = ret_bytes;
    size_t got = 0;
    while (got < len) {
        ssize_t n = getrandom(out + got, len - got, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "cannot read random bytes");
        }
        got += (size_t)n;
    }
    return STATUS_OK;
}

enum status rand_uuid(char ret[RAND_UUID_SIZE], struct err *err)
{
    unsigned char b[16];
    enum status st = rand_bytes(b, sizeof b, err);
    if (st != STATUS_OK) {
        return st;
    }
    b[6] = (unsigned char)((b[6] & 0x0F) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3F) | 0x80);
    (void)snprintf(ret, RAND_UUID_SIZE,
                   "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                   b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                   b[14], b[15]);
    return STATUS_OK;
}

void rand_seed(struct rand *r, uint64_t seed)
{
    r->state = seed;
}

void rand_seed_from_system(struct rand *r)
{
    uint64_t seed = 0;
    if (rand_bytes(&seed, sizeof seed, NULL) != STATUS_OK) {
        seed = (uint64_t)clock_boot_us() ^ ((uint64_t)getpid() << 40);
    }
    rand_seed(r, seed);
}

/* SplitMix64 (Steele, Lea, Flood 2014): a counter followed by a multiply-xorshift mix; any seed is
 * good. */
uint64_t rand_next(struct rand *r)
{
    r->state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = r->state;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

int64_t rand_below(struct rand *r, int64_t bound)
{
    if (bound <= 0) {
        return 0;
    }
    return (int64_t)(rand_next(r) % (uint64_t)bound); /* modulo bias does not matter for jitter */
}

int64_t rand_jitter(struct rand *r, int64_t value, int percent)
{
    int64_t spread = value * percent / 100;
    return value - spread + rand_below(r, 2 * spread + 1);
}
