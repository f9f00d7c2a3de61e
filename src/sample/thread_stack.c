/* SPDX-License-Identifier: MIT
 * thread_stack.c - see thread_stack.h. While a thread stands still its registers, its stack and its frames of Python
 * are copied; what they mean is worked out after it was let go. */
#include "sample/thread_stack.h"

enum { WAIT_TRIES = 3 };

static bool waits(const struct thread_look *l)
{
    return l->sp && l->doing != STACK_RUNS && l->doing != STACK_ENDED;
}

static void read_python(struct stack_reading *r, const struct stack_of *of)
{
    r->has_python = of->py && of->thread && py_stack_read(of->py, of->thread, &r->python);
    if (!r->has_python) vec_clear(&r->python.frames);
}

static void read_held(struct stack_reading *r, const struct stack_of *of)
{
    bool held = pause_begin(&r->held, of->tid);
    if (held && of->space) r->has_native = native_shoot_held(&r->shot, &of->space->peek, of->tid, of->hint);
    read_python(r, of);
    if (held) pause_end(&r->held, of->tid);
}

/* One that waits is not disturbed. It may wake up under the read: then it stands elsewhere afterwards. */
static void read_waiting(struct stack_reading *r, const struct stack_of *of)
{
    struct thread_look *l = of->look;
    for (unsigned i = 0; i < WAIT_TRIES && waits(l) && !r->has_native; i++) {
        uint64_t sp = l->sp, pc = l->pc;
        native_shoot_waiting(&r->shot, &of->space->peek, sp, pc, of->hint);
        read_python(r, of);
        if (!thread_look(l, of->pid, of->tid)) return;
        r->has_native = l->sp == sp && l->pc == pc;
    }
    if (!r->has_native && l->doing == STACK_RUNS) read_held(r, of);
}

/* Code with frame pointers has to be walked by a register that only a thread that stands still tells. One that waits is
 * stopped for it where its call goes on as if nothing had been. */
static bool may_hold(const struct thread_look *l)
{
    return waits(l) && l->doing != STACK_STOPPED && l->doing != STACK_WAITS_DISK &&
           thread_call_goes_on(l->call);
}

void stack_read(struct stack_reading *r, const struct stack_of *of)
{
    r->has_native = r->has_python = false;
    vec_clear(&r->python.frames);
    r->python.doubt = 0;
    if (of->look->doing == STACK_RUNS && of->hold)
        read_held(r, of);
    else if (of->space && waits(of->look))
        read_waiting(r, of);
    else
        read_python(r, of);
    if (!r->has_native) return;
    native_walk(of->space, &r->shot, &r->native, of->hint);
    if (r->native.end == NATIVE_NO_REGISTER && of->hold && may_hold(of->look)) {
        r->has_native = false;
        read_held(r, of);
        if (r->has_native) native_walk(of->space, &r->shot, &r->native, of->hint);
        r->has_native = true; /* as far as before, where it could not be held */
    }
    if (native_merge(&r->native, &r->python, &r->merged) != TARE_OK) r->has_native = false;
}

void stack_reading_release(struct stack_reading *r)
{
    pauses_release(&r->held);
    vec_release(&r->python.frames);
    vec_release(&r->native.frames);
    vec_release(&r->merged.frames);
    native_shot_release(&r->shot);
}
