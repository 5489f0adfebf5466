/* SPDX-License-Identifier: Apache-2.0
 *
 * Who asks: bearer tokens of a file, sessions of browsers, users that a trusted proxy names; and
 * which hosts and origins may ask at all. All calls may come from any thread. */
#ifndef CLAIMD_WEB_AUTH_H
#define CLAIMD_WEB_AUTH_H

#include "config/config.h"
#include "web/request.h"

struct auth;

/* INVALID: the file of tokens is readable by others, or has a line that is not of the form. */
enum status auth_open(const struct config *config, struct auth **ret, struct err *err) MUST_USE;
void auth_close(struct auth *a); /* accepts NULL */
/* Reads the file of tokens again, and ends all sessions. If it fails, nothing changes. */
enum status auth_reload(struct auth *a, struct err *err) MUST_USE;
/* Returns a number that changes with each reload. */
uint64_t auth_generation(struct auth *a);

bool auth_has_tokens(struct auth *a);

/* True if the request names a host by which claimd-web may be reached: an address, localhost, or
 * one of web.hosts. Other names would be those of an attacker's page (DNS rebinding). */
bool auth_host_is_fine(const struct auth *a, const struct web_heads *heads);
/* True if the request does not come from the page of another origin. Browsers send Origin with each
 * request that is not GET or HEAD; a request with a session's cookie must have it. */
bool auth_origin_is_fine(const struct auth *a, const struct web_request *q);

/* Finds out who asks. */
void auth_find(struct auth *a, const struct web_request *q, struct web_caller *ret);

/* Begins a session for the owner of the token, and writes its cookie. NOT_FOUND: wrong token.
 * LIMIT: too many wrong ones from this address within a minute. */
enum status auth_login(struct auth *a, const struct web_request *q, const char *token,
                       struct web_caller *ret, char ret_cookie[WEB_COOKIE_MAX],
                       struct err *err) MUST_USE;
/* Ends the session of the request, if it has one, and writes the cookie that removes it. */
void auth_logout(struct auth *a, const struct web_request *q, char ret_cookie[WEB_COOKIE_MAX]);

#endif
