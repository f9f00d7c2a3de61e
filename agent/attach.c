/* SPDX-License-Identifier: MIT
 * attach.c - the agent in a program that runs already, for a while: begun and ended by the Python package. What
 * libraries call is in their relocation tables: there our functions are put in the place of malloc and its family, and
 * taken out again at the end. Only places that hold what the program itself would call are changed, so that a library
 * with an allocator of its own keeps it. Begun and ended with the GIL held; asks the loader only there, and where a
 * library came since, with the GIL held again, as an import does. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "agent/hot.h"
#include "trace/recorder.h"

enum { PATCHES_MOST = 1 << 15, LOOKS = 64, END_TRIES = 10000 };

struct patch {
    void **slot;
    void *was, *is;
};

static struct {
    struct patch *items; /* of our own memory; kept between sessions */
    uint32_t n;
    unsigned long long adds; /* libraries that the loader has ever had, when we looked last */
    struct agent *block;
} table;

#if defined(__x86_64__)
enum { CALLED = R_X86_64_JUMP_SLOT, POINTED = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { CALLED = R_AARCH64_JUMP_SLOT, POINTED = R_AARCH64_GLOB_DAT };
#else
enum { CALLED = -1, POINTED = -1 };
#endif

/* ---- dlopen: noted, then gone to as if it had been called directly, as it looks at who calls it ---- */

uint32_t attach_looks; /* times left to see whether a library has come */
#if defined(__x86_64__)
extern void hook_dlopen(void) __attribute__((visibility("hidden")));
void *attach_dlopen __attribute__((visibility("hidden"), used));
__asm__(".text\n"
        ".hidden hook_dlopen\n"
        ".globl hook_dlopen\n"
        ".type hook_dlopen, @function\n"
        "hook_dlopen:\n"
        "    movl $64, attach_looks(%rip)\n"
        "    jmp *attach_dlopen(%rip)\n"
        ".size hook_dlopen, .-hook_dlopen\n");
#endif

/* ---- one library ---- */

struct object {
    const struct dl_phdr_info *info;
    uint64_t relro, relro_end;
    const Elf64_Sym *symbols;
    const char *names;
};

static uint64_t absolute(const struct object *o, uint64_t address)
{
    return address < o->info->dlpi_addr ? address + o->info->dlpi_addr : address;
}

static bool is_own_code(const struct object *o, uint64_t address)
{
    for (unsigned i = 0; i < o->info->dlpi_phnum; i++) {
        const Elf64_Phdr *p = &o->info->dlpi_phdr[i];
        uint64_t start = o->info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && p->p_flags & PF_X && address >= start && address < start + p->p_memsz)
            return true;
    }
    return false;
}

static bool write_slot(const struct object *o, void **slot, void *value)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = (uint64_t)(uintptr_t)slot;
    void *from = (void *)(uintptr_t)(at & ~(page - 1));
    bool sealed = at >= o->relro && at < o->relro_end;
    if (sealed && mprotect(from, page, PROT_READ | PROT_WRITE) != 0) return false;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (sealed) mprotect(from, page, PROT_READ);
    return true;
}

/* What the program would call: already found, or still to be looked for by a stub of the library's own. */
static void patch_slot(const struct object *o, const Elf64_Rela *r)
{
    const struct hook *h = hook_named(o->names + o->symbols[ELF64_R_SYM(r->r_info)].st_name);
    void **slot = (void **)(uintptr_t)(o->info->dlpi_addr + r->r_offset);
    if (!h || !*h->real || table.n >= PATCHES_MOST) return;
    void *was = __atomic_load_n(slot, __ATOMIC_RELAXED);
    bool unbound = ELF64_R_TYPE(r->r_info) == CALLED && is_own_code(o, (uint64_t)(uintptr_t)was);
    if (was != *h->real && !unbound) return;
    if (write_slot(o, slot, h->hook)) table.items[table.n++] = (struct patch){slot, was, h->hook};
}

