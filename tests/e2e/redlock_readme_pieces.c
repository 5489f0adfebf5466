/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the pieces of redlock/README.md, one after the other; test_redlock_readme.sh makes a
 * function snippet_N() of the page's Nth piece, and knows what they are to print. */
#include <pthread.h>
#include <redlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct redlock *client;
bool wants_more(void);
void work(void);
void start_thread_that_later_calls(void call(struct redlock_cancel *),
                                   struct redlock_cancel *cancel);

static const char *piece;
static char **urls;
static int works;
static void (*fire)(struct redlock_cancel *);

static void delete_leader(const char *path)
{
    static const char command[] = "DEL leader\r\n";
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    char reply = 0;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, sizeof addr) != 0 ||
        send(fd, command, sizeof command - 1, MSG_NOSIGNAL) < 0 || recv(fd, &reply, 1, 0) != 1) {
        perror(path);
        exit(2);
    }
    (void)close(fd);
}

/* The leader would work for ever, if nobody took its lock away. */
void work(void)
{
    if (++works == 3 && strcmp(piece, "leader") == 0) {
        for (char **url = urls; *url != NULL; url++) {
            delete_leader(*url + strlen("unix:"));
        }
    }
}

bool wants_more(void)
{
    return works < 3;
}

static void *run_thread(void *cancel)
{
    fire(cancel);
    return NULL;
}

void start_thread_that_later_calls(void call(struct redlock_cancel *),
                                   struct redlock_cancel *cancel)
{
    pthread_t thread;
    fire = call;
    if (pthread_create(&thread, NULL, run_thread, cancel) != 0) {
        exit(2);
    }
    (void)pthread_join(thread, NULL);
}

static struct redlock *open_client(void)
{
    struct redlock_options options = REDLOCK_OPTIONS_INIT;
    struct redlock_node nodes[REDLOCK_NODES_MAX] = {{0}};
    struct redlock_error error;
    struct redlock *ret = NULL;
    while (urls[options.node_count] != NULL) {
        nodes[options.node_count].url = urls[options.node_count];
        options.node_count++;
    }
    options.nodes = nodes;
    options.ttl_ms = 2000; /* so that the leader soon hears of its loss */
    options.ttl_max_ms = 30000;
    options.node_timeout_ms = 200;
    options.trust_fresh = true;
    if (redlock_open(&options, &ret, &error) != 0) {
        (void)fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    return ret;
}

#define RUN(number, name)                        \
    do {                                         \
        void snippet_##number(void);             \
        piece = name;                            \
        works = 0;                               \
        snippet_##number();                      \
        printf("%s: worked %d\n", piece, works); \
    } while (0)

int main(int argc, char **argv)
{
    struct redlock_lock *lock = NULL;
    urls = argv + (argc > 0);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    client = open_client();
    struct redlock *other = open_client();
    RUN(2, "try");
    RUN(3, "wait");
    RUN(4, "scope");
    RUN(5, "leader");
    RUN(6, "extend");
    RUN(7, "many");
    RUN(8, "all");
    RUN(9, "owner");
    if (redlock_try(other, "leader", 30000, &lock) != REDLOCK_OK) {
        return 3; /* it is to be in the way of the one that is cancelled */
    }
    RUN(10, "cancel");
    (void)redlock_unlock(lock, NULL);
    RUN(11, "fence");
    RUN(12, "look");
    redlock_close(other);
    redlock_close(client);
    return 0;
}
