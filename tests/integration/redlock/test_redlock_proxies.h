/* SPDX-License-Identifier: Apache-2.0
 *
 * The world of the lock's tests with a bad network in front of each master. */
#ifndef CLAIMD_TESTS_TEST_REDLOCK_PROXIES_H
#define CLAIMD_TESTS_TEST_REDLOCK_PROXIES_H

#include "support/fault_proxy.h"
#include "test_redlock_world.h"

#define PROXIES_TIMEOUT_US (200 * US_PER_MS) /* τ */

/* world_start(), and the client's nodes are proxies; τ = PROXIES_TIMEOUT_US. */
void proxies_start(size_t count);
void proxies_stop(void); /* every test's last words */
struct fault_proxy *proxy(size_t node);

/* The same fault for nodes first … first + count − 1; NULL = none. */
void proxies_fault(size_t first, size_t count, const struct fault *fault);
void proxies_delay(size_t first, size_t count, int64_t to_server_us, int64_t to_client_us);
void proxies_all_vote(void); /* waits */

/* One key, one attempt, given back if it was won. */
enum redlock_result proxies_try(int key);
#endif
