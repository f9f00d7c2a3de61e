/* SPDX-License-Identifier: MIT
 * sampler.c - see sampler.h. A round looks at all threads of all processes; every tenth of a second who is there is
 * looked up anew, every second what is told goes to the file. */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "core/rng.h"
#include "probe/procfs.h"
#include "sample/pace.h"
#include "sample/sampler.h"

#define SECOND_NS UINT64_C(1000000000)
enum { PROCESSES_MOST = 256, OPEN_TRIES = 50, OPEN_LATER = 10, LOOK_AT_MAPS = 50 };
#define NAP_NS (SECOND_NS / 20) /* between questions whether to stop */

struct sampled_thread {
    pid_t tid;
    int schedstat, status;     /* -1: not open */
    bool shares;               /* it and we have one and the same processor: it never has it at a look */
    uint64_t number;           /* in the trace */
    uint64_t cpu_ns, delay_ns; /* at the last look */
    uint64_t at_ns, stack, state;
    uint64_t wall, cpu, delay; /* not written down yet */
    uint64_t told_ns;
    struct native_hint hint;
    bool known, seen; /* looked at once; still there at the last lookup */
};

struct sampled_process {
    pid_t pid;
    bool python, ended;
    bool was_python; /* ever: counted */
    unsigned tries, lookups;
    struct py_process py;
    struct py_threads py_threads;
    struct native_space space; /* with `native` */
    struct stacks_writer *out;
    VEC(struct sampled_thread) threads;
    uint64_t n_codes, n_threads, n_modules;
};

struct sampler {
    const struct sampler_options *o;
    struct sampler_totals t;
    VEC(struct sampled_process *) processes;
    struct stack_reading reading;
    struct native_tables *tables; /* NULL: without native frames */
    struct thread_ids ids;
    uint64_t looked_ns, flushed_ns;
    cpu_set_t cpus; /* that we may use */
    bool displaced; /* a thread that wants to run was without a processor at this round's look */
    tare_status lost;
    tare_error why;
};

/* ---- processes ---- */

static void close_thread(struct sampled_thread *t)
{
    procfs_close(&t->schedstat);
    procfs_close(&t->status);
}

static void forget_process(struct sampler *s, struct sampled_process *p)
{
    for (size_t i = 0; i < p->threads.n; i++) close_thread(&p->threads.items[i]);
    vec_release(&p->threads);
    vec_release(&p->py_threads.items);
    py_release(&p->py);
    native_release(&p->space);
    tare_error err = TARE_ERROR_INIT;
    tare_status st = stacks_close(p->out, &err);
    if (st != TARE_OK && s->lost == TARE_OK) {
        s->lost = st;
        s->why = err;
    }
    mem_free(p);
}

static void try_python(struct sampler *s, struct sampled_process *p)
{
    bool first = p->pid == s->o->pid;
    p->tries++;
    py_release(&p->py);
    p->py = (struct py_process)PY_PROCESS_INIT;
    p->python = py_open(&p->py, peek_process(p->pid), first ? &s->t.no_python : NULL) == TARE_OK;
    if (s->tables) native_python(&p->space, p->python ? &p->py : NULL);
    s->t.pythons += p->python && !p->was_python;
    p->was_python = p->was_python || p->python;
}

/* An interpreter that starts is tried at each lookup, others now and then: a shell may become Python much later. */
static bool is_to_be_tried(const struct sampled_process *p)
{
    return !p->python && (p->tries < OPEN_TRIES || p->lookups % OPEN_LATER == 0);
}

static tare_status add_process(struct sampler *s, pid_t pid, bool must, tare_error *err)
{
    struct sampled_process *p = mem_new(1, sizeof *p);
    if (!p) return error_nomem(err, "a process");
    p->pid = pid;
    p->py = (struct py_process)PY_PROCESS_INIT;
    if (s->tables) native_open(&p->space, peek_process(pid), s->tables);
    try_python(s, p);
    tare_status st = TARE_OK;
    if (must && !p->python && !s->tables)
        st = error_set(err, (tare_status)s->t.no_python.status, "%s", s->t.no_python.text);
    if (st == TARE_OK) st = stacks_open(&p->out, s->o->trace, pid, err);
    if (st == TARE_OK) st = vec_push(&s->processes, p, err);
    if (st == TARE_OK)
        s->t.processes++;
    else
        forget_process(s, p);
    return st;
}

