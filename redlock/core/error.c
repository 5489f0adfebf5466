/* SPDX-License-Identifier: Apache-2.0 */
#include "redlock/core/error.h"

#include <errno.h>
#include <stdio.h>

static int code_of(enum status st)
{
    switch (st) {
    case STATUS_OK:
        return 0;
    case STATUS_INVALID:
    case STATUS_NOT_FOUND:
    case STATUS_CONFLICT:
    case STATUS_LIMIT:
        return -EINVAL;
    case STATUS_NOMEM:
        return -ENOMEM;
    case STATUS_UNAVAILABLE:
    case STATUS_TIMEOUT:
    case STATUS_UNKNOWN:
    case STATUS_INTERNAL:
        break;
    }
    return -EIO;
}

int error_put(int code, const char *text, struct redlock_error *ret_error)
{
    if (ret_error != NULL) {
        ret_error->code = code;
        (void)snprintf(ret_error->message, sizeof ret_error->message, "%.*s",
                       REDLOCK_MESSAGE_SIZE - 1, text);
    }
    return code;
}

int error_tell(enum status st, const struct err *err, struct redlock_error *ret_error)
{
    return error_put(code_of(st), st != STATUS_OK ? err->msg : "", ret_error);
}

int error_tell_closing(struct redlock_error *ret_error)
{
    return error_put(-ESHUTDOWN, "redlock: closing", ret_error);
}
