/* SPDX-License-Identifier: Apache-2.0
 *
 * `redlock status`: shows who holds a key, according to the votes of all nodes. */
#include "redlock/cmd/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct survey {
    struct cli cli;
    const char *key;
    struct session session;
    struct redlock_holding holdings[REDLOCK_NODES_MAX];
    bool is_there;
};

struct verdict {
    int code;
    const char *text;
    const char *holder; /* holder of a held lock, otherwise NULL */
    int64_t ttl_ms;     /* until the holder has no quorum left; −1 = never */
    size_t votes;
};

static const struct option long_options[] = {
    CLI_LONG_OPTIONS, {"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};

static void on_inspected(void *ctx, const struct redlock_holding *holdings)
{
    struct survey *s = ctx;
    memcpy(s->holdings, holdings, s->cli.settings.node_count * sizeof holdings[0]);
    s->is_there = true;
}

static int longest_first(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x < *y) - (*x > *y);
}

/* Counts the nodes on which `holder` holds the key, and finds when fewer than `quorum` will. */
static size_t count_holder(const struct survey *s, const char *holder, size_t quorum,
                           int64_t *ret_ttl_ms)
{
    int64_t ttls[REDLOCK_NODES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < s->cli.settings.node_count; i++) {
        const struct redlock_holding *h = &s->holdings[i];
        if (h->vote == REDLOCK_VOTE_REFUSED && strcmp(h->holder, holder) == 0) {
            ttls[count++] = h->ttl_ms < 0 ? INT64_MAX : h->ttl_ms;
        }
    }
    qsort(ttls, count, sizeof ttls[0], longest_first);
    if (count >= quorum) {
        *ret_ttl_ms = ttls[quorum - 1] == INT64_MAX ? -1 : ttls[quorum - 1];
    }
    return count;
}

static struct verdict judge(const struct survey *s)
{
    size_t quorum = s->cli.settings.node_count / 2 + 1;
    size_t free_count = 0;
    size_t answered = 0;
    for (size_t i = 0; i < s->cli.settings.node_count; i++) {
        const struct redlock_holding *h = &s->holdings[i];
        struct verdict held = {.code = CLI_OK, .text = "held", .holder = h->holder};
        free_count += h->vote == REDLOCK_VOTE_OK;
        answered += h->vote == REDLOCK_VOTE_OK || h->vote == REDLOCK_VOTE_REFUSED;
        if (h->vote == REDLOCK_VOTE_REFUSED) {
            held.votes = count_holder(s, h->holder, quorum, &held.ttl_ms);
            if (held.votes >= quorum) {
                return held;
            }
        }
    }
    if (answered < quorum) {
        return (struct verdict){
            .code = CLI_NO_QUORUM, .text = "no quorum: an answer", .votes = answered};
    }
    if (free_count >= quorum) {
        return (struct verdict){.code = CLI_FREE, .text = "free", .votes = free_count};
    }
    return (struct verdict){
        .code = CLI_SPLIT, .text = "split: held by nobody, and free", .votes = free_count};
}

static void print_text(const struct survey *s, const struct verdict *v)
{
    struct redlock_node_info infos[REDLOCK_NODES_MAX];
    for (size_t i = 0; i < s->cli.settings.node_count; i++) {
        redlock_async_node(s->session.lock, i, &infos[i]);
    }
    int width = cli_name_width(infos, s->cli.settings.node_count);
    (void)printf("%-*s %-9s %-8s %-10s %-7s %s\n", width, "NODE", "KEY", "HOLDER", "TTL", "WAITING",
                 "LABEL");
    for (size_t i = 0; i < s->cli.settings.node_count; i++) {
        const struct redlock_holding *h = &s->holdings[i];
        bool is_held = h->vote == REDLOCK_VOTE_REFUSED;
        char ttl[32] = "-";
        if (is_held && h->ttl_ms < 0) {
            (void)snprintf(ttl, sizeof ttl, "never ends");
        } else if (is_held) {
            (void)snprintf(ttl, sizeof ttl, "%.1f s", 1e-3 * (double)h->ttl_ms);
        }
        const char *key = is_held ? "held" : h->vote == REDLOCK_VOTE_OK ? "free" : "no answer";
        (void)printf("%-*s %-9s %-8s %-10s %-7zu %s\n", width, infos[i].name, key,
                     is_held ? h->holder : "-", ttl, h->waiting, h->label);
    }
    if (v->holder == NULL) {
        (void)printf("%s on %zu of %zu nodes\n", v->text, v->votes, s->cli.settings.node_count);
    } else if (v->ttl_ms < 0) {
        (void)printf("held by %s on %zu of %zu nodes, without an end\n", v->holder, v->votes,
                     s->cli.settings.node_count);
    } else {
        (void)printf("held by %s on %zu of %zu nodes for %.1f s, unless extended\n", v->holder,
                     v->votes, s->cli.settings.node_count, 1e-3 * (double)v->ttl_ms);
    }
}

static const char *verdict_word(const struct verdict *v)
{
    switch (v->code) {
    case CLI_OK:
        return "held";
    case CLI_FREE:
        return "free";
    case CLI_SPLIT:
        return "split";
    default:
        return "no_quorum";
    }
}

static void print_json(const struct survey *s, const struct verdict *v)
{
    (void)printf("{\"key\": ");
    cli_json_text(s->key);
    (void)printf(", \"verdict\": \"%s\"", verdict_word(v));
    if (v->holder != NULL) {
        (void)printf(", \"holder\": ");
        cli_json_text(v->holder);
        (void)printf(", \"ttl_ms\": %" PRId64, v->ttl_ms);
    }
    (void)printf(", \"nodes\": [");
    for (size_t i = 0; i < s->cli.settings.node_count; i++) {
        struct redlock_node_info info;
        const struct redlock_holding *h = &s->holdings[i];
        redlock_async_node(s->session.lock, i, &info);
        (void)printf("%s{\"name\": ", i == 0 ? "" : ", ");
        cli_json_text(info.name);
        if (h->vote == REDLOCK_VOTE_REFUSED) {
            (void)printf(", \"key\": \"held\", \"holder\": ");
            cli_json_text(h->holder);
            (void)printf(", \"label\": ");
            cli_json_text(h->label);
            (void)printf(", \"waiting\": %zu, \"ttl_ms\": %" PRId64 "}", h->waiting, h->ttl_ms);
        } else {
            (void)printf(", \"key\": \"%s\"}", h->vote == REDLOCK_VOTE_OK ? "free" : "no_answer");
        }
    }
    (void)printf("]}\n");
}

static int ask(struct survey *s)
{
    int r = redlock_async_inspect(s->session.lock, s->key, strlen(s->key), on_inspected, s);
    if (r != 0) {
        cli_tell("%s: %s", s->key, strerrordesc_np(-r));
        return r == -EINVAL ? CLI_USAGE : CLI_SYSTEM;
    }
    session_run_until(&s->session, &s->is_there);
    struct verdict v = judge(s);
    if (s->cli.is_json) {
        print_json(s, &v);
    } else {
        print_text(s, &v);
    }
    int code = cli_flush();
    return code == CLI_OK ? v.code : code;
}

int cmd_status(int argc, char **argv)
{
    struct survey s = {0};
    s.cli.sees_lines = true;
    int code = cli_read_options(&s.cli, "status", argc, argv, long_options, NULL, NULL);
    if (code == CLI_GO_ON && optind != argc - 1) {
        code = cli_usage_error("status", "one key, not %d", argc - optind);
    }
    if (code == CLI_GO_ON) {
        s.key = argv[optind];
        code = cli_ready(&s.cli);
        if (code == CLI_OK) {
            code = session_open(&s.session, &s.cli);
        }
        if (code == CLI_OK) {
            code = ask(&s);
        }
    }
    session_close(&s.session);
    cli_release(&s.cli);
    return code;
}