/* We ourselves are no child to be looked at, where the program itself has started us (tare.sample() in Python). */
static bool is_known(const struct sampler *s, pid_t pid)
{
    if (pid == getpid()) return true;
    for (size_t i = 0; i < s->processes.n; i++)
        if (s->processes.items[i]->pid == pid) return true;
    return false;
}

/* Children of one thread, as the kernel lists them. */
static void find_children(struct sampler *s, pid_t pid, pid_t tid)
{
    char text[4096], *rest = text;
    int fd = procfs_open("", "/proc/%d/task/%d/children", (int)pid, (int)tid);
    if (fd < 0) return;
    ssize_t n = procfs_read(fd, text, sizeof text);
    procfs_close(&fd);
    for (long child; n > 0 && (child = strtol(rest, &rest, 10)) > 0;)
        if (s->processes.n < PROCESSES_MOST && !is_known(s, (pid_t)child))
            add_process(s, (pid_t)child, false, NULL);
}

/* ---- who is there ---- */

static struct sampled_thread *thread_of(struct sampled_process *p, pid_t tid)
{
    for (size_t i = 0; i < p->threads.n; i++)
        if (p->threads.items[i].tid == tid) return &p->threads.items[i];
    return NULL;
}

static void tell_sample(struct sampled_process *p, struct sampled_thread *t);

static bool has_our_only_cpu(const struct sampler *s, pid_t tid)
{
    cpu_set_t its, both;
    if (sched_getaffinity(tid, sizeof its, &its) != 0) return false;
    CPU_OR(&both, &s->cpus, &its);
    return CPU_COUNT(&both) == 1;
}

static void add_thread(struct sampler *s, struct sampled_process *p, pid_t tid)
{
    struct thread_look look;
    struct sampled_thread t = {
        .tid = tid, .schedstat = -1, .status = -1, .seen = true, .shares = has_our_only_cpu(s, tid)};
    if (!thread_look(&look, p->pid, tid)) return;
    t.schedstat = procfs_open("", "/proc/%d/task/%d/schedstat", (int)p->pid, (int)tid);
    t.number = ++p->n_threads;
    if (vec_push(&p->threads, t, NULL) != TARE_OK) {
        close_thread(&t);
        return;
    }
    s->t.threads++;
    struct memory_record r = {
        .kind = MEMORY_THREAD, .text = look.name, .text_bytes = strlen(look.name), .v = {t.number, (uint64_t)tid}};
    stacks_put(p->out, &r);
}

static void drop_threads(struct sampled_process *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->threads.n; i++) {
        struct sampled_thread *t = &p->threads.items[i];
        if (t->seen) {
            p->threads.items[kept++] = *t;
            continue;
        }
        tell_sample(p, t);
        close_thread(t);
    }
    p->threads.n = kept;
}

/* One that ended and was not waited for yet is still listed; its first thread may also end before others. */
static bool has_ended(struct sampler *s, pid_t pid)
{
    struct thread_look look;
    if (thread_ids_read(&s->ids, pid, NULL) != TARE_OK || s->ids.items.n == 0) return true;
    return s->ids.items.n == 1 && (!thread_look(&look, pid, pid) || look.doing == STACK_ENDED);
}

static void look_up(struct sampler *s, struct sampled_process *p)
{
    p->ended = p->ended || has_ended(s, p->pid); /* its number may come to be another's */
    if (p->ended) return;
    for (size_t i = 0; i < p->threads.n; i++) p->threads.items[i].seen = false;
    for (size_t i = 0; i < s->ids.items.n; i++) {
        pid_t tid = s->ids.items.items[i];
        struct sampled_thread *t = thread_of(p, tid);
        if (t)
            t->seen = true;
        else
            add_thread(s, p, tid);
        find_children(s, p->pid, tid);
    }
    drop_threads(p);
    p->lookups++;
    if (s->tables && p->lookups % LOOK_AT_MAPS == 0) native_look(&p->space, NULL);
    if (is_to_be_tried(p)) try_python(s, p);
    if (!p->python || py_threads_read(&p->py, &p->py_threads, NULL) == TARE_OK) {
        p->py.generation++;
        return;
    }
    vec_clear(&p->py_threads.items); /* it became another program: what was known of it is not true any more */
    p->python = false;
    p->tries = 0;
}

/* ---- what is told ---- */

