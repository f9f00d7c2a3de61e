/* SPDX-License-Identifier: MIT
 * py_process.c - which interpreter a process has, and its threads. The version is told by symbols that appeared with
 * it; its offsets are tried out before anybody uses them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/buf.h"
#include "core/mem.h"
#include "sample/py_process.h"

/* ---- where it is ---- */

struct found {
    uint64_t runtime, code_type, version_at, eval;
    bool has_310, has_39, debug;
};

static bool look_at(const struct peek *p, uint64_t base, struct found *out)
{
    struct elf_loaded e;
    uint64_t ignored;
    *out = (struct found){0};
    if (!elf_open(&e, p, base) || !elf_find(&e, "_PyRuntime", &out->runtime)) return false;
    if (!elf_find(&e, "PyCode_Type", &out->code_type)) return false;
    if (!elf_find(&e, "Py_Version", &out->version_at)) out->version_at = 0;
    if (!elf_find(&e, "_PyEval_EvalFrameDefault", &out->eval)) out->eval = 0;
    out->has_310 = elf_find(&e, "PyModule_AddObjectRef", &ignored);
    out->has_39 = elf_find(&e, "PyFrame_GetCode", &ignored);
    out->debug = elf_find(&e, "_Py_NegativeRefcount", &ignored);
    return true;
}

static bool find_interpreter(struct py_process *p, const struct mappings *m, struct found *out)
{
    for (size_t i = 0; i < m->items.n; i++) {
        const struct mapping *one = &m->items.items[i];
        if (one->offset || !one->path[0] || !look_at(&p->peek, one->start, out)) continue;
        snprintf(p->file, sizeof p->file, "%s", one->path);
        return true;
    }
    return false;
}

/* ---- which one it is ---- */

static tare_status read_layout(struct py_process *p, const struct found *f, tare_error *err)
{
    uint32_t version = f->has_39 ? 0x03090000 : 0;
    if (f->has_310) version = 0x030a0000;
    if (f->version_at && !peek_u32(&p->peek, f->version_at, &version))
        return peek_explain(p->peek.pid, errno, err);
    p->version = version;
    if (f->debug)
        return error_set(err, TARE_UNSUPPORTED, "a debug build of Python keeps its frames in another way");
    if (version >> 16 < PY_OLDEST)
        return error_set(err, TARE_UNSUPPORTED, "Python before 3.9 is not known to this tare");
    if (version >> 16 >= PY_SELF_TOLD) {
        uint8_t told[PY_OFFSETS_BYTES];
        if (!peek_bytes(&p->peek, f->runtime, told, sizeof told))
            return peek_explain(p->peek.pid, errno, err);
        return py_layout_told(&p->at, told, err);
    }
    const struct py_layout *known = py_layout_known(version >> 16);
    if (!known)
        return error_set(err, TARE_UNSUPPORTED,
                         "Python 3.%u: where it keeps its frames is not known to this tare",
                         version >> 16 & 255);
    p->at = *known;
    return TARE_OK;
}

static tare_status does_not_fit(const struct py_process *p, const char *what, tare_error *err)
{
    return error_set(
        err, TARE_UNSUPPORTED,
        "its layout is not that of Python 3.%u (%s): it still starts, or was built with other options",
        p->at.version & 255, what);
}

/* Does what the offsets lead to fit together? A thread must point back to its interpreter, have a number that the
 * system knows, and a stack of functions. */
static tare_status try_out(struct py_process *p, tare_error *err)
{
    struct py_threads t = {.items = VEC_INIT};
    struct py_stack stack = {.frames = VEC_INIT};
    tare_status s = py_threads_read(p, &t, err);
    unsigned good = 0, bad = 0, known = 0;
    for (size_t i = 0; s == TARE_OK && i < t.items.n && i < 16; i++) {
        struct py_thread *one = &t.items.items[i];
        known += one->tid != 0;
        for (unsigned tries = 0; tries < 4; tries++) { /* it runs: one look may be unlucky */
            bool read = py_stack_read(p, one, &stack);
            good += read && !(stack.doubt & (PY_BROKEN | PY_OUTSIDE));
            bad += read && stack.doubt & (PY_BROKEN | PY_OUTSIDE);
        }
    }
    if (s == TARE_OK && t.items.n == 0) s = does_not_fit(p, "no thread", err);
    if (s == TARE_OK && !known) s = does_not_fit(p, "numbers of threads", err);
    if (s == TARE_OK && good == 0 && bad) s = does_not_fit(p, "frames", err);
    vec_release(&stack.frames);
    vec_release(&t.items);
    return s;
}

static void name_of(pid_t pid, char *out, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(path, out, size - 1);
    out[n > 0 ? n : 0] = 0;
}

tare_status py_open(struct py_process *p, struct peek from, tare_error *err)
{
    struct mappings m = {VEC_INIT};
    struct found f;
    char exe[256];
    p->peek = from;
    tare_status s = peek_check(&p->peek, err);
    if (s == TARE_OK) s = mappings_read(&m, from.pid, err);
    if (s == TARE_OK && !find_interpreter(p, &m, &f)) {
        name_of(from.pid, exe, sizeof exe);
        s = error_set(err, TARE_UNSUPPORTED, "process %d: holds no Python interpreter (it runs %s)",
                      (int)from.pid, exe[0] ? exe : "an unknown program");
    } else if (s == TARE_OK) {
        p->runtime = f.runtime;
        p->code_type = f.code_type;
        p->eval = f.eval;
        s = read_layout(p, &f, err);
        if (s == TARE_OK) s = try_out(p, err);
        if (s != TARE_OK) error_wrap(err, "process %d (%s)", (int)from.pid, p->file);
    }
    mappings_release(&m);
    return s;
}

