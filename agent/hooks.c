/* SPDX-License-Identifier: MIT
 * hooks.c - what the program calls in place of libc: malloc and its family, mmap and its family, dlclose. The
 * usual way through is a subtraction (malloc) or the look at one byte (free), and the real function. An allocation
 * is stamped after the real function returned and a free before it is called, so that records of one address are
 * in true order across threads. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/hot.h"

#define ALWAYS inline __attribute__((always_inline))
#define EXPORT __attribute__((visibility("default")))
#define HEAP_TICKS TICKS(31) /* about a second */

/* ---- the real functions ---- */

static void *first_malloc(size_t size);
static void *first_calloc(size_t n, size_t size);
static void *first_realloc(void *p, size_t size);
static void first_free(void *p);

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*reallocarray)(void *, size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    int (*munmap)(void *, size_t);
    void *(*mremap)(void *, size_t, size_t, int, void *);
    void *(*sbrk)(intptr_t);
    int (*brk)(void *);
    int (*dlclose)(void *);
    struct mallinfo2 (*mallinfo2)(void);
} real = {.malloc = first_malloc, .calloc = first_calloc, .realloc = first_realloc, .free = first_free};

/* libc's own, for what dlsym() itself may ask for while it looks. */
extern void *__libc_malloc(size_t) __attribute__((weak));
extern void *__libc_calloc(size_t, size_t) __attribute__((weak));
extern void *__libc_realloc(void *, size_t) __attribute__((weak));
extern void __libc_free(void *) __attribute__((weak));

/* Our own, however the program would find these names. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif
void *reallocarray(void *p, size_t n, size_t size); /* which a glibc before 2.26 does not declare */
#define OURS(name) extern __typeof__(name) hook_##name __attribute__((alias(#name), visibility("hidden")))
OURS(malloc);
OURS(calloc);
OURS(realloc);
OURS(free);
OURS(reallocarray);
OURS(memalign);
OURS(aligned_alloc);
OURS(posix_memalign);
OURS(valloc);
OURS(pvalloc);
OURS(mmap);
OURS(mmap64);
OURS(munmap);
OURS(mremap);
OURS(sbrk);
OURS(brk);
OURS(dlclose);
#undef OURS

/* An executable may stand for a function of a library by a stub of its own, which leads to the library. */
static bool is_stub(void *function)
{
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    return function && dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
           !symbol->st_shndx;
}

/* Where we are not in front: what the program calls. A stub leads to us once its table is changed; the first library
 * that has the function is meant then. */
static void *found_by_program(const char *name)
{
    void *used = dlsym(RTLD_DEFAULT, name), *out = NULL;
    Dl_info info;
    if (!is_stub(used)) return used;
    for (const struct link_map *l = _r_debug.r_map; l && !out; l = l->l_next) {
        void *h = l->l_name[0] ? dlopen(l->l_name, RTLD_NOLOAD | RTLD_LAZY) : NULL;
        void *at = h ? dlsym(h, name) : NULL;
        if (at && dladdr(at, &info) && (uint64_t)(uintptr_t)info.dli_fbase == l->l_addr) out = at;
        if (h) dlclose(h);
    }
    return out;
}

/* By name it cannot be told: tcmalloc and mimalloc have a __libc_malloc of their own. */
static bool are_of_one_library(void *a, void *b)
{
    Dl_info x, y;
    return dladdr(a, &x) && dladdr(b, &y) && x.dli_fbase == y.dli_fbase;
}

static bool resolve(bool attached)
{
    static __thread bool resolving __attribute__((tls_model("initial-exec")));
    if (resolving) return false;
    resolving = true;
#define FIND(name) *(void **)&real.name = attached ? found_by_program(#name) : dlsym(RTLD_NEXT, #name)
    FIND(reallocarray);
    FIND(memalign);
    FIND(aligned_alloc);
    FIND(posix_memalign);
    FIND(valloc);
    FIND(pvalloc);
    FIND(mmap);
    FIND(munmap);
    FIND(mremap);
    FIND(sbrk);
    FIND(brk);
    FIND(dlclose);
    FIND(mallinfo2);
    FIND(free);
    FIND(calloc);
    FIND(realloc);
    FIND(malloc);
#undef FIND
    void *libc = dlsym(attached ? RTLD_DEFAULT : RTLD_NEXT, "__libc_malloc"),
         *used = dlsym(RTLD_DEFAULT, "malloc"), *mine = &hook_malloc; /* &malloc would be the program's */
    settings.other_malloc = real.malloc && !are_of_one_library((void *)real.malloc, (void *)&getenv);
    if (attached)
        settings.libc_malloc = libc && !settings.other_malloc;
    else
        settings.libc_malloc =
            (used == mine || is_stub(used)) && libc; /* else the program's own comes before ours */
    resolving = false;
    return true;
}

