/* SPDX-License-Identifier: MIT
 * symbol_read.c - the child that reads ELF and DWARF with libdw, which is loaded here and nowhere else. It may die of a
 * hostile file: nothing but this child is lost then. It asks no server for debug files. */
#include "symbol/symbol_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef WITH_LIBDW
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/mem.h"
#endif

static size_t say_why(char *answer, size_t most, const char *path, const char *why)
{
    int n = snprintf(answer, most, "%c%s%s", SYMBOL_WHY, path, why);
    return (size_t)n < most ? (size_t)n : most - 1;
}

#ifndef WITH_LIBDW

size_t symbol_answer(void *ctx, char *question, size_t bytes, char *answer, size_t most)
{
    (void)ctx, (void)question, (void)bytes;
    return say_why(answer, most, "", "this tare was built without libdw, which reads symbols");
}

#else

/* ---- the library ---- */

#define CALLS(X)               \
    X(dwfl_begin)              \
    X(dwfl_report_begin)       \
    X(dwfl_report_elf)         \
    X(dwfl_report_end)         \
    X(dwfl_build_id_find_elf)  \
    X(dwfl_standard_find_debuginfo) \
    X(dwfl_module_build_id)    \
    X(dwfl_module_addrinfo)    \
    X(dwfl_module_addrdie)     \
    X(dwfl_module_getdwarf)    \
    X(dwfl_module_getsrc)      \
    X(dwfl_lineinfo)           \
    X(dwfl_end)                \
    X(dwarf_getscopes)         \
    X(dwarf_getscopes_die)     \
    X(dwarf_dieoffset)         \
    X(dwarf_offdie)            \
    X(dwarf_tag)               \
    X(dwarf_diename)           \
    X(dwarf_attr)              \
    X(dwarf_attr_integrate)    \
    X(dwarf_formstring)        \
    X(dwarf_formudata)         \
    X(dwarf_diecu)             \
    X(dwarf_getsrcfiles)       \
    X(dwarf_filesrc)

static struct {
#define X(name) __typeof__(name) *name;
    CALLS(X)
#undef X
    bool looked, loaded;
} dw;

static bool load(void)
{
    if (dw.looked) return dw.loaded;
    dw.looked = dw.loaded = true;
    unsetenv("DEBUGINFOD_URLS"); /* no questions to the network */
    void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
#define X(name)                                                   \
    {                                                             \
        void *found = library ? dlsym(library, #name) : NULL;     \
        memcpy(&dw.name, &found, sizeof found);                   \
        dw.loaded = dw.loaded && found;                           \
    }
    CALLS(X)
#undef X
    return dw.loaded;
}

/* ---- modules that are open ---- */

enum { OPEN_MOST = 64 };
struct opened {
    char id[SYMBOL_ID_MOST], path[SYMBOL_PATH_MOST], why[200];
    Dwfl *dwfl;
    Dwfl_Module *module; /* NULL: why */
};
static struct opened *opened[OPEN_MOST];
static char *debug_path;

static const Dwfl_Callbacks *callbacks(void)
{
    static Dwfl_Callbacks c;
    c.find_elf = dw.dwfl_build_id_find_elf;
    c.find_debuginfo = dw.dwfl_standard_find_debuginfo;
    c.debuginfo_path = &debug_path;
    return &c;
}

static bool same_id(Dwfl_Module *m, const char *want)
{
    const unsigned char *bits;
    GElf_Addr at;
    int n = dw.dwfl_module_build_id(m, &bits, &at);
    if (n <= 0 || (size_t)n * 2 != strlen(want)) return false;
    for (int i = 0; i < n; i++) {
        char two[3];
        snprintf(two, sizeof two, "%02x", bits[i]);
        if (memcmp(two, want + 2 * i, 2) != 0) return false;
    }
    return true;
}

/* A plain file, and nothing that could block or change the world by being opened. */
static int open_plain(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

static void let_go(struct opened *o)
{
    if (o->dwfl) dw.dwfl_end(o->dwfl);
    o->dwfl = NULL;
    o->module = NULL;
}

/* True: it is the one that was asked for. */
static bool take_file(struct opened *o, const char *path)
{
    int fd = open_plain(path);
    if (fd < 0) {
        snprintf(o->why, sizeof o->why, "%.120s: %s", path, strerror(errno));
        return false;
    }
    o->dwfl = dw.dwfl_begin(callbacks());
    if (o->dwfl) {
        dw.dwfl_report_begin(o->dwfl);
        o->module =
            dw.dwfl_report_elf(o->dwfl, "module", path, fd, 0, true); /* now the descriptor is its own */
        dw.dwfl_report_end(o->dwfl, NULL, NULL);
    }
    if (!o->module) {
        close(fd);
        snprintf(o->why, sizeof o->why, "%.120s is no ELF file that can be read", path);
        let_go(o);
        return false;
    }
    if (!o->id[0] || same_id(o->module, o->id)) return true;
    snprintf(o->why, sizeof o->why, "%.120s has another build id now than when it was recorded", path);
    let_go(o);
    return false;
}

/* The debug file alone may be there: by its build id. */
static bool take_by_id(struct opened *o)
{
    static const char *const tails[] = {".debug", ""};
    char path[SYMBOL_ID_MOST + 60], why[sizeof o->why];
    if (strlen(o->id) < 4 || strspn(o->id, "0123456789abcdef") != strlen(o->id)) return false;
    memcpy(why, o->why, sizeof why);
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s%s", o->id, o->id + 2, tails[i]);
        if (take_file(o, path)) return true;
    }
    memcpy(o->why, why, sizeof why);
    return false;
}

static struct opened *open_module(const char *id, const char *path)
{
    static unsigned next;
    for (size_t i = 0; i < OPEN_MOST; i++)
        if (opened[i] && strcmp(opened[i]->id, id) == 0 && strcmp(opened[i]->path, path) == 0)
            return opened[i];
    struct opened **at = &opened[next++ % OPEN_MOST];
    if (*at) let_go(*at);
    if (!*at) *at = mem_new(1, sizeof **at);
    if (!*at) return NULL;
    snprintf((*at)->id, sizeof(*at)->id, "%s", id);
    snprintf((*at)->path, sizeof(*at)->path, "%s", path);
    if (!take_file(*at, path)) take_by_id(*at);
    return *at;
}

/* ---- frames ---- */

struct words { /* an answer on its way */
    char *at, *end;
    bool full;
};

static void put_text(struct words *w, const char *text)
{
    size_t n = strlen(text) + 1;
    if (w->full || n > (size_t)(w->end - w->at)) {
        w->full = true;
        return;
    }
    memcpy(w->at, text, n);
    w->at += n;
}

static void put_frame(struct words *w, int line, const char *name, const char *file)
{
    char digits[16];
    struct words before = *w;
    snprintf(digits, sizeof digits, "%d", line > 0 ? line : 0);
    put_text(w, digits);
    put_text(w, name ? name : "");
    put_text(w, file ? file : "");
    if (!w->full) return;
    *w = before;
    w->full = true;
}

static const char *name_of(Dwarf_Die *die)
{
    static const unsigned kinds[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name};
    Dwarf_Attribute attr;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *name = dw.dwarf_formstring(dw.dwarf_attr_integrate(die, kinds[i], &attr));
        if (name) return name;
    }
    return dw.dwarf_diename(die);
}

