/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the pieces of redlock/README.md, one after the other. test_redlock_readme.sh makes a
 * function snippet_N() of the page's Nth piece, and checks their output. */
#include <pthread.h>
#include <redlock.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct redlock_client *client;
void work(void);
void start_thread_that_later_calls(void call(struct redlock_owner *), struct redlock_owner *owner);
enum redlock_result start_mail(struct redlock_client *of);
void snippet_2(void);
void snippet_3(void);
void snippet_4(void);
void snippet_5(void);
void snippet_6(void);
void snippet_7(void);
void snippet_8(void);
void snippet_10(void);

static const char *piece;
static char **urls;
static int works;
static sem_t worked;
static void (*call_later)(struct redlock_owner *);

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

/* The leader would work forever if its lock were not taken away. */
void work(void)
{
    works++;
    (void)sem_post(&worked);
    if (works == 3 && strcmp(piece, "leader") == 0) {
        for (char **url = urls; *url != NULL; url++) {
            delete_leader(*url + strlen("unix:"));
        }
    }
}

static void *run_thread(void *owner)
{
    call_later(owner);
    return NULL;
}

/* For the piece "cancel", calls at once; for any other, never. */
void start_thread_that_later_calls(void call(struct redlock_owner *), struct redlock_owner *owner)
{
    pthread_t thread;
    call_later = call;
    if (strcmp(piece, "cancel") != 0) {
        return;
    }
    if (pthread_create(&thread, NULL, run_thread, owner) != 0) {
        exit(2);
    }
    (void)pthread_join(thread, NULL);
}

static struct redlock_client *open_client(void)
{
    struct redlock_report report = {0};
    struct redlock_client *ret = NULL;
    const struct redlock_options options = {.ttl_ms = 2000, /* the leader soon notices its loss */
                                            .ttl_max_ms = 30000,
                                            .node_timeout_ms = 200,
                                            .trust_fresh = true};
    if (redlock_open(&options, &ret, &report) != REDLOCK_OK) {
        (void)fprintf(stderr, "%s\n", report.message);
        exit(1);
    }
    return ret;
}

static void begin(const char *name)
{
    piece = name;
    works = 0;
    (void)sem_init(&worked, 0, 0);
}

/* Ends when the lock has been released. */
static enum redlock_result run_start(struct redlock_client *other)
{
    struct redlock_lock *lock = NULL;
    begin("start");
    enum redlock_result result = start_mail(client);
    while (result == REDLOCK_OK && sem_wait(&worked) != 0) {
    }
    printf("%s: worked %d\n", piece, works);
    if (result == REDLOCK_OK) {
        result = redlock_lock_for(other, "mail", 5000, &lock);
    }
    (void)redlock_unlock(lock, NULL);
    return result;
}

static void run(const char *name, void snippet(void))
{
    begin(name);
    snippet();
    printf("%s: worked %d\n", piece, works);
}

int main(int argc, char **argv)
{
    struct redlock_lock *lock = NULL;
    urls = argv + (argc > 0);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    client = open_client();
    struct redlock_client *other = open_client();
    run("wait", snippet_2);
    run("slots", snippet_3);
    run("readers", snippet_4);
    run("leader", snippet_5);
    run("all", snippet_6);
    run("each", snippet_7);
    run("owner", snippet_8);
    if (redlock_lock_for(other, "account:7", 5000, &lock) != REDLOCK_OK) {
        return 3; /* this lock must block the one that is cancelled */
    }
    run("cancel", snippet_8);
    (void)redlock_unlock(lock, NULL);
    if (run_start(other) != REDLOCK_OK) {
        return 4;
    }
    run("look", snippet_10);
    redlock_close(other);
    redlock_close(client);
    return 0;
}
