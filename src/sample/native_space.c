/* SPDX-License-Identifier: MIT
 * native_space.c - which modules a process has, and the rule for an address in one of them. Headers, indexes and tables
 * are read out of its memory: no file is opened, so it does not matter whether it was replaced or lies in another
 * container. All of it may be anything: lengths are bounded, and what makes no sense is no table. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "sample/native_inner.h"
#include "sample/py_process.h"

enum {
    ROWS = 1 << 13,
    CIES = 64,
    CIE_BYTES = 256,
    ENTRY_FIRST = 192,
    ENTRY_MOST = 1 << 16,
    INDEX_MOST = 64 << 20,
    HEADERS_MOST = 64,
    NOTES_MOST = 1024
};
#define GAP_LEAST UINT64_C(100000000)  /* ns between looks at the maps because of an unknown address */
#define GAP_MOST UINT64_C(10000000000) /* .. when there were many for nothing, as with code made at run time */

struct index_copy {
    char build_id[72];
    uint64_t bytes;
    uint8_t *data;
};
struct kept_row {
    uint64_t ip, serial; /* serial 0: empty */
    bool good;
    struct eh_row row;
};
struct kept_cie {
    uint64_t at, serial;
    size_t bytes;
    uint8_t data[CIE_BYTES];
};
struct native_tables {
    uint64_t serials;
    VEC(struct index_copy) indexes;
    struct kept_row rows[ROWS];
    struct kept_cie cies[CIES];
    uint8_t entry[ENTRY_MOST];
};

struct native_tables *native_tables_new(tare_error *err)
{
    struct native_tables *t = mem_new(1, sizeof *t);
    if (!t) error_nomem(err, "tables for unwinding");
    return t;
}

void native_tables_free(struct native_tables *t)
{
    if (!t) return;
    for (size_t i = 0; i < t->indexes.n; i++) mem_free(t->indexes.items[i].data);
    vec_release(&t->indexes);
    mem_free(t);
}

/* ---- one module ---- */

static void find_build_id(const struct peek *p, uint64_t from, uint64_t bytes, char out[72])
{
    uint8_t note[NOTES_MOST];
    if (bytes > sizeof note) bytes = sizeof note;
    if (!peek_bytes(p, from, note, bytes)) return;
    for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= bytes;) {
        Elf64_Nhdr n;
        memcpy(&n, note + at, sizeof n);
        uint64_t name = at + sizeof n, desc = name + ((n.n_namesz + UINT64_C(3)) & ~UINT64_C(3));
        uint64_t end = desc + n.n_descsz;
        if (end > bytes) return;
        bool it_is = n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && memcmp(note + name, "GNU", 4) == 0;
        if (it_is && n.n_descsz > 0 && n.n_descsz <= 32) {
            for (uint32_t i = 0; i < n.n_descsz; i++) snprintf(out + 2 * i, 3, "%02x", note[desc + i]);
            return;
        }
        at = (end + 3) & ~UINT64_C(3);
    }
}

static void read_headers(struct native_module *m, const struct peek *p, uint64_t base)
{
    Elf64_Ehdr e;
    Elf64_Phdr parts[HEADERS_MOST];
    m->bias = m->start;
    if (!base || !peek_bytes(p, base, &e, sizeof e) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0) return;
    if (e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_machine != EM_X86_64 || e.e_phentsize != sizeof *parts)
        return;
    if (!e.e_phnum || e.e_phnum > HEADERS_MOST ||
        !peek_bytes(p, base + e.e_phoff, parts, e.e_phnum * sizeof *parts))
        return;
    m->bias = base;
    for (unsigned i = e.e_phnum; i-- > 0;)
        if (parts[i].p_type == PT_LOAD) m->bias = base - (parts[i].p_vaddr - parts[i].p_offset);
    for (unsigned i = 0; i < e.e_phnum; i++) {
        if (parts[i].p_type == PT_GNU_EH_FRAME) {
            m->table = m->bias + parts[i].p_vaddr;
            m->table_bytes = parts[i].p_memsz;
        }
        if (parts[i].p_type == PT_NOTE && m->build_id[0] == '-')
            find_build_id(p, m->bias + parts[i].p_vaddr, parts[i].p_filesz, m->build_id);
    }
}

