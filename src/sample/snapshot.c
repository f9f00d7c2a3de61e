/* SPDX-License-Identifier: MIT
 * snapshot.c - one look at all threads of a process: see snapshot.h. */
#include <errno.h>
#include <string.h>

#include "sample/snapshot.h"

enum { LOOKS = 5, LOCK_BYTES = 256 };
#define PATIENCE_NS UINT64_C(3000000000) /* on a busy machine a thread gets to stop late; there is but this one look */

struct shooting {
    struct snapshot *s;
    struct py_process *py; /* NULL: none */
    const struct snapshot_wish *wish;
    struct native_space space;
    struct stack_reading reading;
};

/* A stack that moved under the read is read again: here accuracy is worth more than time. */
static void read_stack(struct shooting *x, pid_t tid, struct py_thread *t, struct thread_look *look)
{
    struct native_hint hint = {0};
    struct stack_of of = {.pid = x->wish->pid, .tid = tid, .py = x->py, .thread = t, .look = look};
    of.space = x->wish->native ? &x->space : NULL;
    of.hint = &hint;
    of.hold = x->wish->native;
    for (unsigned i = 0; i < LOOKS; i++) {
        stack_read(&x->reading, &of);
        bool torn = x->reading.python.doubt & (PY_MOVED | PY_BROKEN | PY_OUTSIDE);
        bool bare = of.space && !x->reading.has_native;
        if (!torn && !bare) return;
        if (bare && !thread_look(look, of.pid, tid)) return;
    }
}

struct taking {
    struct arena *arena;
    VEC(struct shot_local) locals;
};

static void take_local(void *ctx, const char *name, const char *value)
{
    struct taking *t = ctx;
    struct shot_local l = {arena_str(t->arena, name), arena_str(t->arena, value)};
    vec_push(&t->locals, l, NULL);
}

static void take_locals(struct snapshot *s, struct py_process *p, const struct py_frame *f,
                        struct shot_frame *to)
{
    struct taking t = {&s->arena, VEC_INIT};
    py_locals(p, f, take_local, &t);
    struct shot_local *kept = t.locals.n ? arena_new(&s->arena, t.locals.n, sizeof *kept) : NULL;
    if (kept) memcpy(kept, t.locals.items, t.locals.n * sizeof *kept);
    to->locals = kept;
    to->n_locals = kept ? t.locals.n : 0;
    vec_release(&t.locals);
}

bool py_waits_for_gil(const struct py_process *p, uint64_t interp, const struct thread_look *look)
{
    uint64_t lock = p->runtime + (uint64_t)p->at.gil_holder - 8;
    if (look->doing != STACK_WAITS_LOCK || !look->asked) return false;
    if (p->at.gil_pointer >= 0 && !peek_u64(&p->peek, interp + (uint64_t)p->at.gil_pointer, &lock))
        return false;
    return look->args[0] >= lock && look->args[0] < lock + LOCK_BYTES;
}

static void take_python_frame(struct shooting *x, const struct py_frame *f, struct shot_frame *to)
{
    to->name = arena_str(&x->s->arena, f->code->name);
    to->file = arena_str(&x->s->arena, f->code->file);
    to->line = py_line(x->py, f);
    if (x->wish->locals) take_locals(x->s, x->py, f, to);
}

static void take_native_frame(struct shooting *x, const struct native_frame *f, struct shot_frame *to)
{
    const struct native_module *m = f->module ? &x->space.modules.items[f->module - 1] : NULL;
    to->native = true;
    to->offset = f->where - (m ? m->bias : 0);
    if (m) {
        to->file = arena_str(&x->s->arena, m->path);
        to->build_id = arena_str(&x->s->arena, m->build_id);
    } else {
        to->name = arena_str(&x->s->arena, perf_map_find(&x->space.made, x->wish->pid, f->where));
    }
}

static void take_frames(struct shooting *x, struct shot_thread *one)
{
    const struct stack_reading *r = &x->reading;
    one->doubt = r->python.doubt;
    one->native = r->has_native;
    one->end = r->native.end;
    one->n = r->has_native ? r->merged.frames.n : r->python.frames.n;
    one->frames = arena_new(&x->s->arena, one->n + 1, sizeof *one->frames);
    for (size_t i = 0; one->frames && i < one->n; i++) {
        struct merged_frame f = {true, (uint32_t)i};
        if (r->has_native) f = r->merged.frames.items[i];
        if (f.python)
            take_python_frame(x, &r->python.frames.items[f.at], &one->frames[i]);
        else
            take_native_frame(x, &r->native.frames.items[f.at], &one->frames[i]);
    }
}