static uint64_t code_number(struct sampled_process *p, struct py_code *c)
{
    if (c->number) return c->number;
    struct memory_record r = {.kind = MEMORY_CODE, .text = c->table, .text_bytes = c->table_bytes};
    r.CODE.number = ++p->n_codes;
    r.CODE.file = stacks_name(p->out, c->file);
    r.CODE.name = stacks_name(p->out, c->name);
    r.CODE.first_line = c->first_line;
    r.CODE.version = p->py.at.version;
    stacks_put(p->out, &r);
    return c->number = p->n_codes;
}

static uint64_t module_number(struct sampled_process *p, struct native_module *m)
{
    char text[4096];
    if (m->number) return m->number;
    snprintf(text, sizeof text, "%s %s", m->build_id, m->path);
    struct memory_record r = {.kind = MEMORY_MODULE, .text = text, .text_bytes = strnlen(text, MEMORY_TEXT_MOST)};
    r.MODULE.number = ++p->n_modules;
    r.MODULE.start = m->start;
    r.MODULE.end = m->end;
    r.MODULE.bias = m->bias;
    stacks_put(p->out, &r);
    return m->number = p->n_modules;
}

static struct stacks_frame native_frame(struct sampled_process *p, uint64_t parent, const struct native_frame *f)
{
    if (f->module)
        return (struct stacks_frame){parent, MEMORY_NATIVE, f->where,
                                     module_number(p, &p->space.modules.items[f->module - 1])};
    const char *name = perf_map_find(&p->space.made, p->pid, f->where);
    if (name) return (struct stacks_frame){parent, MEMORY_NAMED, stacks_name(p->out, name), 0};
    return (struct stacks_frame){parent, MEMORY_NATIVE, f->where, 0};
}

static struct stacks_frame python_frame(struct sampled_process *p, uint64_t parent, const struct py_frame *f)
{
    return (struct stacks_frame){parent, MEMORY_PYTHON, code_number(p, f->code), f->offset};
}

/* Why the outermost frames are missing; 0: they are not. */
static uint64_t cut_of(const struct stack_reading *r)
{
    static const uint64_t cuts[NATIVE_ENDS] = {[NATIVE_NO_TABLES] = MEMORY_CUT_UNKNOWN,
                                               [NATIVE_NO_REGISTER] = MEMORY_CUT_REGISTER,
                                               [NATIVE_NO_MEMORY] = MEMORY_CUT_STACK,
                                               [NATIVE_NONSENSE] = MEMORY_CUT_NONSENSE,
                                               [NATIVE_DEEP] = MEMORY_CUT_DEPTH};
    if (!r->has_native) return r->python.doubt & (PY_CUT | PY_BROKEN) ? MEMORY_CUT_DEPTH : 0;
    bool python = r->merged.frames.n && vec_last(&r->merged.frames)->python; /* of Python all are there */
    return python ? 0 : cuts[r->native.end];
}

static uint64_t stack_number(struct sampled_process *p, const struct stack_reading *r)
{
    uint64_t number = 0, cut = cut_of(r);
    if (cut) number = stacks_frame(p->out, &(struct stacks_frame){0, MEMORY_CUT, cut, 0});
    for (size_t i = r->has_native ? r->merged.frames.n : r->python.frames.n; i-- > 0;) {
        struct merged_frame m = {true, (uint32_t)i};
        if (r->has_native) m = r->merged.frames.items[i];
        struct stacks_frame f = m.python ? python_frame(p, number, &r->python.frames.items[m.at])
                                         : native_frame(p, number, &r->native.frames.items[m.at]);
        number = stacks_frame(p->out, &f);
    }
    return number;
}

static void tell_sample(struct sampled_process *p, struct sampled_thread *t)
{
    if (!t->wall) return;
    struct memory_record r = {.kind = MEMORY_SAMPLE, .text = ""};
    r.SAMPLE.at = t->at_ns;
    r.SAMPLE.thread = t->number;
    r.SAMPLE.stack = t->stack;
    r.SAMPLE.wall = t->wall;
    r.SAMPLE.cpu = t->cpu;
    r.SAMPLE.delay = t->delay;
    r.SAMPLE.state = t->state;
    stacks_put(p->out, &r);
    t->wall = t->cpu = t->delay = 0;
    t->told_ns = t->at_ns;
}

static void tell_held(struct sampler *s)
{
    const struct pauses *held = &s->reading.held;
    struct memory_record r = {.kind = MEMORY_HELD, .text = ""};
    r.HELD.at = clock_raw_ns();
    r.HELD.threads = held->held;
    r.HELD.refused = held->refused;
    r.HELD.total = held->total_ns;
    r.HELD.longest = held->longest_ns;
    stacks_put(s->processes.items[0]->out, &r);
}

