/* SPDX-License-Identifier: MIT
 * peek.h - the memory of another process, read from outside while it runs: nothing is injected, stopped or changed.
 * What is read may be anything at all: every use of it is bounded and checked. */
#ifndef SAMPLE_PEEK_H
#define SAMPLE_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/error.h"
#include "core/vec.h"

struct peek_part {
    uint64_t at; /* there */
    void *to;    /* here */
    size_t bytes;
};

/* Where bytes come from: another process, or in tests an image of one. */
struct peek {
    pid_t pid;
    /* How many of the parts came whole, from the first on; errno tells why not more. One system call. */
    size_t (*parts)(const struct peek *p, const struct peek_part *parts, size_t n);
    const void *image;
};

struct peek peek_process(pid_t pid);
bool peek_bytes(const struct peek *p, uint64_t at, void *to, size_t bytes);
bool peek_u64(const struct peek *p, uint64_t at, uint64_t *out);
bool peek_u32(const struct peek *p, uint64_t at, uint32_t *out);

static inline uint64_t peek_field(const void *copy, size_t offset)
{
    uint64_t v;
    __builtin_memcpy(&v, (const char *)copy + offset, sizeof v);
    return v;
}

/* Why a process cannot be read, in words for a person: it is gone, belongs to somebody else, or the system forbids it.
 * `why` is the errno of what failed. */
tare_status peek_explain(pid_t pid, int why, tare_error *err);
/* Can it be read at all? Looks at a page of its own. */
tare_status peek_check(const struct peek *p, tare_error *err);

/* ---- what is mapped ---- */

struct mapping {
    uint64_t start, end, offset;
    bool executable;
    char *path; /* "" where it is no file */
};
struct mappings {
    VEC(struct mapping) items;
};
tare_status mappings_read(struct mappings *m, pid_t pid, tare_error *err);
void mappings_release(struct mappings *m);

/* ---- symbols of a loaded ELF file, looked up in its memory as the dynamic linker does ---- */

struct elf_loaded {
    const struct peek *from;
    uint64_t bias; /* added to addresses of the file */
    uint64_t strings, symbols, gnu_hash, hash;
};
/* False: there is no ELF image with a symbol table at `base`, or one that makes no sense. */
bool elf_open(struct elf_loaded *e, const struct peek *p, uint64_t base);
bool elf_find(const struct elf_loaded *e, const char *name, uint64_t *address);

#endif