static tare_status take_thread(struct shooting *x, struct py_thread *t)
{
    struct shot_thread one = {
        .tid = t->tid, .python = true, .holds_gil = t->holds_gil, .collects = t->collects};
    pid_t pid = x->wish->pid;
    bool native = x->wish->native; /* what it does decides how it is read */
    if (native && (!t->tid || !thread_look(&one.look, pid, t->tid))) one.look.fd = -1;
    read_stack(x, t->tid, t, &one.look);
    if (!x->reading.has_python) return TARE_OK; /* it ended */
    if (!native && (!t->tid || !thread_look(&one.look, pid, t->tid))) one.look.fd = -1;
    if (py_waits_for_gil(x->py, t->interp, &one.look)) one.look.doing = STACK_WAITS_GIL;
    if (one.look.fd >= 0) thread_fd_target(pid, one.look.fd, one.target, sizeof one.target);
    take_frames(x, &one);
    return vec_push(&x->s->threads, one, NULL);
}

static bool is_taken(const struct snapshot *s, pid_t tid)
{
    for (size_t i = 0; i < s->threads.n; i++)
        if (s->threads.items[i].tid == tid) return true;
    return false;
}

/* Threads that the interpreter does not know: of BLAS, of a server around it. */
static tare_status take_others(struct shooting *x, tare_error *err)
{
    struct thread_ids ids = {VEC_INIT};
    pid_t pid = x->wish->pid;
    tare_status st = thread_ids_read(&ids, pid, err);
    for (size_t i = 0; st == TARE_OK && i < ids.items.n; i++) {
        struct shot_thread one = {.tid = ids.items.items[i]};
        if (is_taken(x->s, one.tid) || !thread_look(&one.look, pid, one.tid)) continue;
        if (x->wish->native) {
            read_stack(x, one.tid, NULL, &one.look);
            take_frames(x, &one);
        }
        if (one.look.fd >= 0) thread_fd_target(pid, one.look.fd, one.target, sizeof one.target);
        st = vec_push(&x->s->threads, one, err);
    }
    vec_release(&ids.items);
    return st;
}

static tare_status take_all(struct shooting *x, struct py_threads *threads, tare_error *err)
{
    struct snapshot *s = x->s;
    tare_status st = x->py ? py_threads_read(x->py, threads, err) : TARE_OK;
    for (size_t i = threads->items.n; st == TARE_OK && i-- > 0;) /* the interpreter lists the newest first */
        st = take_thread(x, &threads->items.items[i]);
    if (st == TARE_NOMEM || s->arena.failed) st = error_nomem(err, "stacks");
    if (st == TARE_OK) st = take_others(x, err);
    return st;
}

tare_status snapshot_take(struct snapshot *s, struct py_process *p, const struct snapshot_wish *wish, tare_error *err)
{
    struct py_threads threads = {.items = VEC_INIT};
    struct shooting x = {.s = s, .py = p, .wish = wish, .reading.held.patience_ns = PATIENCE_NS};
    tare_status st = TARE_OK;
    struct native_tables *tables = wish->native ? native_tables_new(err) : NULL;
    s->python = p;
    if (p) {
        s->version = p->version;
        memcpy(s->file, p->file, sizeof s->file);
    }
    if (wish->native && !tables) return TARE_NOMEM;
    if (tables) {
        native_open(&x.space, peek_process(wish->pid), tables);
        st = native_look(&x.space, err);
        native_python(&x.space, p);
    }
    if (st == TARE_OK) st = take_all(&x, &threads, err);
    s->gil_known = threads.gil_known;
    stack_reading_release(&x.reading);
    native_release(&x.space);
    native_tables_free(tables);
    vec_release(&threads.items);
    return st;
}

void snapshot_release(struct snapshot *s)
{
    vec_release(&s->threads);
    arena_release(&s->arena);
}
