/* SPDX-License-Identifier: MIT
 * calls.h - what the function profiler records: one calling-context tree per thread. A node is a path of
 * functions; it keeps how often it was left and how long it was open, nothing else, because everything that
 * pstats knows follows from that:
 *   self = total less the children's totals, recursion = the same function further up the path.
 * The two functions that run at every event stand here. They take no lock (the GIL is held) and allocate only
 * for new paths. */
#ifndef PYTHON_CALLS_H
#define PYTHON_CALLS_H

#include "part.h"

#include "calls_kinds.h"
#include "core/clock.h"
#include "core/map.h"
#include "core/vec.h"

/* -fvisibility does not reach declarations: without this events would look our variables up in the GOT. */
#pragma GCC visibility push(hidden)

#define CALLS_LIKELY(x) __builtin_expect(!!(x), 1)
#define CALLS_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* A function, known by an address that stays its own while `held` is. `label` is NULL for code objects: they
 * know their name. */
struct call_func {
    const void *key;
    PyObject *held, *label;
    enum call_kind kind;
    bool starts_thread;
};

/* Bits of a node that stands for several paths because the limit was reached: was its function, was the pair
 * of caller and function further up the path when it was entered? Elsewhere both follow from the tree. */
enum { NODE_FOLDED = 1, NODE_AGAIN = 2, NODE_PAIR_AGAIN = 4, NODE_STARTS_THREAD = 8 };

/* One cache line. The children form a ring in the order in which they were first called; `last` is the one
 * called last, so that a loop finds its next callee there or right behind it. */
struct call_node {
    const void *key;
    struct call_node *last, *next, *parent;
    uint64_t calls, total;                 /* total: ticks */
    uint32_t func, flags : 8, number : 24; /* number: in order of creation, so that parents come first */
    uint64_t away; /* ticks of its children that are folded, hence recorded elsewhere */
};

struct call_entry {
    struct call_node *node;
    uint64_t start; /* ticks */
};

struct call_stack {
    struct call_entry *base, *top, *end; /* base[0] is the root; top is the innermost open call */
    uint64_t paused;                     /* ticks at which a greenlet was left; 0: it runs */
    const void *owner;                   /* the greenlet */
};

struct call_recorder;

/* What lies in a node's own time and is not the running of its code, in ticks: waiting that the program
 * asked for (a lock, a file, sleep, the interpreter's lock), waiting while others had the processor, and
 * what calls_aside.c took. */
enum aside { ASIDE_WAITED, ASIDE_PREEMPTED, ASIDE_OURS, ASIDES };

/* One thread. Its context outlives it; beyond a limit the next new thread goes on with it. */
struct call_ctx {
    struct call_stack stack; /* of the greenlet that runs */
    uint64_t last, silence;  /* ticks of the last event; of a gap after which to ask whether the thread ran */
    uint32_t coin;           /* calls until the gauge is read */
    uint64_t skipped;        /* calls open that could not be pushed for want of memory */
    struct call_recorder *rec;
    struct call_node *root, *folded[3];
    struct call_node **slots; /* all nodes but roots, by (parent, key): open addressing */
    size_t n_slots, n_nodes;
    VEC(struct call_node *) blocks;
    size_t used;                   /* nodes of the last block */
    VEC(struct site_events) sites; /* by number of the node that calls; may be shorter */
    VEC(struct call_stack) parked;
    struct call_holder *holder;
    PyObject *name;
    uint64_t id; /* of the thread state: never reused */
    unsigned long ident;
    unsigned threads;
    bool ended, hooked, floor_known, left_out; /* the last: in no result */
    uintptr_t stack_floor;                     /* address below which the C stack is nearly used up */
    struct map_u64 aside;                      /* number of node * ASIDES + enum aside -> ticks */
    uint64_t asked, ran; /* ticks at which the CPU clock of the thread was read last, and what it said, ns */
    double tick_ns;
    long switches; /* that the thread made of itself until then */
    int tid;       /* 0: not known yet */
};

/* Goes away with its thread, or with the profile function that it belongs to: tells the context. */
struct call_holder {
    PyObject_HEAD struct call_ctx *ctx;
};

/* How events come. start and stop return -1 with an exception set; stop may not fail half-way. */
struct call_engine {
    const char *name;
    int (*start)(struct call_recorder *rec);
    void (*stop)(struct call_recorder *rec);
    void (*thread_started)(
        struct call_recorder *rec); /* some thread was started just now; NULL: need not know */
    void (*let_go)(void);           /* of what a stopped profile that lingers has kept; NULL: none does */
};

struct call_recorder {
    PyObject_HEAD const struct call_engine *engine; /* while it records */
    VEC(struct call_func) funcs;
    struct map_u64 func_of; /* key -> number of the function */
    VEC(struct call_ctx *) threads;
    size_t n_nodes, limit, folds;
    uint64_t sites_off;         /* times that a call site was switched off: C calls there are missed */
    uint64_t events_lost;       /* no memory, or too deep for the frame hook */
    double cost[COST_KINDS][2]; /* in gauges: in the callee's own time, in its caller's */
    double doubt[COST_KINDS];   /* in gauges: how far what is taken out for a call may be off */
    double slowed; /* times that code of Python runs slower at most while it is recorded; 1: not at all */
    struct gauge gauge[CALL_KINDS];
    double gauge_before[CALL_KINDS];    /* ns, when the costs were weighed */
    uint64_t started, recorded, opened; /* ticks */
    double tick_ns;                     /* 0: not known yet */
    char trouble[200];                  /* why the results are incomplete; "" when they are not */
    bool fast, exact_c, cpu_clock;
    bool lingers; /* is started again and again: the engine may keep what is dear to set up */
};