/* ---- all of them ---- */

void native_open(struct native_space *s, struct peek from, struct native_tables *tables)
{
    *s = (struct native_space){.peek = from, .tables = tables, .serial = ++tables->serials, .gap = GAP_LEAST};
}

void native_release(struct native_space *s)
{
    vec_release(&s->modules);
    arena_release(&s->arena);
    perf_map_release(&s->made);
}

const struct native_module *native_module_known(const struct native_space *s, uint64_t address)
{
    size_t lo = 0, hi = s->modules.n;
    while (lo < hi) { /* the first that begins behind it */
        size_t mid = lo + (hi - lo) / 2;
        if (s->modules.items[mid].start <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo && address < s->modules.items[lo - 1].end ? &s->modules.items[lo - 1] : NULL;
}

struct looking {
    struct native_space *s;
    const struct mappings *maps;
    VEC(struct native_module) found;
    bool changed;
};

/* Where the file that a mapping is of begins in memory; 0: its beginning is not mapped. */
static uint64_t base_of(const struct mappings *maps, size_t at)
{
    const char *path = maps->items.items[at].path;
    for (size_t i = at + 1; i-- > 0 && strcmp(maps->items.items[i].path, path) == 0;)
        if (maps->items.items[i].offset == 0) return maps->items.items[i].start;
    return 0;
}

static tare_status take_mapping(struct looking *l, size_t at, tare_error *err)
{
    const struct mapping *one = &l->maps->items.items[at];
    struct native_space *s = l->s;
    const struct native_module *was = native_module_known(s, one->start);
    if (was && was->start == one->start && was->end == one->end && strcmp(was->path, one->path) == 0)
        return vec_push(&l->found, *was, err);
    struct native_module m = {.start = one->start, .end = one->end, .build_id = "-"};
    m.path = arena_str(&s->arena, one->path);
    if (!m.path) return error_nomem(err, "modules");
    read_headers(&m, &s->peek, base_of(l->maps, at));
    l->changed = true;
    return vec_push(&l->found, m, err);
}

tare_status native_look(struct native_space *s, tare_error *err)
{
    struct mappings maps = {VEC_INIT};
    struct looking l = {.s = s, .maps = &maps, .found = VEC_INIT};
    tare_status st = mappings_read(&maps, s->peek.pid, err);
    for (size_t i = 0; st == TARE_OK && i < maps.items.n; i++)
        if (maps.items.items[i].executable && maps.items.items[i].path[0]) st = take_mapping(&l, i, err);
    mappings_release(&maps);
    s->looked_ns = clock_raw_ns();
    if (st != TARE_OK) {
        vec_release(&l.found);
        return st;
    }
    l.changed = l.changed || l.found.n != s->modules.n;
    if (l.changed) s->serial = ++s->tables->serials;
    if (l.changed)
        s->gap = GAP_LEAST;
    else
        s->gap = s->gap * 2 < GAP_MOST ? s->gap * 2 : GAP_MOST;
    vec_release(&s->modules);
    s->modules.items = l.found.items;
    s->modules.n = l.found.n;
    s->modules.cap = l.found.cap;
    return TARE_OK;
}

void native_python(struct native_space *s, const struct py_process *p)
{
    s->eval = p ? p->eval : 0;
    const struct native_module *m = s->eval ? native_module_at(s, s->eval) : NULL;
    s->home = m ? m->start : 0;
    s->home_end = m ? m->end : 0;
}

/* An address that nobody knows may be of a library that came since. */
const struct native_module *native_module_at(struct native_space *s, uint64_t address)
{
    const struct native_module *m = native_module_known(s, address);
    if (m || (s->looked_ns && clock_raw_ns() - s->looked_ns < s->gap)) return m;
    return native_look(s, NULL) == TARE_OK ? native_module_known(s, address) : NULL;
}

/* ---- from an address to its rule ---- */

/* The index of a module: one copy for all processes that have it. */
static const struct index_copy *index_of(struct native_space *s, struct native_module *m)
{
    struct native_tables *t = s->tables;
    if (m->index || m->tried) return m->index ? &t->indexes.items[m->index - 1] : NULL;
    m->tried = true;
    if (!m->table || !m->table_bytes || m->table_bytes > INDEX_MOST) return NULL;
    for (size_t i = 0; i < t->indexes.n && m->build_id[0] != '-'; i++) {
        const struct index_copy *c = &t->indexes.items[i];
        if (c->bytes == m->table_bytes && strcmp(c->build_id, m->build_id) == 0) m->index = i + 1;
    }
    if (m->index) return &t->indexes.items[m->index - 1];
    struct index_copy c = {.bytes = m->table_bytes, .data = mem_new(1, m->table_bytes)};
    memcpy(c.build_id, m->build_id, sizeof c.build_id);
    bool good = c.data && peek_bytes(&s->peek, m->table, c.data, c.bytes);
    if (!good || vec_push(&t->indexes, c, NULL) != TARE_OK) {
        mem_free(c.data);
        return NULL;
    }
    m->index = t->indexes.n;
    return &t->indexes.items[m->index - 1];
}

static struct eh_bytes read_entry(struct native_space *s, uint64_t at)
{
    struct native_tables *t = s->tables;
    uint8_t *to = t->entry;
    bool first = peek_bytes(&s->peek, at, to, ENTRY_FIRST);
    struct eh_bytes none = {.failed = true};
    if (!first && !peek_bytes(&s->peek, at, to, 4)) return none;
    size_t bytes = eh_entry_bytes(to);
    if (!bytes || bytes > ENTRY_MOST) return none;
    if ((!first || bytes > ENTRY_FIRST) && !peek_bytes(&s->peek, at, to, bytes)) return none;
    return eh_copy(to, bytes, at);
}

static struct eh_bytes read_cie(struct native_space *s, uint64_t at)
{
    struct kept_cie *c = &s->tables->cies[(at >> 3 ^ at >> 12) % CIES];
    if (c->serial == s->serial && c->at == at) return eh_copy(c->data, c->bytes, at);
    uint8_t word[4];
    struct eh_bytes none = {.failed = true};
    c->serial = 0;
    if (!peek_bytes(&s->peek, at, word, sizeof word)) return none;
    size_t bytes = eh_entry_bytes(word);
    if (!bytes || bytes > CIE_BYTES || !peek_bytes(&s->peek, at, c->data, bytes)) return none;
    memcpy(c->data, word, sizeof word);
    c->at = at;
    c->bytes = bytes;
    c->serial = s->serial;
    return eh_copy(c->data, bytes, at);
}

static bool find_row(struct native_space *s, uint64_t ip, struct eh_row *out)
{
    struct native_module *m = (struct native_module *)(uintptr_t)native_module_at(s, ip);
    const struct index_copy *c = m ? index_of(s, m) : NULL;
    uint64_t at = c ? eh_search(eh_copy(c->data, c->bytes, m->table), ip) : 0;
    if (!at) return false;
    struct eh_bytes entry = read_entry(s, at);
    uint64_t cie = entry.failed ? 0 : eh_cie_at(entry);
    if (!cie) return false;
    struct eh_bytes of = read_cie(s, cie);
    return !of.failed && eh_row(entry, of, ip, out);
}

const struct eh_row *native_row(struct native_space *s, uint64_t ip)
{
    struct kept_row *r = &s->tables->rows[(ip ^ ip >> 13 ^ s->serial * 0x9E37u) % ROWS];
    if (r->serial != s->serial || r->ip != ip) {
        r->good = find_row(s, ip, &r->row);
        r->ip = ip;
        r->serial = s->serial;
    }
    return r->good ? &r->row : NULL;
}
