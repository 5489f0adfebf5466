/* SPDX-License-Identifier: Apache-2.0
 *
 * `redlock bench`: measures pairs of lock and unlock per second, and how long each takes. */
#include "redlock/cmd/load.h"

#include <inttypes.h>
#include <stdio.h>

struct bench {
    struct cli cli;
    int64_t seconds;
    int64_t in_flight;
    int64_t batch;
};

enum { OPT_SECONDS = CLI_OPT_OWN, OPT_IN_FLIGHT, OPT_BATCH };

static const struct option long_options[] = {CLI_LONG_OPTIONS,
                                             {"json", no_argument, NULL, 'j'},
                                             {"seconds", required_argument, NULL, OPT_SECONDS},
                                             {"in-flight", required_argument, NULL, OPT_IN_FLIGHT},
                                             {"batch", required_argument, NULL, OPT_BATCH},
                                             {NULL, 0, NULL, 0}};

static int take(void *ctx, int code, const char *value)
{
    struct bench *b = ctx;
    switch (code) {
    case OPT_SECONDS:
        return cli_take_number("seconds", value, 1, LOAD_SECONDS_MAX, &b->seconds);
    case OPT_IN_FLIGHT:
        return cli_take_number("in-flight", value, 1, LOAD_IN_FLIGHT_MAX, &b->in_flight);
    default:
        return cli_take_number("batch", value, 1, REDLOCK_KEYS_MAX, &b->batch);
    }
}

static void print_text(const struct bench *b, const struct load_result *r)
{
    (void)printf("%.0f locks/s taken and given back (%" PRId64 " batches of %" PRId64
                 " in flight, %.1f s)\n",
                 (double)r->pairs / r->seconds, b->in_flight, b->batch, r->seconds);
    (void)printf("acquire  p50 %.2f ms, p99 %.2f ms\n", 1e-3 * (double)r->acquire_p50_us,
                 1e-3 * (double)r->acquire_p99_us);
    (void)printf("release  p50 %.2f ms, p99 %.2f ms\n", 1e-3 * (double)r->release_p50_us,
                 1e-3 * (double)r->release_p99_us);
    (void)printf("client   %.1f us of CPU per lock\n", load_cpu_us(r));
    if (r->failed > 0) {
        (void)printf("%" PRIu64 " not won, the last: %s\n", r->failed, redlock_text(r->failure));
    }
}

static void print_json(const struct bench *b, const struct load_result *r)
{
    (void)printf("{\"locks_per_s\": %.1f, \"in_flight\": %" PRId64 ", \"batch\": %" PRId64
                 ", \"seconds\": %.3f, \"pairs\": %" PRIu64 ", \"failed\": %" PRIu64,
                 (double)r->pairs / r->seconds, b->in_flight, b->batch, r->seconds, r->pairs,
                 r->failed);
    (void)printf(", \"acquire_p50_us\": %" PRId64 ", \"acquire_p99_us\": %" PRId64
                 ", \"release_p50_us\": %" PRId64 ", \"release_p99_us\": %" PRId64
                 ", \"client_cpu_us\": %.2f}\n",
                 r->acquire_p50_us, r->acquire_p99_us, r->release_p50_us, r->release_p99_us,
                 load_cpu_us(r));
}

static int measure(struct bench *b)
{
    struct session session = {0};
    struct load_result result = {0};
    char prefix[32];
    (void)snprintf(prefix, sizeof prefix, "redlock-bench:%d", (int)getpid());
    const struct load_options options = {.prefix = prefix,
                                         .duration_ms = b->seconds * 1000,
                                         .in_flight = (size_t)b->in_flight,
                                         .batch = (size_t)b->batch};
    int code = session_open(&session, &b->cli);
    if (code == CLI_OK) {
        code = load_run(&session, &options, &result);
    }
    session_close(&session);
    if (code != CLI_OK) {
        return code;
    }
    if (b->cli.is_json) {
        print_json(b, &result);
    } else {
        print_text(b, &result);
    }
    code = cli_flush();
    return code == CLI_OK && result.pairs == 0 ? CLI_NO_QUORUM : code;
}

int cmd_bench(int argc, char **argv)
{
    struct bench b = {.seconds = 5, .in_flight = 50, .batch = 1};
    int code = cli_read_options(&b.cli, "bench", argc, argv, long_options, take, &b);
    if (code == CLI_GO_ON && optind != argc) {
        code = cli_usage_error("bench", "it takes no argument ('%s')", argv[optind]);
    }
    if (code == CLI_GO_ON) {
        code = cli_ready(&b.cli);
        if (code == CLI_OK) {
            code = measure(&b);
        }
    }
    cli_release(&b.cli);
    return code;
}
