/* SPDX-License-Identifier: Apache-2.0
 *
 * The state directory of one worker. `lock` is held for the life of the process and proves that a
 * predecessor in the same directory is dead; `worker_id` names that predecessor, so that its jobs
 * can be handed back at once (ARCHITECTURE §6). */
#ifndef CLAIMD_WORKER_MEMBERSHIP_STATE_DIR_H
#define CLAIMD_WORKER_MEMBERSHIP_STATE_DIR_H

#include "store/worker_store.h"

/* Creates the directory if needed, takes its lock (again if another process has just removed the
 * folder) and reads the predecessor's id ("" = none). CONFLICT: another worker uses the directory.
 * The descriptor keeps the lock. */
enum status state_dir_open(const char *dir, int *ret_lock_fd, char ret_predecessor[WORKER_ID_SIZE],
                           struct err *err) MUST_USE;

/* Removes abandoned folders of workers beside `dir`: those that have no other files, that are not
 * locked, and from which no worker has registered for STATE_DIR_KEPT_S, so that their jobs have
 * long been rescued. Each container that is replaced leaves one. Returns how many were removed;
 * others stay. */
#define STATE_DIR_KEPT_S (24 * 3600)
size_t state_dir_prune(const char *dir);

/* Replaces `worker_id`. Errors are ignored: without the file, a successor only starts more
 * slowly. */
void state_dir_write(const char *dir, const char *worker_id);

#endif
