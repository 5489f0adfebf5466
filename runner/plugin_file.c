/* SPDX-License-Identifier: Apache-2.0 */
#include "runner/plugin_file.h"

#include "model/job.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#define PLUGIN_SYMBOL "claimd_plugin"

/* The sizes in the first version of ABI 1; they never change. The host reads as much of a longer
 * struct as it knows; in a shorter one, the missing fields are 0. */
#define KIND_SIZE_MIN ((size_t)40)
#define PLUGIN_SIZE_MIN (offsetof(struct claimd_plugin, kinds) + KIND_SIZE_MIN * CLAIMD_KINDS_MAX)
#define SIZE_SANE_MAX ((uint32_t)1 << 20)

enum status plugin_file_check(int fd, const struct plugin_owners *owners, struct err *err)
{
    off_t size = 0;
    enum status st = plugin_regular_check(fd, owners, &size, err);
    if (st != STATUS_OK) {
        return st;
    }
    return elf_check(fd, size, err);
}

/* Finds the data symbol and its size in the file, so that nothing behind it is read. */
static enum status find_symbol(void *library, const char **ret_symbol, size_t *ret_size,
                               struct err *err)
{
    void *symbol = dlsym(library, PLUGIN_SYMBOL);
    if (symbol == NULL) {
        return err_fail(err, STATUS_INVALID, "no symbol " PLUGIN_SYMBOL);
    }
    Dl_info info;
    void *entry = NULL;
    if (dladdr1(symbol, &info, &entry, RTLD_DL_SYMENT) == 0 || entry == NULL) {
        return err_fail(err, STATUS_INVALID, "symbol " PLUGIN_SYMBOL " has no entry");
    }
    ElfW(Sym) sym;
    memcpy(&sym, entry, sizeof sym);
    if ((sym.st_info & 0xf) != STT_OBJECT) {
        return err_fail(err, STATUS_INVALID, "symbol " PLUGIN_SYMBOL " is not data");
    }
    *ret_symbol = (const char *)symbol;
    *ret_size = sym.st_size;
    return STATUS_OK;
}

static enum status check_sizes(const struct claimd_plugin *p, size_t symbol_size, struct err *err)
{
    if (p->abi != CLAIMD_ABI) {
        return err_fail(err, STATUS_INVALID, "ABI %u, expected %d", p->abi, CLAIMD_ABI);
    }
    if (p->size < PLUGIN_SIZE_MIN || p->size > symbol_size) {
        return err_fail(err, STATUS_INVALID, "size %u, expected %zu up to its symbol's %zu",
                        p->size, PLUGIN_SIZE_MIN, symbol_size);
    }
    if (p->kind_size < KIND_SIZE_MIN || p->kind_size > SIZE_SANE_MAX ||
        p->size < offsetof(struct claimd_plugin, kinds) + (size_t)p->kind_size * CLAIMD_KINDS_MAX) {
        return err_fail(err, STATUS_INVALID, "kind_size %u, expected at least %zu, %d of them",
                        p->kind_size, KIND_SIZE_MIN, CLAIMD_KINDS_MAX);
    }
    return STATUS_OK;
}

static enum status check_names(const struct claimd_plugin *p, struct err *err)
{
    if (p->name == NULL || p->version == NULL) {
        return err_fail(err, STATUS_INVALID, "no %s", p->name == NULL ? "name" : "version");
    }
    enum status st = job_kind_check(p->name, err);
    if (st != STATUS_OK) {
        err_prefix(err, "plugin's name");
        return st;
    }
    size_t len = strnlen(p->version, JOB_KIND_VERSION_MAX + 1);
    if (len == 0 || len > JOB_KIND_VERSION_MAX) {
        return err_fail(err, STATUS_INVALID, "version has 0 or more than %d characters",
                        JOB_KIND_VERSION_MAX);
    }
    for (size_t i = 0; i < len; i++) {
        if (p->version[i] <= ' ' || p->version[i] > '~') {
            return err_fail(err, STATUS_INVALID, "version has a character outside '!'…'~'");
        }
    }
    return STATUS_OK;
}

static enum status check_kinds(struct claimd_plugin *p, struct err *err)
{
    enum status st = plugin_kinds_accept(p->kinds, err);
    for (size_t i = 0; st == STATUS_OK && i < CLAIMD_KINDS_MAX && p->kinds[i].name != NULL; i++) {
        if (p->kinds[i].handle == NULL) {
            st = err_fail(err, STATUS_INVALID, "kind %s: no handle", p->kinds[i].name);
        }
    }
    return st;
}

/* Copies the fields up to `kinds`, then the kinds with the stride that the plugin was built
 * with. */
static void copy_plugin(struct claimd_plugin *ret, const char *symbol)
{
    memcpy(ret, symbol, offsetof(struct claimd_plugin, kinds));
    const char *kinds = symbol + offsetof(struct claimd_plugin, kinds);
    size_t known = ret->kind_size < sizeof ret->kinds[0] ? ret->kind_size : sizeof ret->kinds[0];
    for (size_t i = 0; i < CLAIMD_KINDS_MAX; i++) {
        memcpy(&ret->kinds[i], kinds + i * ret->kind_size, known);
    }
}

enum status plugin_file_load(int fd, struct claimd_plugin *ret_plugin, struct err *err)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *reason = dlerror(); /* NOLINT(concurrency-mt-unsafe): nothing else calls it */
        size_t prefix = strlen(path);
        bool named = reason != NULL && strncmp(reason, path, prefix) == 0 && reason[prefix] == ':';
        return err_fail(err, STATUS_INVALID, "%s", named ? reason + prefix + 2 : reason);
    }
    const char *symbol = NULL;
    size_t size = 0;
    enum status st = find_symbol(library, &symbol, &size, err);
    if (st != STATUS_OK) {
        return st;
    }
    if (size < offsetof(struct claimd_plugin, reserved)) {
        return err_fail(err, STATUS_INVALID, "symbol " PLUGIN_SYMBOL " of %zu bytes, expected %zu",
                        size, PLUGIN_SIZE_MIN);
    }
    struct claimd_plugin plugin = {0};
    memcpy(&plugin, symbol, offsetof(struct claimd_plugin, reserved));
    st = check_sizes(&plugin, size, err);
    if (st != STATUS_OK) {
        return st;
    }
    copy_plugin(&plugin, symbol);
    st = check_names(&plugin, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_kinds(&plugin, err);
    if (st != STATUS_OK) {
        return st;
    }
    *ret_plugin = plugin;
    return STATUS_OK;
}
