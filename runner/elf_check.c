/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that a file is a complete shared object for this machine. dlopen() maps what the headers
 * promise, so a truncated file would end the process with SIGBUS instead of an error (fault.G6). */
#include "runner/plugin_file.h"

#include <elf.h>
#include <link.h>

#define PROGRAM_HEADERS_MAX 128

/* The header of this program as the linker mapped it: it has the wanted class, byte order and
 * machine. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((__visibility__("hidden")));

static enum status read_at(int fd, void *ret_bytes, size_t len, int64_t offset, struct err *err)
{
    ssize_t n = pread(fd, ret_bytes, len, (off_t)offset);
    if (n < 0) {
        return err_fail_sys(err, STATUS_UNAVAILABLE, errno, "cannot read");
    }
    if ((size_t)n != len) {
        return err_fail(err, STATUS_INVALID, "truncated: expected %zu bytes at %lld, got %zd", len,
                        (long long)offset, n);
    }
    return STATUS_OK;
}

static enum status check_head(const ElfW(Ehdr) * head, struct err *err)
{
    const ElfW(Ehdr) *own = &__ehdr_start;
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) {
        return err_fail(err, STATUS_INVALID, "not an ELF file");
    }
    if (head->e_ident[EI_CLASS] != own->e_ident[EI_CLASS] ||
        head->e_ident[EI_DATA] != own->e_ident[EI_DATA]) {
        return err_fail(err, STATUS_INVALID, "ELF class %d and byte order %d, expected %d and %d",
                        head->e_ident[EI_CLASS], head->e_ident[EI_DATA], own->e_ident[EI_CLASS],
                        own->e_ident[EI_DATA]);
    }
    if (head->e_machine != own->e_machine) {
        return err_fail(err, STATUS_INVALID, "built for ELF machine %d, expected %d",
                        head->e_machine, own->e_machine);
    }
    if (head->e_type != ET_DYN) {
        return err_fail(err, STATUS_INVALID, "ELF type %d, expected %d (a shared object)",
                        head->e_type, ET_DYN);
    }
    return STATUS_OK;
}

static enum status check_inside(const char *what, uint64_t offset, uint64_t len, int64_t size,
                                struct err *err)
{
    if (offset > (uint64_t)size || len > (uint64_t)size - offset) {
        return err_fail(err, STATUS_INVALID,
                        "truncated: its %s extend beyond the end of the file at %lld", what,
                        (long long)size);
    }
    return STATUS_OK;
}

static enum status check_segments(int fd, const ElfW(Ehdr) * head, int64_t size, struct err *err)
{
    if (head->e_phentsize != sizeof(ElfW(Phdr)) || head->e_phnum == 0 ||
        head->e_phnum > PROGRAM_HEADERS_MAX) {
        return err_fail(err, STATUS_INVALID, "%d program headers of %d bytes", head->e_phnum,
                        head->e_phentsize);
    }
    for (unsigned i = 0; i < head->e_phnum; i++) {
        ElfW(Phdr) segment;
        int64_t at = (int64_t)head->e_phoff + (int64_t)(i * sizeof segment);
        enum status st = read_at(fd, &segment, sizeof segment, at, err);
        if (st != STATUS_OK) {
            return st;
        }
        if (segment.p_type != PT_NULL && segment.p_type != PT_GNU_STACK) {
            st = check_inside("segments", segment.p_offset, segment.p_filesz, size, err);
            if (st != STATUS_OK) {
                return st;
            }
        }
    }
    return STATUS_OK;
}

enum status elf_check(int fd, int64_t size_bytes, struct err *err)
{
    ElfW(Ehdr) head;
    enum status st = read_at(fd, &head, sizeof head, 0, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_head(&head, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_inside("program headers", head.e_phoff, (uint64_t)head.e_phnum * head.e_phentsize,
                      size_bytes, err);
    if (st != STATUS_OK) {
        return st;
    }
    st = check_inside("section headers", head.e_shoff, (uint64_t)head.e_shnum * head.e_shentsize,
                      size_bytes, err);
    if (st != STATUS_OK) {
        return st;
    }
    return check_segments(fd, &head, size_bytes, err);
}
