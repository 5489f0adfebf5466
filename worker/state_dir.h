/* SPDX-License-Identifier: Apache-2.0
 *
 * The state directory of one worker: `lock`, held for the process' life, proves that a predecessor
 * in it is dead; `worker_id` names that predecessor, so that its jobs can be handed back at once
 * (ARCHITECTURE §6). */
#ifndef CLAIMD_WORKER_STATE_DIR_H
#define CLAIMD_WORKER_STATE_DIR_H

#include "store/worker_store.h"

/* Makes the directory if needed, takes its lock (again where somebody has just removed the folder)
 * and reads the predecessor's id ("" when there is
 * none). CONFLICT: another worker lives in it. The descriptor keeps the lock. */
enum status state_dir_open(const char *dir, int *ret_lock_fd, char ret_predecessor[WORKER_ID_SIZE],
                           struct err *err) MUST_USE;

/* Removes folders beside `dir` that workers have left: with no other files than theirs, locked by
 * nobody, and not registered from for STATE_DIR_KEPT_S, so that the jobs of whoever lived there
 * have long been rescued. Containers that are replaced leave one each. Returns how many; what can't
 * be removed stays. */
#define STATE_DIR_KEPT_S (24 * 3600)
size_t state_dir_prune(const char *dir);

/* Replaces `worker_id`. A failure costs a successor its quick start only: it is ignored. */
void state_dir_write(const char *dir, const char *worker_id);

#endif
