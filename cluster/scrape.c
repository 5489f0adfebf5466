/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/scrape.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#define ANSWER_MAX ((size_t)8 << 20)
#define HEAD_END "\r\n\r\n"

/* ---- the request ---- */

static enum status wait_for(int fd, short events, int64_t until_us, struct err *err)
{
    int64_t left_ms = (until_us - clock_boot_us()) / US_PER_MS;
    struct pollfd p = {.fd = fd, .events = events};
    int n = poll(&p, 1, left_ms > 0 ? (int)left_ms : 0);
    return n > 0 ? STATUS_OK : err_fail(err, STATUS_TIMEOUT, "no answer in time");
}

static enum status parse_address(const char *address, struct sockaddr_in *ret, struct err *err)
{
    char host[64];
    const char *colon = strrchr(address, ':');
    size_t len = colon == NULL ? sizeof host : (size_t)(colon - address);
    if (len < sizeof host) {
        memcpy(host, address, len);
        host[len] = '\0';
        *ret = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10))};
        if (inet_pton(AF_INET, host, &ret->sin_addr) == 1) {
            return STATUS_OK;
        }
    }
    return err_fail(err, STATUS_INVALID, "'%s' is no IPv4 address with a port", address);
}

static enum status ask(int fd, const char *address, const char *path, struct err *err)
{
    struct sockaddr_in to;
    char request[256];
    enum status st = parse_address(address, &to, err);
    if (st != STATUS_OK) {
        return st;
    }
    int len = snprintf(request, sizeof request,
                       "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, address);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0 ||
        send(fd, request, (size_t)len, MSG_NOSIGNAL) != len) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "GET http://%s%s", address, path);
    }
    return STATUS_OK;
}

static enum status read_all(int fd, int64_t until_us, struct buf *out, struct err *err)
{
    for (;;) {
        char bytes[65536];
        enum status st = wait_for(fd, POLLIN, until_us, err);
        if (st != STATUS_OK) {
            return st;
        }
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        if (n < 0) {
            return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "reading the answer");
        }
        if (n == 0) {
            return out->len > 0 ? STATUS_OK : err_fail(err, STATUS_UNAVAILABLE, "no answer");
        }
        st = buf_append(out, bytes, (size_t)n, err);
        if (st != STATUS_OK) {
            return st;
        }
    }
}

enum status scrape_get(const char *address, const char *path, int64_t timeout_us, struct buf *out,
                       struct err *err)
{
    autobuf struct buf answer = BUF_INIT(ANSWER_MAX);
    autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "socket");
    }
    enum status st = ask(fd, address, path, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = read_all(fd, clock_boot_us() + timeout_us, &answer, err);
    if (st != STATUS_OK) {
        return st;
    }
    const char *text = buf_at(&answer);
    const char *end = strstr(text, HEAD_END);
    if (end == NULL || strncmp(text, "HTTP/1.1 200 ", strlen("HTTP/1.1 200 ")) != 0) {
        return err_fail(err, STATUS_INVALID, "http://%s%s answers: %.60s", address, path, text);
    }
    const char *body = end + strlen(HEAD_END);
    return buf_append_text(out, body, err);
}

/* ---- the text of the metrics ---- */

static const char *line_end(const char *line)
{
    return line + strcspn(line, "\n");
}

/* The value of a label may contain the character that ends the labels elsewhere. */
static const char *labels_end(const char *at)
{
    bool is_quoted = false;
    for (; *at != '\0' && (is_quoted || *at != '}'); at++) {
        if (is_quoted && *at == '\\' && at[1] != '\0') {
            at++;
        } else if (*at == '"') {
            is_quoted = !is_quoted;
        }
    }
    return at;
}

bool scrape_next(const char **at, struct scrape_sample *ret)
{
    const char *line = *at;
    while (*line == '#' || *line == '\n') {
        line = line_end(line);
        line += *line == '\n' ? 1 : 0;
    }
    if (*line == '\0') {
        return false;
    }
    *ret = (struct scrape_sample){.name = line, .name_len = strcspn(line, "{ \n"), .labels = ""};
    const char *rest = line + ret->name_len;
    if (*rest == '{') {
        ret->labels = rest + 1;
        rest = labels_end(ret->labels);
        ret->labels_len = (size_t)(rest - ret->labels);
        rest += *rest == '}' ? 1 : 0;
    }
    ret->value = strtod(rest, NULL);
    *at = line_end(rest);
    return true;
}

double scrape_sum(const char *text, const char *name, const char *label)
{
    double sum = 0;
    bool is_there = false;
    struct scrape_sample s;
    while (scrape_next(&text, &s)) {
        bool is_it = s.name_len == strlen(name) && memcmp(s.name, name, s.name_len) == 0;
        bool has_label =
            label == NULL || memmem(s.labels, s.labels_len, label, strlen(label)) != NULL;
        if (is_it && has_label) {
            is_there = true;
            sum += s.value;
        }
    }
    return is_there ? sum : -1;
}

bool scrape_has(const char *text, const char *name, const char *type)
{
    char line[256];
    int len = snprintf(line, sizeof line, "# TYPE %s %s\n", name, type);
    return len > 0 && (size_t)len < sizeof line && strstr(text, line) != NULL;
}
