/* SPDX-License-Identifier: MIT
 * calls_aside.c - what lies between the calls and is not the program's running: waiting, and our own cost.
 *
 * Waiting: the CPU clock of a thread costs a system call, so it is read only after a silence: none of its
 * events came for a while. What the thread did not run of it was waiting, and belongs to the function that
 * was open.
 *
 * The gauge: what an event costs moves with the machine (its speed, its neighbours, the caches), by half
 * and more within a second, so no constant can be taken out. Now and then, a coin tells when, a call is
 * recorded once more for nothing, through the interpreter's own way of calling us, and timed. How many
 * gauges each kind of call costs was weighed beforehand; it is read apart for each kind, because what ran
 * just before makes a difference, too. */
#include "calls_results.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/rng.h"

enum { SILENCE_NS = 100000, GAUGE_ONE_IN = 64 };

static struct rng coins;

static void toss_coin(struct call_ctx *c)
{
    c->coin = (uint32_t)(1 + rng_next(&coins) % (2 * GAUGE_ONE_IN - 1));
}

static uint64_t *aside_of(struct call_ctx *c, const struct call_node *n, enum aside what)
{
    static uint64_t nowhere;
    uint64_t *sum;
    return map_u64_ref(&c->aside, (uint64_t)n->number * ASIDES + what, &sum, NULL) == TARE_OK ? sum
                                                                                              : &nowhere;
}

/* ---- the gauge ---- */

static struct call_node gauge_nodes[2];
static struct call_entry gauge_entries[4];
static struct call_ctx gauge_ctx;
static PyObject *gauge_enter_fn, *gauge_leave_fn;

static PyObject *gauge_enter(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t Py_UNUSED(n))
{
    ctx_enter(&gauge_ctx, args[0], args[0], CALL_PYTHON);
    Py_RETURN_NONE;
}

static PyObject *gauge_leave(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t Py_UNUSED(n))
{
    uint64_t now = calls_now();
    ctx_leave(&gauge_ctx, args[0], now);
    Py_RETURN_NONE;
}

static PyMethodDef gauge_defs[] = {
    {"gauge_enter", (PyCFunction)(void (*)(void))gauge_enter, METH_FASTCALL, NULL},
    {"gauge_leave", (PyCFunction)(void (*)(void))gauge_leave, METH_FASTCALL, NULL},
};

/* A context that no reader sees: one path, which is found at once. */
int aside_init(void)
{
    gauge_nodes[0].last = &gauge_nodes[1];
    gauge_nodes[1].key = Py_None;
    gauge_entries[0].node = &gauge_nodes[0];
    gauge_ctx.stack =
        (struct call_stack){.base = gauge_entries, .top = gauge_entries, .end = gauge_entries + 4};
    gauge_ctx.silence = UINT64_MAX;
    gauge_ctx.coin = UINT32_MAX;
    rng_seed(&coins, clock_raw_ns());
    gauge_enter_fn = PyCFunction_New(&gauge_defs[0], NULL);
    gauge_leave_fn = PyCFunction_New(&gauge_defs[1], NULL);
    return gauge_enter_fn && gauge_leave_fn ? 0 : -1;
}