void py_release(struct py_process *p)
{
    for (size_t i = 0; i < p->codes.n; i++) mem_free(p->codes.items[i]);
    vec_release(&p->codes);
    map_u64_release(&p->code);
    arena_release(&p->arena);
}

/* ---- threads ---- */

/* Before 3.11 a thread knows only the address of its descriptor, in which libc keeps the number. Where depends on the
 * libc: a number is believed if the process has such a thread. */
static pid_t tid_of_descriptor(const struct py_process *p, uint64_t descriptor)
{
    static const unsigned places[] = {720 /* glibc x86-64 */, 208 /* glibc aarch64 */, 48, 56 /* musl */};
    char path[64];
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        uint32_t tid;
        if (!peek_u32(&p->peek, descriptor + places[i], &tid) || tid == 0 || tid > INT32_MAX) continue;
        snprintf(path, sizeof path, "/proc/%d/task/%u", (int)p->peek.pid, tid);
        if (access(path, F_OK) == 0) return (pid_t)tid;
    }
    return 0;
}

static pid_t tid_of(const struct py_process *p, const uint8_t *state)
{
    if (p->at.thread_native < 0) return tid_of_descriptor(p, peek_field(state, (size_t)p->at.thread_ident));
    uint64_t native = peek_field(state, (size_t)p->at.thread_native);
    char path[64];
    if (native == 0 || native > INT32_MAX) return 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)p->peek.pid, (int)native);
    /* In a container the number is that of the container: then it is not ours. */
    return access(path, F_OK) == 0 ? (pid_t)native : 0;
}

static const struct py_thread *thread_before(const struct py_threads *before, size_t n, uint64_t state,
                                             uint64_t ident)
{
    for (size_t i = 0; i < n; i++) /* mostly the next one: the order changes little */
        if (before->items.items[i].state == state && before->items.items[i].ident == ident)
            return &before->items.items[i];
    return NULL;
}

enum { STATE_BYTES = 512 };

static tare_status read_list(struct py_process *p, uint64_t interp, struct py_threads *t, size_t before,
                             tare_error *err)
{
    uint64_t at;
    uint8_t state[STATE_BYTES];
    if (!peek_u64(&p->peek, interp + (uint64_t)p->at.interp_threads, &at))
        return peek_explain(p->peek.pid, errno, err);
    tare_status s = TARE_OK;
    for (size_t n = 0; at && s == TARE_OK && n < PY_THREADS_MOST; n++) {
        size_t want = (size_t)(p->at.thread_chunk > 0 ? p->at.thread_chunk : p->at.thread_ident) + 32;
        if (!peek_bytes(&p->peek, at, state, want < sizeof state ? want : sizeof state))
            break; /* it ended meanwhile */
        if (peek_field(state, (size_t)p->at.thread_interp) != interp) break;
        struct py_thread one = {
            .state = at, .interp = interp, .ident = peek_field(state, (size_t)p->at.thread_ident)};
        const struct py_thread *known = thread_before(t, before, at, one.ident);
        if (known)
            one = *known;
        else
            one.tid = tid_of(p, state);
        s = vec_push(&t->items, one, err);
        at = peek_field(state, (size_t)p->at.thread_next);
    }
    return s;
}

tare_status py_threads_read(struct py_process *p, struct py_threads *t, tare_error *err)
{
    uint64_t interp, next;
    size_t before = t->items.n;
    if (!peek_u64(&p->peek, p->runtime + (uint64_t)p->at.runtime_interpreters, &interp))
        return peek_explain(p->peek.pid, errno, err);
    tare_status s = TARE_OK;
    for (unsigned n = 0; interp && s == TARE_OK && n < PY_INTERPRETERS_MOST; n++, interp = next) {
        s = read_list(p, interp, t, before, err);
        if (!peek_u64(&p->peek, interp + (uint64_t)p->at.interp_next, &next)) break;
    }
    size_t fresh = t->items.n - before;
    if (fresh) memmove(t->items.items, t->items.items + before, fresh * sizeof t->items.items[0]);
    t->items.n = fresh;
    if (s == TARE_OK) py_gil_read(p, t);
    return s;
}

/* ---- the lock ---- */

static bool read_lock(const struct py_process *p, uint64_t interp, uint64_t *holder, bool *locked)
{
    uint64_t lock = p->runtime;
    uint32_t is;
    if (p->at.gil_pointer >= 0 && !peek_u64(&p->peek, interp + (uint64_t)p->at.gil_pointer, &lock))
        return false;
    if (!peek_u64(&p->peek, lock + (uint64_t)p->at.gil_holder, holder) ||
        !peek_u32(&p->peek, lock + (uint64_t)p->at.gil_locked, &is) || (is != 0 && is != 1))
        return false;
    *locked = is == 1;
    return true;
}

void py_gil_read(const struct py_process *p, struct py_threads *t)
{
    uint64_t interp = 0, holder = 0;
    uint32_t collecting = 0;
    bool locked = false;
    t->gil_known = t->items.n > 0;
    for (size_t i = 0; i < t->items.n; i++) {
        struct py_thread *one = &t->items.items[i];
        if (one->interp != interp) {
            interp = one->interp;
            t->gil_known = t->gil_known && read_lock(p, interp, &holder, &locked);
            if (!peek_u32(&p->peek, interp + (uint64_t)p->at.interp_gc, &collecting)) collecting = 0;
        }
        one->holds_gil = t->gil_known && locked && one->state == holder;
        one->collects = one->holds_gil && collecting == 1;
    }
}
