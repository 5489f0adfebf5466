/* SPDX-License-Identifier: Apache-2.0
 *
 * Three hosts start the nightly backup, not quite at the same moment; it is to run once. The lock
 * keeps two from running at the same time. That is not all: the host that comes last finds the lock
 * free, for the backup is done. So under the lock each looks first whether it still has to run. */
#include "common.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOSTS 3
#define BACKUP_MS 600

static int run_host(int host, int late_ms, char **urls, const char *done_path)
{
    struct redlock_client *client = open_client(urls);
    struct redlock_lock *lock = NULL;
    work_ms(late_ms);
    enum redlock_result result = redlock_try(client, "example:nightly-backup", &lock);
    if (result != REDLOCK_OK) {
        printf("host %d: nothing to do: %s\n", host, redlock_text(result));
    } else if (access(done_path, F_OK) == 0) {
        printf("host %d: nothing to do: done already\n", host);
    } else {
        printf("host %d: backs up\n", host);
        work_ms(BACKUP_MS);
        FILE *done = fopen(done_path, "w");
        if (done == NULL || fclose(done) != 0) {
            fail(done_path, "cannot be written");
        }
        printf("host %d: has backed up\n", host);
    }
    (void)redlock_unlock(lock, NULL);
    redlock_close(client);
    return 0;
}

int main(int argc, char **argv)
{
    static const int late_ms[HOSTS] = {0, BACKUP_MS / 2, BACKUP_MS * 3};
    char **urls = node_urls(argc, argv);
    char dir[] = "/tmp/nightly-XXXXXX"; /* stands for where the backups are kept */
    char done_path[64];
    if (mkdtemp(dir) == NULL) {
        fail(dir, "cannot be made");
    }
    (void)snprintf(done_path, sizeof done_path, "%s/2026-11-21.done", dir);
    for (int i = 0; i < HOSTS; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            return run_host(i + 1, late_ms[i], urls, done_path);
        }
        if (pid < 0) {
            fail("host", "cannot be started");
        }
    }
    int status = 0;
    bool are_well = true;
    while (wait(&status) > 0) {
        are_well = are_well && status == 0;
    }
    (void)unlink(done_path);
    (void)rmdir(dir);
    return are_well ? 0 : 1;
}
