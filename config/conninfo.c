/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "config/config.h"

#include <ctype.h>

static bool is_uri(const char *conninfo)
{
    return strncmp(conninfo, "postgresql://", 13) == 0 || strncmp(conninfo, "postgres://", 11) == 0;
}

/* Everything but letters and digits as %XX. */
static enum status append_uri_password(struct buf *out, const char *password, struct err *err)
{
    const char *glue = strchr(buf_at(out), '?') == NULL ? "?" : "&";
    enum status st = buf_printf(out, err, "%spassword=", glue);
    for (const char *p = password; st == STATUS_OK && *p != '\0'; p++) {
        unsigned char byte = (unsigned char)*p;
        st = buf_printf(out, err, isalnum(byte) ? "%c" : "%%%02X", byte);
    }
    return st;
}

static enum status append_keyword_password(struct buf *out, const char *password, struct err *err)
{
    enum status st = buf_append_text(out, " password='", err);
    for (const char *p = password; st == STATUS_OK && *p != '\0'; p++) {
        bool is_special = *p == '\'' || *p == '\\';
        st = buf_printf(out, err, "%s%c", is_special ? "\\" : "", *p);
    }
    return st == STATUS_OK ? buf_append_text(out, "'", err) : st;
}

enum status config_conninfo(const struct config *c, char *ret, size_t size, struct err *err)
{
    autobuf struct buf out = BUF_INIT(size - 1);
    enum status st = buf_append_text(&out, c->postgres.conninfo, err);
    if (st == STATUS_OK && c->postgres.password[0] != '\0') {
        st = is_uri(c->postgres.conninfo)
                 ? append_uri_password(&out, c->postgres.password, err)
                 : append_keyword_password(&out, c->postgres.password, err);
    }
    if (st != STATUS_OK) {
        err_prefix(err, "postgres.conninfo with its password");
        return st;
    }
    memcpy(ret, buf_at(&out), out.len + 1);
    return STATUS_OK;
}