extern bool calls_use_tsc;
extern struct call_recorder *calls_active; /* the one that records, or NULL */

static inline uint64_t calls_now(void)
{
    return CALLS_LIKELY(calls_use_tsc) ? clock_tsc() : clock_raw_ns();
}

/* ---- tree ---- */

enum { NODES_FIRST = 32, NODES_MORE = 1024 }; /* nodes of a context's first block and of the others */

/* The child of `parent`, found or made; `object`: the code or the C function. NULL: not to be recorded, or no
 * memory. */
struct call_node *ctx_child(struct call_ctx *c, const void *key, PyObject *object, enum call_kind kind);
bool ctx_grow(struct call_ctx *c);
void ctx_leave_far(struct call_ctx *c, const void *key, uint64_t now);
void ctx_left_special(struct call_ctx *c, const struct call_node *n, uint64_t ticks);
void ctx_close(struct call_ctx *c, uint64_t now); /* leaves all that is open, as if the program had */
struct call_ctx *ctx_new(struct call_recorder *rec);
void ctx_free(struct call_ctx *c);
void stack_release(struct call_stack *s);
bool stack_init(struct call_stack *s, struct call_node *root);

/* Something rare is due: the silence before was `waiter`'s, what this takes falls to `payer`. The new time. */
uint64_t ctx_aside(struct call_ctx *c, struct call_node *waiter, struct call_node *payer, uint64_t now);

struct site_events *ctx_sites_more(struct call_ctx *c, uint32_t number); /* of a node that has none yet */

static inline void ctx_enter(struct call_ctx *c, const void *key, PyObject *object, enum call_kind kind)
{
    struct call_node *n = c->stack.top->node->last;
    if (CALLS_UNLIKELY(!n || n->key != key)) {
        n = ctx_child(c, key, object, kind);
        if (!n) return;
    }
    if (CALLS_UNLIKELY(c->stack.top + 1 == c->stack.end) && !ctx_grow(c)) return;
    struct call_entry *e = ++c->stack.top;
    e->node = n;
    uint64_t now = calls_now();
    if (CALLS_UNLIKELY(now - c->last > c->silence) || CALLS_UNLIKELY(--c->coin == 0))
        now = ctx_aside(c, e[-1].node, e[-1].node, now);
    c->last = e->start = now;
}

/* `now` is read first thing in the event: as little of the event as possible falls into the function. */
static inline void ctx_leave(struct call_ctx *c, const void *key, uint64_t now)
{
    struct call_entry *e = c->stack.top;
    struct call_node *n = e->node;
    if (CALLS_UNLIKELY(n->key != key) || CALLS_UNLIKELY(c->skipped)) {
        ctx_leave_far(c, key, now);
        return;
    }
    n->calls++;
    n->total += now - e->start;
    c->stack.top = e - 1;
    if (CALLS_UNLIKELY(now - c->last > c->silence)) ctx_aside(c, n, e[-1].node, now);
    c->last = now;
    if (CALLS_UNLIKELY(n->flags)) ctx_left_special(c, n, now - e->start);
}

/* ---- functions ---- */

/* Number of the function, made on first sight; -1: no memory, -2: ours, not to be recorded. No exception is
 * left set. */
long func_number(struct call_recorder *rec, const void *key, PyObject *object, enum call_kind kind);
PyObject *func_label(const struct call_func *f); /* (file, line, name), a new reference */
void funcs_release(struct call_recorder *rec);

static inline enum call_kind code_kind(const PyCodeObject *code)
{
    const int resumed = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
    return code->co_flags & resumed ? CALL_RESUMED : CALL_PYTHON;
}

/* ---- threads ---- */

int threads_init(void); /* -1 with an exception set */

/* The context of the thread with this state: known (else NULL), or known or new (NULL: no memory). */
struct call_ctx *threads_known(const struct call_recorder *rec, PyThreadState *ts);
struct call_ctx *threads_of(struct call_recorder *rec, PyThreadState *ts);
struct call_holder *holder_new(struct call_ctx *c); /* NULL with an exception set */
struct call_ctx *threads_mine_slow(void);
void threads_settle(struct call_ctx *c); /* in the thread itself, now and then: its name, greenlets */
void threads_unhook(struct call_ctx *c); /* in the thread itself */

extern uint64_t calls_generation; /* changes with every start and stop */
struct calls_mine {
    uint64_t generation;
    struct call_ctx *ctx;
};
extern __thread struct calls_mine calls_mine __attribute__((tls_model("initial-exec")));

/* The calling thread's context, or NULL when nothing records. */
static inline struct call_ctx *threads_mine(void)
{
    if (CALLS_LIKELY(calls_mine.generation == calls_generation)) return calls_mine.ctx;
    return threads_mine_slow();
}

/* ---- engines: which exist depends on the interpreter ---- */

extern const struct call_engine *const calls_exact_engine, *const calls_fast_engine;

/* ---- the Python type, py_functions.c ---- */

extern PyTypeObject *calls_type;
bool calls_is_own(const PyMethodDef *def); /* enable, disable and the like: not part of what is profiled */

#pragma GCC visibility pop

#endif