static void *first_malloc(size_t size)
{
    if (resolve(false)) return real.malloc(size);
    return __libc_malloc ? __libc_malloc(size) : NULL;
}

static void *first_calloc(size_t n, size_t size)
{
    if (resolve(false)) return real.calloc(n, size);
    return __libc_calloc ? __libc_calloc(n, size) : NULL;
}

static void *first_realloc(void *p, size_t size)
{
    if (resolve(false)) return real.realloc(p, size);
    return __libc_realloc ? __libc_realloc(p, size) : NULL;
}

static void first_free(void *p)
{
    if (resolve(false))
        real.free(p);
    else if (__libc_free)
        __libc_free(p);
}

/* ---- the slow way ---- */

/* The real one, and that it is under way. A handler that jumps out leaves it so: then only HEAP is told less often. */
#define INSIDE(call)   \
    do {               \
        self.inside++; \
        call;          \
        self.inside--; \
    } while (0)

/* False: in here already, as what we call allocates, which it does only where a process joins or ends, or a signal
 * handler does: that one's are lost. A longjmp may have left without telling: then the frame that was in here lies
 * below this one. The slot it may have had stays taken. */
static ALWAYS bool enter(struct self *me)
{
    const char *here = __builtin_frame_address(0);
    if (me->busy && here < me->busy) {
        if (agent && !settings.every && agent->state == AGENT_ON)
            __atomic_fetch_add(&agent->lost_records, 1, __ATOMIC_RELAXED);
        return false;
    }
    me->busy = here;
    if (settings.attached && !me->counted) {
        me->counted = true;
        __atomic_fetch_add(&settings.in_flight, 1, __ATOMIC_ACQ_REL);
    }
    return true;
}

static ALWAYS void leave(struct self *me)
{
    me->busy = NULL;
    if (!me->counted) return;
    me->counted = false;
    __atomic_fetch_sub(&settings.in_flight, 1, __ATOMIC_ACQ_REL);
}

/* What the kernel and malloc say of the whole, about once a second. */
static void note_heap_due(struct slot *s, uint64_t now, uint64_t next)
{
    char text[128];
    uint64_t pages[3] = {0};
    if (!__atomic_compare_exchange_n(&agent->next_heap, &next, now + HEAP_TICKS, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
        return;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) close(fd);
    if (n <= 0) return;
    text[n] = 0;
    const char *c = text;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < 3; i++, c++)
        for (; *c >= '0' && *c <= '9'; c++) pages[i] = pages[i] * 10 + (uint64_t)(*c - '0');
    struct memory_record r = {.kind = MEMORY_HEAP, .text = ""};
    r.HEAP.at = now;
    r.HEAP.resident = pages[1] * page;
    r.HEAP.file = pages[2] * page;
    if (real.mallinfo2 && settings.libc_malloc) {
        struct mallinfo2 m = real.mallinfo2();
        r.HEAP.held = m.arena + m.hblkhd;
        r.HEAP.used = m.uordblks + m.hblkhd;
        r.HEAP.mapped = m.hblkhd;
        r.HEAP.top = m.keepcost;
    }
    slot_put(s, &r);
}

static inline void note_heap(struct slot *s, uint64_t now)
{
    uint64_t next = __atomic_load_n(&agent->next_heap, __ATOMIC_RELAXED);
    if (__builtin_expect(now >= next, 0) && !self.inside) note_heap_due(s, now, next);
}

/* ALLOC or MAP, v[0] and v[3] of it, with the stack of the hook's caller. */
static ALWAYS void put_stacked(struct memory_record *r, void *const *fp, bool object)
{
    struct stack stack;
    stack_walk(&stack, fp, object);
    struct slot *s = slot_take();
    if (!s) return;
    uint64_t now = r->v[0] = agent_ticks();
    if (slots_time(s, now)) {
        r->v[3] = stack_number(s, &stack);
        if (r->kind == MEMORY_ALLOC) {
            slot_block(s, MEMORY_ALLOC, r->v);
            note_heap(s, now); /* asks malloc: not where a signal handler may jump out of mmap */
        } else
            slot_put(s, r);
        slots_stalled(s, now);
    }
    slot_give(s);
}

