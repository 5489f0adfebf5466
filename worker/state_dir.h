/* SPDX-License-Identifier: Apache-2.0
 *
 * The state directory of one worker: `lock`, held for the process' life, proves that a predecessor
 * in it is dead; `worker_id` names that predecessor, so that its jobs can be handed back at once
 * (ARCHITECTURE §6). */
#ifndef CLAIMD_WORKER_STATE_DIR_H
#define CLAIMD_WORKER_STATE_DIR_H

#include "store/worker_store.h"

/* Makes the directory if needed, takes its lock and reads the predecessor's id ("" when there is
 * none). CONFLICT: another worker lives in it. The descriptor keeps the lock. */
enum status state_dir_open(const char *dir, int *ret_lock_fd, char ret_predecessor[WORKER_ID_SIZE],
                           struct err *err) MUST_USE;

/* Replaces `worker_id`. A failure costs a successor its quick start only: it is ignored. */
void state_dir_write(const char *dir, const char *worker_id);

#endif
