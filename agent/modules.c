/* SPDX-License-Identifier: MIT
 * modules.c - which code lies where: read from /proc/self/maps, never from the loader, whose lock another thread
 * may hold while it waits for us. Headers of libraries are read through /proc/self/mem: one that is unloaded
 * meanwhile gives an error there and no fault. Looked at when the process joins, when an address is met that
 * nobody knows (at most every 10 ms), and after dlclose(). */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/hot.h"

enum { LOOK_NS = 10000000, HEADERS_MOST = 64, NOTES_MOST = 1024, LINE_MOST = 4200 };

struct look {
    int memory;           /* /proc/self/mem */
    uint64_t base, inode; /* where the file under way begins in memory */
    bool seen[MODULES];
};

static bool read_at(int fd, uint64_t from, void *to, size_t bytes)
{
    return pread(fd, to, bytes, (off_t)from) == (ssize_t)bytes;
}

/* ---- one library ---- */

struct found {
    struct module m;
    char build_id[72];
};

static void find_build_id(int fd, uint64_t from, uint64_t bytes, char out[72])
{
    static uint8_t note[NOTES_MOST];
    if (bytes > sizeof note) bytes = sizeof note;
    if (!read_at(fd, from, note, bytes)) return;
    for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= bytes;) {
        Elf64_Nhdr n;
        memcpy(&n, note + at, sizeof n);
        uint64_t name = at + sizeof n, desc = name + ((n.n_namesz + 3u) & ~3u), end = desc + n.n_descsz;
        if (end > bytes || end < at) return;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && memcmp(note + name, "GNU", 4) == 0 &&
            n.n_descsz <= 32) {
            for (uint32_t i = 0; i < n.n_descsz; i++) snprintf(out + 2 * i, 3, "%02x", note[desc + i]);
            return;
        }
        at = (end + 3) & ~UINT64_C(3);
    }
}

static bool read_headers(const struct look *l, struct found *f)
{
    Elf64_Ehdr e;
    static Elf64_Phdr p[HEADERS_MOST];
    if (!l->base || !read_at(l->memory, l->base, &e, sizeof e) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    if (e.e_phentsize != sizeof p[0] || e.e_phnum > HEADERS_MOST) return false;
    if (!read_at(l->memory, l->base + e.e_phoff, p, e.e_phnum * sizeof p[0])) return false;
    f->m.bias = l->base;
    for (unsigned i = 0; i < e.e_phnum; i++)
        if (p[i].p_type == PT_LOAD) {
            f->m.bias = l->base - (p[i].p_vaddr - p[i].p_offset);
            break;
        }
    for (unsigned i = 0; i < e.e_phnum; i++) {
        if (p[i].p_type == PT_GNU_EH_FRAME) {
            f->m.table = f->m.bias + p[i].p_vaddr;
            f->m.table_bytes = p[i].p_memsz;
        }
        if (p[i].p_type == PT_NOTE && !f->build_id[0])
            find_build_id(l->memory, f->m.bias + p[i].p_vaddr, p[i].p_filesz, f->build_id);
    }
    return true;
}

/* ---- all of them ---- */

static int find(uint64_t start, uint64_t end)
{
    uint32_t n = __atomic_load_n(&agent->n_modules, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n; i++)
        if (agent->modules[i].start == start &&
            __atomic_load_n(&agent->modules[i].end, __ATOMIC_RELAXED) == end)
            return (int)i;
    return -1;
}

/* Told at once: its text is at hand only now. */
static void add_module(struct look *l, uint64_t start, uint64_t end, const char *path)
{
    static char text[LINE_MOST];
    struct found f = {.m = {.start = start, .end = end}};
    uint32_t n = agent->n_modules;
    if (n >= MODULES) return;
    bool elf = read_headers(l, &f);
    if (!elf) f.m.bias = start;
    agent->modules[n] = f.m;
    l->seen[n] = true;
    snprintf(text, sizeof text, "%s %s", f.build_id[0] ? f.build_id : "-", path);
    struct slot *s = slot_take();
    if (s)
        slot_text(s, (struct memory_record){.kind = MEMORY_MODULE, .v = {n + 1, start, end, f.m.bias}}, text);
    if (s) slot_give(s);
    __atomic_store_n(&agent->n_modules, n + 1, __ATOMIC_RELEASE);
}

static uint64_t hex(const char **p)
{
    uint64_t v = 0;
    for (;; (*p)++) {
        char c = **p;
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            v = v << 4 | (uint64_t)(c - 'a' + 10);
        else
            return v;
    }
}

/* start-end perms offset device inode path */
static void take_line(struct look *l, const char *p)
{
    uint64_t start = hex(&p);
    if (*p++ != '-') return;
    uint64_t end = hex(&p);
    if (*p != ' ' || strlen(p) < 8) return;
    bool code = p[3] == 'x';
    p += 6;
    uint64_t offset = hex(&p), inode = 0;
    p = strchr(p + (*p == ' '), ' ');
    if (!p) return;
    for (p++; *p >= '0' && *p <= '9'; p++) inode = inode * 10 + (uint64_t)(*p - '0');
    while (*p == ' ') p++;
    if (!offset || inode != l->inode) l->base = offset ? 0 : start;
    l->inode = inode;
    if (!code || !inode || *p != '/') return;
    int at = find(start, end);
    if (at >= 0)
        l->seen[at] = true;
    else
        add_module(l, start, end, p);
}

static void take_lines(struct look *l, int maps)
{
    static char text[2 * LINE_MOST];
    size_t have = 0;
    ssize_t n;
    while ((n = read(maps, text + have, sizeof text - 1 - have)) > 0) {
        have += (size_t)n;
        text[have] = 0;
        char *line = text, *end;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            take_line(l, line);
        }
        have -= (size_t)(line - text);
        if (have >= sizeof text - 1) have = 0; /* longer than any path may be */
        memmove(text, line, have);
    }
}

static void forget_gone(const struct look *l)
{
    for (uint32_t i = 0; i < agent->n_modules; i++)
        if (!l->seen[i]) __atomic_store_n(&agent->modules[i].end, 0, __ATOMIC_RELEASE);
}

void modules_look(bool gone)
{
    static struct look l; /* stacks of threads can be small; it is ours while the lock is */
    if (__atomic_exchange_n(&agent->modules_lock, 1, __ATOMIC_ACQUIRE)) return;
    uint32_t before = agent->n_modules;
    memset(&l, 0, sizeof l);
    agent->looked_ns = clock_raw_ns();
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    l.memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (maps >= 0) take_lines(&l, maps);
    if (maps >= 0) forget_gone(&l);
    if (maps >= 0) close(maps);
    if (l.memory >= 0) close(l.memory);
    if (gone || agent->n_modules > before) /* how to unwind there may be another now */
        __atomic_fetch_add(&agent->generation, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&agent->modules_lock, 0, __ATOMIC_RELEASE);
}

static int search(uint64_t address)
{
    uint32_t n = __atomic_load_n(&agent->n_modules, __ATOMIC_ACQUIRE);
    for (uint32_t i = n; i--;) {
        const struct module *m = &agent->modules[i];
        if (address >= m->start && address < __atomic_load_n(&m->end, __ATOMIC_ACQUIRE)) return (int)i;
    }
    return MODULE_NONE;
}

/* An address that nobody knows may be of a library that came since; of code made at run time it never is. */
int module_at(uint64_t address)
{
    int at = search(address);
    if (at >= 0) return at;
    if (clock_raw_ns() - agent->looked_ns < LOOK_NS) return MODULE_LATER;
    modules_look(false);
    return search(address);
}