static void patch_all(const struct object *o, uint64_t at, uint64_t bytes)
{
    const Elf64_Rela *r = (const Elf64_Rela *)(uintptr_t)at;
    for (uint64_t i = 0; at && i < bytes / sizeof *r; i++)
        if ((int)ELF64_R_TYPE(r[i].r_info) == CALLED || (int)ELF64_R_TYPE(r[i].r_info) == POINTED)
            patch_slot(o, &r[i]);
}

static bool look_at(struct object *o, const Elf64_Dyn **dynamic)
{
    for (unsigned i = 0; i < o->info->dlpi_phnum; i++) {
        const Elf64_Phdr *p = &o->info->dlpi_phdr[i];
        if (p->p_type == PT_DYNAMIC)
            *dynamic = (const Elf64_Dyn *)(uintptr_t)(o->info->dlpi_addr + p->p_vaddr);
        if (p->p_type != PT_GNU_RELRO) continue;
        o->relro = (o->info->dlpi_addr + p->p_vaddr) & ~UINT64_C(4095);
        o->relro_end = o->info->dlpi_addr + p->p_vaddr + p->p_memsz;
    }
    const char *name = o->info->dlpi_name;
    bool loader = strstr(name, "/ld-linux") || strstr(name, "linux-vdso"),
         ours = is_own_code(o, (uint64_t)(uintptr_t)&look_at);
    return *dynamic && !loader && !ours;
}

static int patch_object(struct dl_phdr_info *info, size_t bytes, void *ctx)
{
    struct object o = {.info = info};
    const Elf64_Dyn *d = NULL;
    uint64_t v[DT_JMPREL + 1] = {0};
    (void)bytes, (void)ctx;
    table.adds = info->dlpi_adds;
    if (!look_at(&o, &d)) return 0;
    for (; d->d_tag != DT_NULL; d++)
        if (d->d_tag > 0 && d->d_tag <= DT_JMPREL) v[d->d_tag] = d->d_un.d_val;
    if (!v[DT_SYMTAB] || !v[DT_STRTAB]) return 0;
    o.symbols = (const Elf64_Sym *)(uintptr_t)absolute(&o, v[DT_SYMTAB]);
    o.names = (const char *)(uintptr_t)absolute(&o, v[DT_STRTAB]);
    if (v[DT_PLTREL] == DT_RELA && v[DT_JMPREL]) patch_all(&o, absolute(&o, v[DT_JMPREL]), v[DT_PLTRELSZ]);
    if (v[DT_RELA]) patch_all(&o, absolute(&o, v[DT_RELA]), v[DT_RELASZ]);
    return 0;
}

/* Of a library that is gone nothing is left to restore; where another came in its place, the slot is not ours. */
static int restore_object(struct dl_phdr_info *info, size_t bytes, void *ctx)
{
    struct object o = {.info = info};
    const Elf64_Dyn *d = NULL;
    (void)bytes, (void)ctx;
    if (!look_at(&o, &d)) return 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *p = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + p->p_vaddr;
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_W)) continue;
        for (uint32_t k = 0; k < table.n; k++) {
            const struct patch *t = &table.items[k];
            uint64_t at = (uint64_t)(uintptr_t)t->slot;
            if (at < start || at >= start + p->p_memsz || *t->slot != t->is) continue;
            write_slot(&o, t->slot, t->was);
        }
    }
    return 0;
}

static int count_adds(struct dl_phdr_info *info, size_t bytes, void *ctx)
{
    (void)bytes;
    *(unsigned long long *)ctx = info->dlpi_adds;
    return 1;
}

/* A library that came since calls us, too. With the GIL held. */
void attach_look(void)
{
    unsigned long long adds = table.adds;
    __atomic_fetch_sub(&attach_looks, 1, __ATOMIC_RELAXED);
    if (!settings.attached || !settings.on) return;
    dl_iterate_phdr(count_adds, &adds);
    if (adds == table.adds) return;
    attach_looks = 0;
    dl_iterate_phdr(patch_object, NULL);
}

