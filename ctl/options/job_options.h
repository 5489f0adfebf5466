/* SPDX-License-Identifier: Apache-2.0
 *
 * Options that say what a job is like, of enqueue, jobs edit and kinds set. Pure. */
#ifndef CLAIMD_CTL_JOB_OPTIONS_H
#define CLAIMD_CTL_JOB_OPTIONS_H

#include "ctl/core/ctl.h"

/* INVALID: given, and not a number of that range. */
enum status ctl_option_number(const struct ctl_args *args, const char *name, int64_t min,
                              int64_t max, struct err *err) MUST_USE;

/* "123 microseconds", or empty when the option wasn't given. */
enum status ctl_option_interval(const struct ctl_args *args, const char *name, int64_t min_us,
                                int64_t max_us, char *ret_text, size_t size,
                                struct err *err) MUST_USE;

/* What a job or a kind gets of its own, or `default`: what it has without. INVALID: given, and
 * neither. Timeout and grace as an interval, or `default`; empty when it wasn't given. */
enum status ctl_option_attempts(const struct ctl_args *args, const char *name,
                                struct err *err) MUST_USE;
enum status ctl_option_timeout(const struct ctl_args *args, char *ret_text, size_t size,
                               struct err *err) MUST_USE;
enum status ctl_option_grace(const struct ctl_args *args, char *ret_text, size_t size,
                             struct err *err) MUST_USE;
/* `expires-in` as an interval, or empty; INVALID: given together with `expires-at`, which may be
 * empty if so. */
enum status ctl_option_expiry(const struct ctl_args *args, bool may_be_never, char *ret_in,
                              size_t size, struct err *err) MUST_USE;
enum status ctl_option_backoff(const struct ctl_args *args, struct err *err) MUST_USE;

/* INVALID: given, and not ids separated by commas. */
enum status ctl_option_ids(const struct ctl_args *args, const char *name, struct err *err) MUST_USE;

/* INVALID: given, and not for a file of jobs. */
enum status ctl_options_of_file(const struct ctl_args *args, struct err *err) MUST_USE;

#endif
