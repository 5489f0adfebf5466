/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine's record is one JSON file. Its parts d1 … d8 come in from eight collectors at once;
 * each reads the record, puts its part in, and writes the whole record back. The lock's key names
 * the machine, so that other machines' records can be merged at the same time. */
#include "common.h"

#include <jansson.h>
#include <pthread.h>
#include <unistd.h>

#define STREAMS 8
#define PARTS 10

struct stream {
    pthread_t thread;
    int number;
    struct redlock_client
        *client; /* each collector is a host of its own; NULL = merges without a lock */
    const char *record;
};

static void merge(const struct stream *s, int part)
{
    char name[16];
    char next[256];
    json_t *record = json_load_file(s->record, 0, NULL);
    work_ms(1); /* as if it took a while to merge */
    (void)snprintf(name, sizeof name, "d%d.%d", s->number, part);
    (void)snprintf(next, sizeof next, "%s.d%d", s->record, s->number);
    if (json_object_set_new(record, name, json_integer(part)) != 0 ||
        json_dump_file(record, next, JSON_SORT_KEYS) != 0 || rename(next, s->record) != 0) {
        fail(next, "cannot be written");
    }
    json_decref(record);
}

static void *run_stream(void *arg)
{
    const struct stream *s = arg;
    const struct redlock_request request = {.key = "example:machine:42", .wait_ms = -1};
    for (int part = 0; part < PARTS; part++) {
        struct redlock_lock *lock = s->client == NULL ? NULL : acquire(s->client, &request);
        merge(s, part);
        (void)redlock_unlock(lock, NULL); /* NULL is fine */
    }
    return NULL;
}

static void run_streams(char **urls, const char *record, const char *how)
{
    struct stream streams[STREAMS];
    json_t *empty = json_object();
    (void)json_dump_file(empty, record, 0);
    json_decref(empty);
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = (struct stream){.number = i + 1, .record = record};
        streams[i].client = urls == NULL ? NULL : open_client(urls);
        if (pthread_create(&streams[i].thread, NULL, run_stream, &streams[i]) != 0) {
            fail("thread", "cannot be started");
        }
    }
    for (int i = 0; i < STREAMS; i++) {
        (void)pthread_join(streams[i].thread, NULL);
        redlock_close(streams[i].client);
    }
    json_t *merged = json_load_file(record, 0, NULL);
    printf("%d streams merged %d parts each %s: the record has %zu of %d\n", STREAMS, PARTS, how,
           json_object_size(merged), STREAMS * PARTS);
    json_decref(merged);
}

int main(int argc, char **argv)
{
    char **urls = node_urls(argc, argv);
    char record[] = "/tmp/machine-42-XXXXXX";
    int fd = mkstemp(record);
    if (fd < 0 || close(fd) != 0) {
        fail(record, "cannot be made");
    }
    run_streams(NULL, record, "without a lock");
    run_streams(urls, record, "under the lock");
    (void)unlink(record);
    return 0;
}