/* ---- begin and end ---- */

#define API __attribute__((visibility("default")))

const char *tare_memory_begin(const char *trace, uint64_t every, uint32_t frames);
const char *tare_memory_end(void);

static const char *prepare(const char *trace, uint64_t every, uint32_t frames)
{
    if (settings.on && !settings.attached) return "tare run --memory records this program already";
    if (settings.on && settings.attached == (uint32_t)getpid())
        return "a block of this program is being recorded already";
    if (strlen(trace) >= sizeof settings.trace - 40) return "the path of the trace is too long";
    if (CALLED < 0) return "this processor is not known: x86-64 and aarch64 are";
    if (!table.items) table.items = process_memory(PATCHES_MOST * sizeof *table.items);
    if (!table.block) {
        table.block = process_memory(sizeof *table.block);
        if (table.block && madvise(table.block, sizeof *table.block, MADV_WIPEONFORK) != 0)
            table.block = NULL;
    } else
        madvise(table.block, sizeof *table.block, MADV_DONTNEED); /* zeros again */
    if (!table.items || !table.block) return "there is no memory for it";
    snprintf(settings.trace, sizeof settings.trace, "%s", trace);
    settings.every = every;
    settings.frames = frames < FRAMES_MOST ? frames : FRAMES_MOST - 1;
#if defined(__x86_64__)
    settings.native = true;
#endif
    return hooks_resolve() ? NULL : "malloc of this program could not be found";
}

/* NULL: it records. Else why not, and nothing was changed. */
API const char *tare_memory_begin(const char *trace, uint64_t every, uint32_t frames)
{
    const char *why = prepare(trace, every, frames);
    if (why) return why;
    self.busy = __builtin_frame_address(0);
    clock_detect(&settings.clock, false);
    python_find();
    scopes_find();
    settings.attached = (uint32_t)getpid();
    settings.in_flight = 0;
    agent = table.block;
    settings.on = true;
    if (!agent_ready()) {
        settings.on = false;
        settings.attached = 0;
        self.busy = NULL;
        return "the trace could not be opened, or the disk is full";
    }
    set_filter = agent->filter;
    __atomic_add_fetch(&settings.session, 1, __ATOMIC_RELEASE);
#if defined(__x86_64__)
    attach_dlopen = dlsym(RTLD_DEFAULT, "dlopen");
#endif
    dl_iterate_phdr(patch_object, NULL);
    python_hook();
    self.busy = NULL;
    return NULL;
}

/* Who is within a record is waited for; one that left by a longjmp never comes back: then its memory stays. */
static bool wait_for_others(void)
{
    for (int i = 0; i < END_TRIES; i++) {
        if (!__atomic_load_n(&settings.in_flight, __ATOMIC_ACQUIRE)) return true;
        nanosleep(&(struct timespec){0, 100000}, NULL);
    }
    return false;
}

/* NULL: the trace is whole. */
API const char *tare_memory_end(void)
{
    uint32_t on = AGENT_ON;
    if (!settings.on || settings.attached != (uint32_t)getpid()) return "nothing is being recorded";
    self.busy = __builtin_frame_address(0);
    python_unhook();
    dl_iterate_phdr(restore_object, NULL);
    table.n = 0;
    settings.on = false;
    bool was_on =
        __atomic_compare_exchange_n(&agent->state, &on, AGENT_OFF, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    bool alone = wait_for_others();
    if (was_on) slots_close();
    set_filter = no_filter;
    bool whole = was_on && !agent->full;
    if (alone)
        munmap(agent->live, agent->live_bytes);
    else
        table.block = NULL; /* the next one gets another */
    agent->live = NULL;
    settings.attached = 0;
    self.busy = NULL;
    return whole ? NULL : "the disk was full, or the trace was taken away: what came before that is in it";
}