/* Is it to be told? */
static ALWAYS bool is_due(struct self *me, void *p, size_t size)
{
    if (__builtin_expect(!agent || __atomic_load_n(&agent->state, __ATOMIC_ACQUIRE) != AGENT_ON, 0) &&
        !agent_ready()) {
        me->left = settings.on && agent && agent->state == AGENT_JOINING ? 0 : INT64_C(1) << 40;
        return false;
    }
    if (settings.every) return sample_due(me, size) && sample_keep((uint64_t)(uintptr_t)p);
    me->left = 0;
    return true;
}

static ALWAYS void note_block(void *p, size_t size, void *const *fp, bool object)
{
    struct self *me = &self;
    int saved = errno;
    if (!enter(me)) {
        if (!settings.every) me->left = 0;
        return;
    }
    if (is_due(me, p, size)) {
        struct memory_record r;
        r.kind = MEMORY_ALLOC;
        r.text = "";
        r.v[1] = (uint64_t)(uintptr_t)p;
        r.v[2] = size;
        put_stacked(&r, fp, object);
    }
    if (__builtin_expect(interpreter.known && !interpreter.hooked, 0) && agent && agent->state == AGENT_ON)
        python_hook();
    leave(me);
    errno = saved;
}

void note_alloc(void *p, size_t size, void *const *fp)
{
    note_block(p, size, fp, false);
}

void note_object(void *p, size_t size, void *const *fp)
{
    note_block(p, size, fp, true);
}

static ALWAYS void put_free(struct slot *s, void *p, uint64_t at)
{
    const uint64_t v[2] = {at, (uint64_t)(uintptr_t)p};
    if (!s || !slots_time(s, at)) return;
    slot_block(s, MEMORY_FREE, v);
    note_heap(s, at);
}

void note_free(void *p)
{
    struct self *me = &self;
    int saved = errno;
    if (!p || !enter(me)) return;
    if (agent && __atomic_load_n(&agent->state, __ATOMIC_RELAXED) == AGENT_ON &&
        (!settings.every || sample_forget((uint64_t)(uintptr_t)p))) {
        struct slot *s = slot_take();
        put_free(s, p, agent_ticks());
        if (s) slot_give(s);
    }
    leave(me);
    errno = saved;
}

/* The old block is told as freed only if it was, and at the time before: the slot is kept meanwhile, so that its
 * records stay in order. */
static void *slow_realloc(void *p, size_t size, void *const *fp)
{
    struct self *me = &self;
    bool known = false;
    struct slot *s = NULL;
    uint64_t before = 0;
    if (me->within || !enter(me)) return real.realloc(p, size);
    if (agent && agent->state == AGENT_ON) known = !settings.every || sample_forget((uint64_t)(uintptr_t)p);
    if (known && (s = slot_take())) before = agent_ticks();
    void *q;
    INSIDE(q = real.realloc(p, size));
    int saved = errno;
    bool gone = q || !size;
    if (gone) put_free(s, p, before);
    if (!gone && known && settings.every) sample_keep((uint64_t)(uintptr_t)p);
    if (s) slot_give(s);
    leave(me);
    if (q && (me->left -= (int64_t)size) <= 0) note_alloc(q, size, fp);
    errno = saved;
    return q;
}

/* ---- malloc and its family ---- */

#define HERE ((void *const *)__builtin_frame_address(0))
/* Sizes that no allocation can have have failed: they are not subtracted. */
#define COUNTED(p, size)                                                                  \
    do {                                                                                  \
        self_renew(&self);                                                                \
        if (__builtin_expect((p) != NULL, 1) && (self.left -= (int64_t)(size)) <= 0)      \
            note_alloc(p, size, HERE);                                                    \
    } while (0)

EXPORT void *malloc(size_t size)
{
    void *p;
    INSIDE(p = real.malloc(size));
    COUNTED(p, size);
    return p;
}

EXPORT void *calloc(size_t n, size_t size)
{
    void *p;
    INSIDE(p = real.calloc(n, size));
    COUNTED(p, n * size);
    return p;
}

EXPORT void free(void *p)
{
    if (filter_may_know(p) && !self.within) note_free(p);
    INSIDE(real.free(p));
}

EXPORT void *realloc(void *p, size_t size)
{
    if (p && filter_may_know(p)) return slow_realloc(p, size, HERE);
    void *q;
    INSIDE(q = real.realloc(p, size));
    COUNTED(q, size);
    return q;
}

EXPORT void *reallocarray(void *p, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    if (p && filter_may_know(p)) return slow_realloc(p, bytes, HERE);
    void *q = real.realloc(p, bytes);
    COUNTED(q, bytes);
    return q;
}

