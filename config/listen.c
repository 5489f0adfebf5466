/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits addresses to listen on into host and port. */
#include "base/parse.h"
#include "config/options.h"

#include <stdio.h>

#define PORT_MAX 65535

/* Splits "host:port" and "[v6]:port" without resolving names. */
static bool part(const char *text, struct config_listen *ret)
{
    bool is_v6 = text[0] == '[';
    const char *host = is_v6 ? text + 1 : text;
    const char *end = is_v6 ? strstr(host, "]:") : strchr(host, ':');
    if (end == NULL || end == host || (size_t)(end - host) >= sizeof ret->host) {
        return false;
    }
    const char *port = end + (is_v6 ? 2 : 1);
    int64_t number = 0;
    if (strchr(" \t\n/", *host) != NULL ||
        parse_i64(port, strlen(port), 0, PORT_MAX, &number, NULL) != STATUS_OK) {
        return false;
    }
    (void)snprintf(ret->host, sizeof ret->host, "%.*s", (int)(end - host), host);
    (void)snprintf(ret->port, sizeof ret->port, "%lld", (long long)number);
    return true;
}

enum status config_listen(const char *key, const char *text, struct config_listen *ret,
                          struct err *err)
{
    *ret = (struct config_listen){.is_off = text[0] == '\0'};
    if (ret->is_off || part(text, ret)) {
        return STATUS_OK;
    }
    return err_fail(err, STATUS_INVALID,
                    "%s: '%.80s' is not allowed; allowed: host:port or [IPv6]:port, port 0 for "
                    "any free one, \"\" for none",
                    key, text);
}
