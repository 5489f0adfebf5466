/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of this build, such as 0.2.0 or 0.2.0~git20261127.1a2b3c4 (cmake/build-version), as
 * --version, the logs, the metrics and the tables of workers and schedulers show it. It is a
 * library of its own, so that a new commit recompiles little. */
#ifndef CLAIMD_BASE_BUILD_H
#define CLAIMD_BASE_BUILD_H

extern const char CLAIMD_BUILD[];

#endif