static void tell_native(struct sampler *s)
{
    struct memory_record r = {.kind = MEMORY_NATIVE_ENDS, .text = ""};
    r.NATIVE_ENDS.at = clock_raw_ns();
    for (unsigned i = 0; i < NATIVE_ENDS; i++) r.NATIVE_ENDS.stacks += s->t.native[i];
    r.NATIVE_ENDS.whole = s->t.native[NATIVE_WHOLE];
    r.NATIVE_ENDS.no_tables = s->t.native[NATIVE_NO_TABLES];
    r.NATIVE_ENDS.no_register = s->t.native[NATIVE_NO_REGISTER];
    r.NATIVE_ENDS.no_memory = s->t.native[NATIVE_NO_MEMORY];
    r.NATIVE_ENDS.nonsense = s->t.native[NATIVE_NONSENSE];
    r.NATIVE_ENDS.deep = s->t.native[NATIVE_DEEP];
    r.NATIVE_ENDS.unread = s->t.unread;
    r.NATIVE_ENDS.uneven = s->t.uneven;
    stacks_put(s->processes.items[0]->out, &r);
}

static void tell_rate(struct sampler *s)
{
    if (!s->processes.n) return;
    struct memory_record r = {.kind = MEMORY_RATE, .text = ""};
    r.RATE.at = clock_raw_ns();
    r.RATE.hz = (uint64_t)(s->o->hz * 1000 + 0.5);
    r.RATE.rounds = s->t.rounds;
    r.RATE.samples = s->t.samples;
    r.RATE.moved = s->t.moved;
    r.RATE.broken = s->t.broken;
    r.RATE.late = s->t.late;
    r.RATE.cost = s->t.cost_ns;
    r.RATE.wall = s->t.wall_ns;
    stacks_put(s->processes.items[0]->out, &r);
    if (s->o->consistent || s->o->native) tell_held(s);
    if (s->o->native) tell_native(s);
}

/* ---- one look ---- */

/* As /proc/PID/task/TID/schedstat has them. */
struct thread_times {
    uint64_t cpu, delay; /* ns */
    uint64_t turns;      /* how often it got a processor; 0: not told */
};

static struct py_thread *python_of(struct sampled_process *p, pid_t tid)
{
    for (size_t i = 0; p->python && i < p->py_threads.items.n; i++)
        if (p->py_threads.items.items[i].tid == tid) return &p->py_threads.items.items[i];
    return NULL;
}

static bool read_times(struct sampled_process *p, struct sampled_thread *t, struct thread_times *out)
{
    char text[128];
    int own = t->schedstat;
    if (own < 0) own = procfs_open("", "/proc/%d/task/%d/schedstat", (int)p->pid, (int)t->tid);
    ssize_t n = own < 0 ? -1 : procfs_line(own, text, sizeof text);
    if (own >= 0 && t->schedstat < 0) procfs_close(&own);
    const char *rest = n > 0 ? procfs_number(text, &out->cpu) : NULL;
    rest = rest ? procfs_number(rest, &out->delay) : NULL;
    if (rest && !procfs_number(rest, &out->turns)) out->turns = 0;
    return rest;
}

/* A thread that is preempted stands where it was preempted, and that is no random place: a system call that finds its
 * time slice used up is one. So a look at such a thread says nothing of where its processor time went. The kernel
 * counts how often it got a processor and how often it left one: equal numbers, and it has none. */
static uint64_t off_cpu(struct sampled_process *p, struct sampled_thread *t, uint64_t turns)
{
    char text[4096];
    uint64_t gave = 0, lost = 0;
    if (!turns || t->shares) return 0;
    if (t->status < 0) t->status = procfs_open("", "/proc/%d/task/%d/status", (int)p->pid, (int)t->tid);
    if (t->status < 0 || procfs_line(t->status, text, sizeof text) <= 0) return 0;
    if (!procfs_field(text, "voluntary_ctxt_switches", &gave)) return 0;
    if (!procfs_field(text, "nonvoluntary_ctxt_switches", &lost)) return 0;
    return gave + lost >= turns ? STACK_OFF_CPU : 0;
}

static void count_native(struct sampler *s)
{
    const struct stack_reading *r = &s->reading;
    s->t.unread += !r->has_native;
    s->t.native[r->native.end] += r->has_native;
    s->t.uneven += r->has_native && r->merged.uneven;
}

