/* SPDX-License-Identifier: Apache-2.0
 *
 * checksum {"path": "/…", "md5": "hex"} or {"path": "/…", "sha256": "hex"}: reads the file and
 * compares its digest. Result: {"verdict": "match" | "mismatch" | "missing", …}. */
#include "claimd/plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)128 << 10)
#define HEX_SIZE (2 * EVP_MAX_MD_SIZE + 1)

struct request {
    json_t *args; /* owns the strings below */
    const char *path;
    const char *wanted; /* hex */
    const EVP_MD *digest;
};

static int is_hex(const char *text, size_t len)
{
    return strlen(text) == len && strspn(text, "0123456789abcdefABCDEF") == len;
}

/* Returns NULL, or the reason why the args are invalid. */
static const char *parse(struct request *r, const struct claimd_context *job)
{
    const char *md5 = NULL;
    const char *sha256 = NULL;
    r->args = json_loadb(job->args, job->args_len, JSON_REJECT_DUPLICATES, NULL);
    if (json_unpack(r->args, "{s:s, s?s, s?s !}", "path", &r->path, "md5", &md5, "sha256",
                    &sha256) != 0) {
        return "args must be {\"path\", and \"md5\" or \"sha256\"}, all texts";
    }
    if (r->path[0] != '/') {
        return "path must start with '/'";
    }
    if ((md5 == NULL) == (sha256 == NULL)) {
        return "args must have one of \"md5\" and \"sha256\"";
    }
    r->wanted = md5 != NULL ? md5 : sha256;
    r->digest = md5 != NULL ? EVP_md5() : EVP_sha256();
    if (!is_hex(r->wanted, 2 * (size_t)EVP_MD_get_size(r->digest))) {
        return "the checksum is not hex of the right length";
    }
    return NULL;
}

static void to_hex(const unsigned char *bytes, unsigned len, char *ret_hex)
{
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < len; i++) {
        ret_hex[2 * i] = digits[bytes[i] >> 4];
        ret_hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret_hex[2 * len] = '\0';
}

/* Returns CLAIMD_DONE with the hex digest and the size, or the outcome for the error. */
static enum claimd_outcome digest_file(const struct claimd_context *job, int fd, EVP_MD_CTX *ctx,
                                       char *ret_hex, long long *ret_bytes)
{
    unsigned char chunk[CHUNK_BYTES];
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned sum_len = 0;
    *ret_bytes = 0;
    for (;;) {
        if (claimd_should_stop(job)) {
            return claimd_retry(job, -1, "told to stop after %lld bytes", *ret_bytes);
        }
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno != EINTR) {
            return claimd_retry(job, -1, "read: %s", strerror(errno));
        }
        if (n == 0) {
            break;
        }
        if (n > 0 && EVP_DigestUpdate(ctx, chunk, (size_t)n) != 1) {
            return claimd_retry(job, -1, "libcrypto failed");
        }
        *ret_bytes += n > 0 ? n : 0;
    }
    if (EVP_DigestFinal_ex(ctx, sum, &sum_len) != 1) {
        return claimd_retry(job, -1, "libcrypto failed");
    }
    to_hex(sum, sum_len, ret_hex);
    return CLAIMD_DONE;
}

static enum claimd_outcome report(const struct claimd_context *job, json_t *result)
{
    char *text = json_dumps(result, JSON_COMPACT);
    json_decref(result);
    if (text == NULL) {
        return claimd_retry(job, -1, "out of memory");
    }
    enum claimd_outcome outcome = claimd_done(job, text);
    free(text);
    return outcome;
}

static enum claimd_outcome compare(const struct claimd_context *job, const struct request *r,
                                   int fd)
{
    char hex[HEX_SIZE];
    long long bytes = 0;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    enum claimd_outcome outcome = CLAIMD_RETRY;
    if (ctx != NULL && EVP_DigestInit_ex(ctx, r->digest, NULL) == 1) {
        outcome = digest_file(job, fd, ctx, hex, &bytes);
    } else {
        outcome = claimd_fail(job, "libcrypto has no such checksum here");
    }
    EVP_MD_CTX_free(ctx);
    if (outcome != CLAIMD_DONE) {
        return outcome;
    }
    if (strcasecmp(hex, r->wanted) == 0) {
        return report(job, json_pack("{s:s, s:I}", "verdict", "match", "bytes", (json_int_t)bytes));
    }
    return report(job, json_pack("{s:s, s:I, s:s}", "verdict", "mismatch", "bytes",
                                 (json_int_t)bytes, "found", hex));
}

static enum claimd_outcome check_path(const struct claimd_context *job, const struct request *r)
{
    struct stat s;
    int fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block us */
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return report(job, json_pack("{s:s}", "verdict", "missing"));
    }
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == EINTR || errno == EIO)) {
        return claimd_retry(job, -1, "open: %s", strerror(errno));
    }
    if (fd < 0) {
        return claimd_fail(job, "open: %s", strerror(errno));
    }
    enum claimd_outcome outcome = CLAIMD_FAIL;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) {
        outcome = claimd_fail(job, "not a regular file");
    } else {
        outcome = compare(job, r, fd);
    }
    (void)close(fd);
    return outcome;
}

static enum claimd_outcome checksum(const struct claimd_context *job)
{
    struct request r = {0};
    const char *wrong = parse(&r, job);
    enum claimd_outcome outcome =
        wrong != NULL ? claimd_fail(job, "args: %s", wrong) : check_path(job, &r);
    json_decref(r.args);
    return outcome;
}

CLAIMD_PLUGIN(.name = "checksum", .version = CLAIMD_RELEASE,
              .kinds = {{.name = "checksum", .handle = checksum}})