static uint64_t number_of(Dwarf_Die *die, unsigned kind)
{
    Dwarf_Attribute attr;
    Dwarf_Word v;
    return dw.dwarf_formudata(dw.dwarf_attr(die, kind, &attr), &v) == 0 ? v : 0;
}

struct line {
    const char *file;
    int number;
};

/* Where the call stood that was inlined. */
static struct line call_of(Dwarf_Die *inlined)
{
    Dwarf_Die cu;
    Dwarf_Files *files;
    struct line l = {NULL, (int)number_of(inlined, DW_AT_call_line)};
    if (dw.dwarf_diecu(inlined, &cu, NULL, NULL) && dw.dwarf_getsrcfiles(&cu, &files, NULL) == 0)
        l.file = dw.dwarf_filesrc(files, number_of(inlined, DW_AT_call_file), NULL, NULL);
    return l;
}

static bool is_function(Dwarf_Die *die)
{
    int tag = dw.dwarf_tag(die);
    return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_entry_point;
}

/* Functions around an address, innermost first; frees nothing of libdw's but what it gave away. */
static void put_scopes(struct words *w, Dwfl_Module *m, uint64_t address, struct line l)
{
    Dwarf_Addr bias = 0;
    Dwarf_Die *cu = dw.dwfl_module_addrdie(m, address, &bias), *scopes = NULL, innermost;
    if (!cu) return;
    int n = dw.dwarf_getscopes(cu, address - bias, &scopes);
    if (n > 0 &&
        dw.dwarf_offdie(dw.dwfl_module_getdwarf(m, &bias), dw.dwarf_dieoffset(&scopes[0]), &innermost)) {
        mem_free_libc(scopes);
        scopes = NULL;
        n = dw.dwarf_getscopes_die(&innermost, &scopes);
    }
    unsigned put = 0;
    for (int i = 0; i < n && put < SYMBOL_FRAMES_MOST && !w->full; i++) {
        if (!is_function(&scopes[i])) continue;
        put_frame(w, l.number, name_of(&scopes[i]), l.file);
        put++;
        if (dw.dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine)
            break; /* what is further out is no caller */
        l = call_of(&scopes[i]);
    }
    mem_free_libc(scopes);
}

static size_t find_frames(Dwfl_Module *m, uint64_t address, char *answer, size_t most)
{
    struct words w = {answer + 1, answer + most, false};
    struct line l = {NULL, 0};
    answer[0] = SYMBOL_FOUND;
    Dwfl_Line *at = dw.dwfl_module_getsrc(m, address);
    if (at) l.file = dw.dwfl_lineinfo(at, NULL, &l.number, NULL, NULL, NULL);
    put_scopes(&w, m, address, l);
    if (w.at > answer + 1) return (size_t)(w.at - answer);
    GElf_Off offset;
    GElf_Sym symbol;
    const char *name = dw.dwfl_module_addrinfo(m, address, &offset, &symbol, NULL, NULL, NULL);
    if (name || l.file) put_frame(&w, l.number, name, l.file);
    return (size_t)(w.at - answer);
}

size_t symbol_answer(void *ctx, char *question, size_t bytes, char *answer, size_t most)
{
    uint64_t address;
    const char *id = question + sizeof address, *path = bytes > sizeof address ? strchr(id, 0) + 1 : NULL;
    if (!path || path >= question + bytes) return say_why(answer, most, "", "no path");
    memcpy(&address, question, sizeof address);
    if (!load())
        return say_why(answer, most, "",
                       "libdw.so.1 of elfutils, which reads symbols, is not on this machine");
    debug_path = ctx;
    struct opened *o = open_module(id, path);
    if (!o) return say_why(answer, most, path, ": there is no memory for it");
    if (!o->module) return say_why(answer, most, o->why, "");
    size_t n = find_frames(o->module, address, answer, most);
    if (n > 1) return n;
    n = say_why(answer, most, path, " has no symbol there: it is stripped, and its debug file is not here");
    answer[0] = SYMBOL_BARE;
    return n;
}
#endif