static bool call_through(PyObject *callback)
{
    PyObject *place =
        PyLong_FromLong(300); /* beyond the numbers that are kept ready, as many places in code are */
    PyObject *args[] = {NULL, Py_None, place};
    PyObject *done =
        place ? PyObject_Vectorcall(callback, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(place);
    return done;
}

/* Does the interpreter still allow a call below here? At its limit it raises, which takes longer than a
 * gauge, and in 3.9 lets the program itself go 50 calls deeper from then on. */
static bool calls_left(void)
{
#if PY_VERSION_HEX >= 0x030E0000
    return true; /* there the limit is the stack's end, with room behind it */
#elif PY_VERSION_HEX >= 0x030C0000
    return PyThreadState_Get()->c_recursion_remaining > 1;
#elif PY_VERSION_HEX >= 0x030B0000
    return PyThreadState_Get()->recursion_remaining > 1;
#else
    return PyThreadState_Get()->recursion_depth + 1 < Py_GetRecursionLimit();
#endif
}

/* Not where an exception is on its way: the interpreter calls nobody with one set. Leaves none either, should
 * a call fail. */
static void gauge_read(struct gauge *g)
{
    if (PyErr_Occurred() || !calls_left()) return;
    uint64_t start = calls_now();
    bool done = call_through(gauge_enter_fn) && call_through(gauge_leave_fn);
    uint64_t ticks = calls_now() - start;
    unsigned octave = 63 - (unsigned)__builtin_clzll(ticks | 8),
             at = (octave - 3) * 8 + (unsigned)(ticks >> (octave - 3) & 7);
    if (!done) {
        PyErr_Clear();
        gauge_ctx.stack.top = gauge_entries;
        return;
    }
    if (at >= GAUGE_BINS) return;
    g->n[at]++;
    g->ticks[at] += ticks;
}

/* The mean, without the readings that something interrupted: those above two and a half times the middle
 * one. 0: too few. */
static double gauge_mean(const struct gauge *g)
{
    uint64_t all = 0, n = 0, ticks = 0;
    unsigned middle = 0;
    for (unsigned i = 0; i < GAUGE_BINS; i++) all += g->n[i];
    if (all < GAUGES_LEAST) return 0;
    for (uint64_t below = 0; middle < GAUGE_BINS - 1 && (below += g->n[middle]) * 2 < all;) middle++;
    for (unsigned i = 0; i < GAUGE_BINS && i <= middle + 10; i++) {
        n += g->n[i];
        ticks += g->ticks[i];
    }
    return (double)ticks / (double)n;
}

bool gauges_ns(struct call_recorder *rec, double out[CALL_KINDS])
{
    double tick_ns = recorder_tick_ns(rec), now = 0, before = 0;
    for (unsigned i = 0; i < CALL_KINDS; i++) {
        out[i] = gauge_mean(&rec->gauge[i]) * tick_ns;
        if (out[i] == 0) continue;
        now += out[i];
        before += rec->gauge_before[i];
    }
    double moved = before > 0 ? now / before : 1;
    for (unsigned i = 0; i < CALL_KINDS; i++)
        if (out[i] == 0) out[i] = rec->gauge_before[i] * moved;
    return now > 0;
}

/* ---- waiting ---- */

/* By number of the thread, so that others may ask, too; fails harmlessly when the thread is gone. */
static bool ran_until_now(const struct call_ctx *c, uint64_t *ns)
{
    struct timespec t;
    if (!c->tid || clock_gettime((clockid_t)(~(unsigned)c->tid << 3 | 6), &t) != 0) return false;
    *ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    return true;
}

static long own_switches(void)
{
    struct rusage used;
    return getrusage(RUSAGE_THREAD, &used) == 0 ? used.ru_nvcsw : 0;
}

/* What the thread did not run since it was asked last, in ticks. */
static uint64_t not_run(const struct call_ctx *c, uint64_t now, uint64_t ran)
{
    double wall = (double)(now - c->asked), cpu = (double)(ran - c->ran) / c->tick_ns;
    return wall - cpu > 0.02 * (double)(now - c->last) ? (uint64_t)(wall - cpu)
                                                       : 0; /* clocks differ by a hair */
}

/* Others took the processor away many times for too short a while to be a silence: that comes out here as
 * well. Waiting of the program's own in the meantime was some other function's, and stays its. */
static void account_silence(struct call_ctx *c, const struct call_node *waiter, uint64_t now, bool is_me)
{
    uint64_t ran, silent = now - c->last;
    if (!ran_until_now(c, &ran)) return;
    uint64_t gone = c->last ? not_run(c, now, ran) : 0;
    if (gone || !c->last) {
        long switches = is_me ? own_switches() : c->switches + 1;
        bool preempted = switches == c->switches;
        if (!preempted && gone > silent) gone = silent;
        if (gone) *aside_of(c, waiter, preempted ? ASIDE_PREEMPTED : ASIDE_WAITED) += gone;
        c->switches = switches;
    }
    c->asked = now;
    c->ran = ran;
}

uint64_t ctx_aside(struct call_ctx *c, struct call_node *waiter, struct call_node *payer, uint64_t now)
{
    if (!c->tid) c->tid = (int)syscall(SYS_gettid);
    if (now - c->last > c->silence) account_silence(c, waiter, now, true);
    if (c->coin == 0) {
        toss_coin(c);
        const struct call_node *called = c->stack.top->node;
        gauge_read(&c->rec->gauge[c->rec->funcs.items[called->func].kind]);
    }
    uint64_t *ours = aside_of(c, payer, ASIDE_OURS), end = calls_now();
    *ours += end - now;
    if (end - now > c->silence && ran_until_now(c, &c->ran))
        c->asked = end; /* taken away in here: is out already */
    return end;
}

void ctx_settle(struct call_ctx *c, uint64_t now)
{
    if (!c->last || c->ended || now - c->last < c->silence) return;
    account_silence(c, c->stack.top->node, now, false);
    c->last = now;
}

/* A recorder that lingers has single short calls: to ask for the CPU time of each would cost more than they
 * do. */
void ctx_listen(struct call_ctx *c)
{
    static double tick_ns; /* of this machine: the first milliseconds of the process tell it well enough */
    if (tick_ns == 0) tick_ns = calls_tick_ns();
    c->last = 0;
    c->tick_ns = tick_ns;
    c->silence = c->rec->lingers ? UINT64_MAX : (uint64_t)(SILENCE_NS / tick_ns);
    if (!c->coin) toss_coin(c);
}
