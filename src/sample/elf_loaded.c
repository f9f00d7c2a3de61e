/* SPDX-License-Identifier: MIT
 * elf_loaded.c - symbols of an ELF file where it is loaded: no file is opened, so it does not matter whether it was
 * replaced, stripped of its sections, or lies in another container. 64 bits, little-endian. Nothing read is trusted:
 * each walk has an end. */
#include <elf.h>
#include <string.h>

#include "sample/peek.h"

enum { HEADERS_MOST = 64, DYNAMIC_MOST = 512, CHAIN_MOST = 1 << 14, NAME_MOST = 128 };

/* The dynamic linker of glibc writes addresses over offsets, others leave them. */
static uint64_t address_of(const struct elf_loaded *e, uint64_t v)
{
    return v && v < e->bias ? v + e->bias : v;
}

static bool read_dynamic(struct elf_loaded *e, uint64_t at, uint64_t bytes)
{
    for (unsigned i = 0; i < DYNAMIC_MOST && i < bytes / sizeof(Elf64_Dyn); i++) {
        Elf64_Dyn d;
        if (!peek_bytes(e->from, at + i * sizeof d, &d, sizeof d) || d.d_tag == DT_NULL) break;
        if (d.d_tag == DT_STRTAB) e->strings = address_of(e, d.d_un.d_ptr);
        if (d.d_tag == DT_SYMTAB) e->symbols = address_of(e, d.d_un.d_ptr);
        if (d.d_tag == DT_GNU_HASH) e->gnu_hash = address_of(e, d.d_un.d_ptr);
        if (d.d_tag == DT_HASH) e->hash = address_of(e, d.d_un.d_ptr);
    }
    return e->strings && e->symbols && (e->gnu_hash || e->hash);
}

bool elf_open(struct elf_loaded *e, const struct peek *p, uint64_t base)
{
    Elf64_Ehdr head;
    Elf64_Phdr parts[HEADERS_MOST];
    *e = (struct elf_loaded){.from = p};
    if (!peek_bytes(p, base, &head, sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
        head.e_phentsize != sizeof *parts || head.e_phnum == 0 || head.e_phnum > HEADERS_MOST)
        return false;
    if (!peek_bytes(p, base + head.e_phoff, parts, head.e_phnum * sizeof *parts)) return false;
    uint64_t first = UINT64_MAX, dynamic = 0, bytes = 0;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        if (parts[i].p_type == PT_LOAD && first == UINT64_MAX) first = parts[i].p_vaddr & ~UINT64_C(4095);
        if (parts[i].p_type != PT_DYNAMIC) continue;
        dynamic = parts[i].p_vaddr;
        bytes = parts[i].p_memsz;
    }
    if (first == UINT64_MAX || !dynamic) return false;
    e->bias = base - first;
    return read_dynamic(e, e->bias + dynamic, bytes);
}

static bool is_symbol(const struct elf_loaded *e, uint32_t number, const char *name, uint64_t *address)
{
    Elf64_Sym sym;
    char text[NAME_MOST];
    size_t n = strlen(name) + 1;
    if (n > sizeof text ||
        !peek_bytes(e->from, e->symbols + (uint64_t)number * sizeof sym, &sym, sizeof sym) ||
        sym.st_shndx == SHN_UNDEF || !peek_bytes(e->from, e->strings + sym.st_name, text, n) ||
        memcmp(text, name, n) != 0)
        return false;
    *address = sym.st_value + e->bias;
    return true;
}

/* Header, filter, buckets, chains: as ld.so walks them. */
static bool find_gnu(const struct elf_loaded *e, const char *name, uint64_t *address)
{
    uint32_t head[4], number, hash = 5381, seen;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++) hash = hash * 33 + *c;
    if (!peek_bytes(e->from, e->gnu_hash, head, sizeof head) || !head[0] || !head[2]) return false;
    uint64_t word, filter = e->gnu_hash + sizeof head, buckets = filter + (uint64_t)head[2] * 8;
    if (!peek_u64(e->from, filter + (hash / 64 % head[2]) * UINT64_C(8), &word)) return false;
    if (!(word >> hash % 64 & word >> (hash >> (head[3] & 31)) % 64 & 1)) return false;
    if (!peek_u32(e->from, buckets + (hash % head[0]) * UINT64_C(4), &number) || number < head[1])
        return false;
    uint64_t chains = buckets + (uint64_t)head[0] * 4;
    for (unsigned i = 0; i < CHAIN_MOST; i++, number++) {
        if (!peek_u32(e->from, chains + (uint64_t)(number - head[1]) * 4, &seen)) return false;
        if ((seen | 1) == (hash | 1) && is_symbol(e, number, name, address)) return true;
        if (seen & 1) return false;
    }
    return false;
}

static bool find_sysv(const struct elf_loaded *e, const char *name, uint64_t *address)
{
    uint32_t head[2], number, hash = 0;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
        hash = (hash << 4) + *c;
        hash = (hash ^ (hash & 0xf0000000u) >> 24) & ~0xf0000000u;
    }
    if (!peek_bytes(e->from, e->hash, head, sizeof head) || !head[0]) return false;
    if (!peek_u32(e->from, e->hash + 8 + (hash % head[0]) * UINT64_C(4), &number)) return false;
    for (unsigned i = 0; i < CHAIN_MOST && number; i++) {
        if (is_symbol(e, number, name, address)) return true;
        if (!peek_u32(e->from, e->hash + 8 + ((uint64_t)head[0] + number) * 4, &number)) return false;
    }
    return false;
}

bool elf_find(const struct elf_loaded *e, const char *name, uint64_t *address)
{
    return e->gnu_hash ? find_gnu(e, name, address) : find_sysv(e, name, address);
}