EXPORT void *memalign(size_t align, size_t size)
{
    if (!real.memalign && !(resolve(false) && real.memalign)) return NULL;
    void *p = real.memalign(align, size);
    COUNTED(p, size);
    return p;
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
    if (!real.aligned_alloc && !(resolve(false) && real.aligned_alloc)) return NULL;
    void *p = real.aligned_alloc(align, size);
    COUNTED(p, size);
    return p;
}

EXPORT int posix_memalign(void **out, size_t align, size_t size)
{
    if (!real.posix_memalign && !(resolve(false) && real.posix_memalign)) return ENOMEM;
    int rc = real.posix_memalign(out, align, size);
    if (rc == 0) COUNTED(*out, size);
    return rc;
}

EXPORT void *valloc(size_t size)
{
    if (!real.valloc && !(resolve(false) && real.valloc)) return NULL;
    void *p = real.valloc(size);
    COUNTED(p, size);
    return p;
}

EXPORT void *pvalloc(size_t size)
{
    if (!real.pvalloc && !(resolve(false) && real.pvalloc)) return NULL;
    void *p = real.pvalloc(size);
    COUNTED(p, size);
    return p;
}

/* ---- mappings ---- */

/* What jemalloc and the like map is told once more by malloc. */
static bool is_of_malloc(void *const *fp)
{
    if (!settings.other_malloc) return false;
    int caller = module_at((uint64_t)(uintptr_t)fp[1]);
    return caller >= 0 && caller == module_at((uint64_t)(uintptr_t)real.malloc);
}

static void note_map(void *p, size_t size, uint64_t what, void *const *fp)
{
    struct self *me = &self;
    int saved = errno;
    if (!settings.on || !enter(me)) return;
    if (agent_ready()) {
        uint64_t arena = me->within ? MEMORY_MAP_ARENA : 0;
        if (is_of_malloc(fp)) arena = MEMORY_MAP_MALLOC;
        struct memory_record r = {
            .kind = MEMORY_MAP, .text = "", .v = {0, (uint64_t)(uintptr_t)p, size, 0, what | arena}};
        put_stacked(&r, fp, false);
        python_hook();
    }
    leave(me);
    errno = saved;
}

/* As slow_realloc(): told only if it was done, at the time before, in a slot that is kept meanwhile. `to`: where it is
 * moved to by mremap(), else NULL. */
struct unmapping {
    void *p;
    size_t size;
    void *to;
    size_t new_size;
    int flags;
};

static void *do_unmap(const struct unmapping *u)
{
    if (u->new_size) return real.mremap(u->p, u->size, u->new_size, u->flags, u->to);
    return real.munmap(u->p, u->size) == 0 ? NULL : MAP_FAILED;
}

static void *unmap(const struct unmapping *u)
{
    struct self *me = &self;
    if (!agent || __atomic_load_n(&agent->state, __ATOMIC_RELAXED) != AGENT_ON || !enter(me))
        return do_unmap(u);
    struct slot *s = slot_take();
    struct memory_record r = {
        .kind = MEMORY_UNMAP, .text = "", .v = {agent_ticks(), (uint64_t)(uintptr_t)u->p, u->size}};
    void *q = do_unmap(u);
    int saved = errno;
    if (s && q != MAP_FAILED) slot_put(s, &r);
    if (s) slot_give(s);
    leave(me);
    errno = saved;
    return q;
}

static uint64_t map_kind(int flags)
{
    return flags & MAP_ANONYMOUS ? MEMORY_MAP_ANONYMOUS : MEMORY_MAP_FILE;
}

/* Address space that is only set aside is not memory. Twice, by the two names that libc has for it. */
#define MAP_HOOK(name)                                                                                     \
    EXPORT void *name(void *at, size_t size, int prot, int flags, int fd, off_t offset)                    \
    {                                                                                                      \
        if (!real.mmap && !(resolve(false) && real.mmap)) return MAP_FAILED;                                    \
        void *p = real.mmap(at, size, prot, flags, fd, offset);                                            \
        if (p != MAP_FAILED && prot != PROT_NONE) note_map(p, size, map_kind(flags), HERE);                \
        return p;                                                                                          \
    }
MAP_HOOK(mmap)
MAP_HOOK(mmap64)

EXPORT int munmap(void *p, size_t size)
{
    if (!real.munmap && !(resolve(false) && real.munmap)) return -1;
    return unmap(&(struct unmapping){.p = p, .size = size}) == MAP_FAILED ? -1 : 0;
}