static void read_stack(struct sampler *s, struct sampled_process *p, struct sampled_thread *t, struct py_thread *py,
                       struct thread_look *look)
{
    struct stack_reading *r = &s->reading;
    struct stack_of of = {.pid = p->pid, .tid = t->tid, .py = &p->py, .thread = py, .look = look, .hint = &t->hint};
    of.space = s->tables ? &p->space : NULL;
    of.hold = s->o->consistent || s->o->native;
    t->stack = 0;
    if (!py && !of.space) return;
    stack_read(r, &of);
    t->hint.sp = look->sp;
    t->hint.pc = look->pc;
    if (of.space && look->doing != STACK_ENDED) count_native(s);
    if (!r->has_python && !r->has_native) return;
    s->t.samples++;
    if (r->python.doubt & PY_MOVED) t->state |= STACK_MOVED;
    if (r->python.doubt & (PY_BROKEN | PY_OUTSIDE)) t->state |= STACK_BROKEN;
    s->t.moved += (r->python.doubt & PY_MOVED) != 0;
    s->t.broken += (r->python.doubt & (PY_BROKEN | PY_OUTSIDE)) != 0;
    t->stack = stack_number(p, r);
}

/* Whoever had the processor for most of the time since the last look is taken to run; of others the kernel is asked.
 * Always (`wall` 0) where threads are to be held: one that waits is not to be disturbed. */
static void ask_doing(struct sampled_process *p, const struct sampled_thread *t, const struct py_thread *py,
                      uint64_t wall, struct thread_look *out)
{
    *out = (struct thread_look){.doing = STACK_RUNS, .call = -1, .fd = -1};
    if (wall && t->cpu * 2 > wall) return;
    if (!thread_look(out, p->pid, t->tid)) out->doing = STACK_UNKNOWN;
    if (py && py_waits_for_gil(&p->py, py->interp, out)) out->doing = STACK_WAITS_GIL;
}

/* It ran only because it was held: it waits where it waited, and is left alone. */
static bool is_the_same_wait(const struct sampler *s, const struct sampled_thread *t, const struct thread_look *look)
{
    return s->tables && t->known && thread_call_again(look->call) && look->sp && look->sp == t->hint.sp &&
           look->pc == t->hint.pc;
}

static void look_at_thread(struct sampler *s, struct sampled_process *p, struct sampled_thread *t, uint64_t now)
{
    struct thread_times times;
    if (!read_times(p, t, &times)) return;
    struct py_thread *py = python_of(p, t->tid);
    uint64_t gil = py && py->holds_gil ? STACK_HOLDS_GIL : 0;
    if (gil && py->collects) gil |= STACK_COLLECTS;
    bool ran = !t->known || times.cpu != t->cpu_ns || times.delay != t->delay_ns;
    ran = ran || (t->state & STACK_DOING_BITS) == STACK_RUNS;
    uint64_t wall = t->known ? now - t->at_ns : 0;
    bool changed = ran || gil != (t->state & (STACK_HOLDS_GIL | STACK_COLLECTS));
    if (changed || now - t->told_ns > SECOND_NS) tell_sample(p, t);
    t->wall += wall;
    if (t->known) {
        t->cpu += times.cpu - t->cpu_ns;
        t->delay += times.delay - t->delay_ns;
    }
    if (ran) {
        struct thread_look look;
        uint64_t off = off_cpu(p, t, times.turns);
        ask_doing(p, t, py, s->o->consistent || s->o->native ? 0 : wall, &look);
        if (is_the_same_wait(s, t, &look)) look.doing = t->state & STACK_DOING_BITS;
        t->state = look.doing | gil | off;
        s->displaced = s->displaced || (off && look.doing == STACK_RUNS);
        if (!is_the_same_wait(s, t, &look)) read_stack(s, p, t, py, &look);
    }
    t->known = true;
    t->cpu_ns = times.cpu;
    t->delay_ns = times.delay;
    t->at_ns = now;
}

static void look_at_process(struct sampler *s, struct sampled_process *p)
{
    if (p->python) py_gil_read(&p->py, &p->py_threads);
    for (size_t i = 0; i < p->threads.n; i++) look_at_thread(s, p, &p->threads.items[i], clock_raw_ns());
}

static void flush(struct sampler *s)
{
    tell_rate(s);
    for (size_t i = 0; i < s->processes.n; i++) {
        tare_error err = TARE_ERROR_INIT;
        tare_status st = stacks_flush(s->processes.items[i]->out, &err);
        if (st == TARE_OK || s->lost != TARE_OK) continue;
        s->lost = st;
        s->why = err;
    }
}

