/* SPDX-License-Identifier: Apache-2.0 */
#include "common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

char **node_urls(int argc, char **argv)
{
    if (argc < 2 || argc > 1 + REDLOCK_NODES_MAX) {
        fail(argv[0], "name one to nine masters: host:port or unix:/path");
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    return argv + 1;
}

redisContext *connect_to(const char *url)
{
    char host[256];
    const char *colon = strrchr(url, ':');
    redisContext *redis = NULL;
    if (strncmp(url, "unix:", 5) == 0) {
        redis = redisConnectUnix(url + 5);
    } else if (colon != NULL) {
        (void)snprintf(host, sizeof host, "%.*s", (int)(colon - url), url);
        redis = redisConnect(host, (int)strtol(colon + 1, NULL, 10));
    } else {
        redis = redisConnect(url, 6379);
    }
    if (redis == NULL || redis->err != 0) {
        fail(url, redis == NULL ? "no memory" : redis->errstr);
    }
    return redis;
}

long long run(redisContext *redis, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = redisvCommand(redis, format, args);
    va_end(args);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        fail(format, reply == NULL ? redis->errstr : reply->str);
    }
    long long n = reply->type == REDIS_REPLY_INTEGER  ? reply->integer
                  : reply->type == REDIS_REPLY_STATUS ? 1
                  : reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, NULL, 10)
                                                      : 0;
    freeReplyObject(reply);
    return n;
}

void work_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

int64_t now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}
