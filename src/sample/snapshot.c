/* SPDX-License-Identifier: MIT
 * snapshot.c - one look at all threads of a process: see snapshot.h. */
#include <errno.h>
#include <string.h>

#include "sample/snapshot.h"

enum { LOOKS = 5, LOCK_BYTES = 256 };

/* A stack that moved under the read is read again: here accuracy is worth more than time. */
static bool read_stack(struct py_process *p, struct py_thread *t, struct py_stack *stack)
{
    bool there = false;
    for (unsigned i = 0; i < LOOKS; i++) {
        there = py_stack_read(p, t, stack);
        if (!there || !(stack->doubt & (PY_MOVED | PY_BROKEN | PY_OUTSIDE))) break;
    }
    return there;
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

static tare_status take_thread(struct snapshot *s, struct py_process *p, struct py_thread *t,
                               struct py_stack *stack, bool locals)
{
    struct shot_thread one = {
        .tid = t->tid, .python = true, .holds_gil = t->holds_gil, .collects = t->collects};
    if (!read_stack(p, t, stack)) return TARE_OK; /* it ended */
    if (!t->tid || !thread_look(&one.look, p->peek.pid, t->tid)) one.look.fd = -1;
    if (py_waits_for_gil(p, t->interp, &one.look)) one.look.doing = STACK_WAITS_GIL;
    if (one.look.fd >= 0) thread_fd_target(p->peek.pid, one.look.fd, one.target, sizeof one.target);
    one.doubt = stack->doubt;
    one.n = stack->frames.n;
    one.frames = arena_new(&s->arena, one.n + 1, sizeof *one.frames);
    for (size_t i = 0; one.frames && i < one.n; i++) {
        const struct py_frame *f = &stack->frames.items[i];
        struct shot_frame *to = &one.frames[i];
        to->name = arena_str(&s->arena, f->code->name);
        to->file = arena_str(&s->arena, f->code->file);
        to->line = py_line(p, f);
        if (locals) take_locals(s, p, f, to);
    }
    return vec_push(&s->threads, one, NULL);
}

static bool is_taken(const struct snapshot *s, pid_t tid)
{
    for (size_t i = 0; i < s->threads.n; i++)
        if (s->threads.items[i].tid == tid) return true;
    return false;
}

/* Threads that the interpreter does not know: of BLAS, of a server around it. */
static tare_status take_others(struct snapshot *s, pid_t pid, tare_error *err)
{
    struct thread_ids ids = {VEC_INIT};
    tare_status st = thread_ids_read(&ids, pid, err);
    for (size_t i = 0; st == TARE_OK && i < ids.items.n; i++) {
        struct shot_thread one = {.tid = ids.items.items[i]};
        if (is_taken(s, one.tid) || !thread_look(&one.look, pid, one.tid)) continue;
        if (one.look.fd >= 0) thread_fd_target(pid, one.look.fd, one.target, sizeof one.target);
        st = vec_push(&s->threads, one, err);
    }
    vec_release(&ids.items);
    return st;
}

tare_status snapshot_take(struct snapshot *s, struct py_process *p, bool locals, tare_error *err)
{
    struct py_threads threads = {.items = VEC_INIT};
    struct py_stack stack = {.frames = VEC_INIT};
    tare_status st = py_threads_read(p, &threads, err);
    s->version = p->version;
    memcpy(s->file, p->file, sizeof s->file);
    s->gil_known = threads.gil_known;
    for (size_t i = threads.items.n; st == TARE_OK && i-- > 0;) /* the interpreter lists the newest first */
        st = take_thread(s, p, &threads.items.items[i], &stack, locals);
    if (st == TARE_NOMEM || s->arena.failed) st = error_nomem(err, "stacks");
    if (st == TARE_OK) st = take_others(s, p->peek.pid, err);
    vec_release(&stack.frames);
    vec_release(&threads.items);
    return st;
}

void snapshot_release(struct snapshot *s)
{
    vec_release(&s->threads);
    arena_release(&s->arena);
}
