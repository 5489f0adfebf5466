/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds the password from its own file to the libpq conninfo. */
#include "base/buf.h"
#include "config/config.h"

#include <ctype.h>

static bool is_uri(const char *conninfo)
{
    return strncmp(conninfo, "postgresql://", 13) == 0 || strncmp(conninfo, "postgres://", 11) == 0;
}

/* Percent-encodes everything except letters and digits. */
static enum status append_uri_password(struct buf *out, const char *password, struct err *err)
{
    const char *glue = strchr(buf_at(out), '?') == NULL ? "?" : "&";
    enum status st = buf_printf(out, err, "%spassword=", glue);
    if (st != STATUS_OK) {
        return st;
    }
    for (const char *p = password; *p != '\0'; p++) {
        unsigned char byte = (unsigned char)*p;
        st = isalnum(byte) ? buf_append_byte(out, *p, err) : buf_printf(out, err, "%%%02X", byte);
        if (st != STATUS_OK) {
            return st;
        }
    }
    return STATUS_OK;
}

static enum status append_keyword_password(struct buf *out, const char *password, struct err *err)
{
    enum status st = buf_append_text(out, " password='", err);
    if (st != STATUS_OK) {
        return st;
    }
    st = buf_append_escaped(out, password, strlen(password), "'\\", err);
    if (st != STATUS_OK) {
        return st;
    }
    return buf_append_byte(out, '\'', err);
}

static enum status append_all(const struct config *c, struct buf *out, struct err *err)
{
    enum status st = buf_append_text(out, c->postgres.conninfo, err);
    if (st != STATUS_OK || c->postgres.password[0] == '\0') {
        return st;
    }
    if (is_uri(c->postgres.conninfo)) {
        return append_uri_password(out, c->postgres.password, err);
    }
    return append_keyword_password(out, c->postgres.password, err);
}

enum status config_conninfo(const struct config *c, char *ret, size_t size, struct err *err)
{
    autobuf struct buf out = BUF_INIT(size - 1);
    enum status st = append_all(c, &out, err);
    if (st != STATUS_OK) {
        err_prefix(err, "postgres.conninfo with its password");
        return st;
    }
    memcpy(ret, buf_at(&out), out.len + 1);
    return STATUS_OK;
}