EXPORT void *mremap(void *p, size_t old_size, size_t size, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(ap, void *) : NULL;
    va_end(ap);
    if (!real.mremap && !(resolve(false) && real.mremap)) return MAP_FAILED;
    if (!size) return real.mremap(p, old_size, size, flags, to); /* an error */
    void *q = unmap(&(struct unmapping){p, old_size, to, size, flags});
    if (q != MAP_FAILED) note_map(q, size, MEMORY_MAP_ANONYMOUS, HERE);
    return q;
}

/* The end of the heap, moved by the program itself: libc's malloc does not come by here. */
static void note_break(char *was, intptr_t by, void *const *fp)
{
    struct self *me = &self;
    int saved = errno;
    if (by > 0) note_map(was, (size_t)by, MEMORY_MAP_ANONYMOUS, fp);
    if (by >= 0 || !agent || __atomic_load_n(&agent->state, __ATOMIC_RELAXED) != AGENT_ON || !enter(me)) return;
    struct slot *s = slot_take();
    struct memory_record r = {
        .kind = MEMORY_UNMAP, .text = "", .v = {agent_ticks(), (uint64_t)(uintptr_t)(was + by), (uint64_t)-by}};
    if (s) slot_put(s, &r);
    if (s) slot_give(s);
    leave(me);
    errno = saved;
}

EXPORT void *sbrk(intptr_t by)
{
    if (!real.sbrk && !(resolve(false) && real.sbrk)) return (void *)-1;
    void *was = real.sbrk(by);
    if (was != (void *)-1 && by) note_break(was, by, HERE);
    return was;
}

EXPORT int brk(void *end)
{
    if (!real.brk && !(resolve(false) && real.brk)) return -1;
    char *was = real.sbrk(0);
    int rc = real.brk(end);
    if (rc == 0 && was != end) note_break(was, (char *)end - was, HERE);
    return rc;
}

/* ---- libraries that go ---- */

EXPORT int dlclose(void *handle)
{
    struct self *me = &self;
    if (!real.dlclose && !(resolve(false) && real.dlclose)) return -1;
    int rc = real.dlclose(handle);
    if (!agent || __atomic_load_n(&agent->state, __ATOMIC_RELAXED) != AGENT_ON || !enter(me)) return rc;
    int saved = errno;
    modules_look(true);
    leave(me);
    errno = saved;
    return rc;
}

/* ---- the end ---- */

/* exit() comes to our destructor by itself; this comes to nobody, and each child of a shell would leave its live file.
 * Not what a child of vfork() does, which is in its parent's memory, nor a signal handler that interrupted us. */
EXPORT void _exit(int status)
{
    bool ours = agent && __atomic_load_n(&agent->pid, __ATOMIC_RELAXED) == (uint32_t)getpid();
    if (ours && !self.busy) agent_end();
    for (;;) syscall(SYS_exit_group, status);
}
EXPORT void _Exit(int status) __attribute__((alias("_exit")));

/* ---- all of them ---- */

#if defined(__x86_64__)
extern void hook_dlopen(void) __attribute__((visibility("hidden")));
extern void *attach_dlopen __attribute__((visibility("hidden")));
#endif

/* Asked for each function that each library calls, at each begin of a block: a hundred thousand names where PyTorch
 * is, nearly all of C++, which begin with an underscore as none of ours does. */
const struct hook *hook_named(const char *name)
{
#define ROW(name, of) {#name, (void *)hook_##name, (void **)&real.of}
    static const struct hook all[] = {
        ROW(malloc, malloc),
        ROW(calloc, calloc),
        ROW(realloc, realloc),
        ROW(free, free),
        ROW(reallocarray, reallocarray),
        ROW(memalign, memalign),
        ROW(aligned_alloc, aligned_alloc),
        ROW(posix_memalign, posix_memalign),
        ROW(valloc, valloc),
        ROW(pvalloc, pvalloc),
        ROW(mmap, mmap),
        ROW(mmap64, mmap),
        ROW(munmap, munmap),
        ROW(mremap, mremap),
        ROW(sbrk, sbrk),
        ROW(brk, brk),
        ROW(dlclose, dlclose),
#if defined(__x86_64__)
        {"dlopen", (void *)hook_dlopen, &attach_dlopen},
#endif
    };
#undef ROW
    if (*name == '_') return NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (*name == *all[i].name && strcmp(name, all[i].name) == 0) return &all[i];
    return NULL;
}

bool hooks_resolve(void)
{
    if (real.malloc == first_malloc) resolve(true);
    return real.malloc && real.malloc != first_malloc && real.free && real.mmap;
}
