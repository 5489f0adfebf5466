/* SPDX-License-Identifier: Apache-2.0
 *
 * The world of the lock's tests, with a proxy that simulates a bad network in front of each
 * master. */
#ifndef CLAIMD_TESTS_TEST_REDLOCK_PROXIES_H
#define CLAIMD_TESTS_TEST_REDLOCK_PROXIES_H

#include "support/fault_proxy.h"
#include "test_redlock_world.h"

#define PROXIES_TIMEOUT_US (200 * US_PER_MS) /* τ */

/* Calls world_start() with proxies as the client's nodes; τ = PROXIES_TIMEOUT_US. */
void proxies_start(size_t count);
void proxies_stop(void); /* must be the last call of every test */
struct fault_proxy *proxy(size_t node);

/* Sets the same fault for nodes first … first + count − 1; NULL = none. */
void proxies_fault(size_t first, size_t count, const struct fault *fault);
void proxies_delay(size_t first, size_t count, int64_t to_server_us, int64_t to_client_us);
void proxies_all_vote(void); /* waits until all nodes vote */

/* Calls world_acquire() while all nodes are well, and again as long as a busy machine delays their
 * answers beyond τ: wins all keys. */
struct redlock_batch *proxies_acquire(int first, size_t count);

/* Makes one attempt for one key, and releases it if it was won. */
enum redlock_result proxies_try(int key);
#endif