static void one_round(struct sampler *s)
{
    uint64_t now = clock_raw_ns();
    bool anew = now - s->looked_ns >= SECOND_NS / 10;
    if (anew) s->looked_ns = now;
    for (size_t i = 0; i < s->processes.n; i++) {
        struct sampled_process *p = s->processes.items[i];
        if (anew) look_up(s, p);
        if (!p->ended) look_at_process(s, p);
    }
    s->t.rounds++;
    if (s->reading.held.late.n) pause_settle(&s->reading.held);
    size_t kept = 0;
    for (size_t i = 0; i < s->processes.n; i++) {
        struct sampled_process *p = s->processes.items[i];
        if (p->ended && i > 0) /* the first has the rates: it is closed last */
            forget_process(s, p);
        else
            s->processes.items[kept++] = p;
    }
    s->processes.n = kept;
    if (now - s->flushed_ns < SECOND_NS) return;
    s->flushed_ns = now;
    flush(s);
}

/* ---- the schedule ---- */

/* The kernel wakes us where we slept. Where a thread of the program runs there, each of our looks waits until it is
 * preempted, and never sees it run: then another processor is the better place. */
static void step_aside(struct sampler *s)
{
    cpu_set_t others = s->cpus;
    int here = sched_getcpu();
    if (!s->displaced || here < 0) return;
    s->displaced = false;
    CPU_CLR((unsigned)here, &others);
    if (CPU_COUNT(&others)) sched_setaffinity(0, sizeof others, &others);
}

static void sleep_until(const struct sampler *s, uint64_t due)
{
    for (uint64_t now; (now = clock_raw_ns()) < due && !s->o->stop(s->o->stop_ctx);) {
        uint64_t ns = due - now < NAP_NS ? due - now : NAP_NS;
        nanosleep(&(struct timespec){0, (long)ns}, NULL);
    }
}

static bool is_over(const struct sampler *s, uint64_t begun)
{
    bool ended = s->processes.n == 1 && s->processes.items[0]->ended;
    return ended || s->o->stop(s->o->stop_ctx) || (s->o->duration_ns && clock_raw_ns() - begun >= s->o->duration_ns);
}

/* Each step has one look, at a random moment of it: looks at a fixed beat fall into step with the beat of the
 * scheduler, and then meet a program always at the same point of its turn, mostly its end. */
static void rounds(struct sampler *s)
{
    uint64_t begun = clock_raw_ns(), due = begun;
    struct pace pace = {.hz = s->o->hz, .budget = s->o->budget};
    struct rng rng;
    rng_seed(&rng, begun);
    while (!is_over(s, begun)) {
        uint64_t before = clock_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
        one_round(s);
        uint64_t used = clock_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - before, now = clock_raw_ns();
        s->t.cost_ns += used;
        s->t.wall_ns = now - begun;
        uint64_t step = pace_step(&pace, used, now);
        due += step;
        if (due + step < now) {
            s->t.late += (now - due) / step;
            due = now;
        }
        step_aside(s);
        sleep_until(s, due + rng_below(&rng, step));
    }
}

tare_status sampler_run(const struct sampler_options *o, struct sampler_totals *out, tare_error *err)
{
    struct sampler s = {.o = o};
    if (sched_getaffinity(0, sizeof s.cpus, &s.cpus) != 0) CPU_ZERO(&s.cpus);
    if (o->native && !(s.tables = native_tables_new(err))) return TARE_NOMEM;
    tare_status st = add_process(&s, o->pid, !o->patient, err);
    if (st == TARE_OK) {
        rounds(&s);
        for (size_t i = 0; i < s.processes.n; i++)
            for (size_t k = 0; k < s.processes.items[i]->threads.n; k++)
                tell_sample(s.processes.items[i], &s.processes.items[i]->threads.items[k]);
        flush(&s);
    }
    if (CPU_COUNT(&s.cpus)) sched_setaffinity(0, sizeof s.cpus, &s.cpus);
    while (s.processes.n) forget_process(&s, vec_pop(&s.processes));
    vec_release(&s.processes);
    vec_release(&s.ids.items);
    stack_reading_release(&s.reading);
    native_tables_free(s.tables);
    s.t.held = s.reading.held;
    *out = s.t;
    if (st == TARE_OK && s.lost != TARE_OK) st = error_set(err, s.lost, "%s", s.why.text);
    return st;
}
