/* SPDX-License-Identifier: MIT
 * calls_results.c - the recorded trees as times and as Python data: columns of nodes, and the sums by function and by
 * pair of caller and function as pstats defines them. Never changes what was recorded.
 *
 * A clock reading holds our own cost. Each call of a node has two parts of it: INNER, between our clock
 * readings, lies in the node's own time; OUTER, before the first reading and after the second, lies in its
 * parent's own time. Both were weighed beforehand (python/tare/_weigh.py) in gauges, which were read while the
 * program ran (calls_aside.c), so
 *   self = total - totals of the children - (calls * INNER + calls of each child * its OUTER) * gauge
 * and from 3.12 on, where call sites tell of what they call: less what those events cost that no node counts,
 * and a total is the sum of the selfs below it, never the clock's own: what was taken out of a child is out of
 * all its callers as well. So is the time in which others had the processor: our cost had its part of it, and no
 * function is to blame for the rest. Where more is taken from a node than it has, the rest is taken from its
 * caller: the border between the two is what is least certain, and their sum stays right.
 *
 * Some interpreters run code slower while it is recorded: by nothing where it spends its time in one operator,
 * by `slowed` at most. What it would have taken lies between; the middle is told, and the rest is in doubt. */
#include "calls_results.h"

#include "core/mem.h"

/* By trial (bench/py_truth): by so much of itself a time differs from one run to the next. */
#define RUNS_DIFFER 0.06

/* ns. `total` is self and the children's total; `whole` also counts what is recorded elsewhere because the
 * limit was reached. */
struct node_time {
    double self, cost, waited, doubt;
    double total, whole, total_doubt;
};

/* A thread's times by number of node. */
struct call_times {
    size_t n;
    struct node_time *of;
    struct call_node **nodes;
};

/* ---- times ---- */

static void times_release(struct call_times *t)
{
    mem_free(t->of);
    mem_free(t->nodes);
    *t = (struct call_times){0};
}

static void collect_nodes(struct call_times *t, const struct call_ctx *c)
{
    for (size_t b = 0; b < c->blocks.n; b++) {
        size_t n = b ? NODES_MORE : NODES_FIRST;
        if (b + 1 == c->blocks.n) n = c->used;
        for (size_t i = 0; i < n; i++) t->nodes[c->blocks.items[b][i].number] = &c->blocks.items[b][i];
    }
}

/* What is still open counts as a Python function; what was open when recording began was never called. */
static uint64_t site_calls(const struct site_events *s, enum site_kind kind)
{
    if (kind == SITE_OTHER) return s->left;
    return s->called > s->left ? s->called - s->left : 0;
}

void add_sites(const struct call_ctx *c, uint64_t calls[SITE_KINDS])
{
    for (size_t i = 0; i < c->sites.n; i++)
        for (int kind = 0; kind < SITE_KINDS; kind++)
            calls[kind] += site_calls(&c->sites.items[i], (enum site_kind)kind);
}

/* Events of sites lie in the own time of the function that they are in. */
static void add_site_costs(struct call_times *t, const struct call_ctx *c, double gauge, double unread)
{
    for (size_t i = 0; i < c->sites.n && i < t->n; i++) {
        for (int kind = 0; kind < SITE_KINDS; kind++) {
            double cost = c->rec->cost[COST_SITES + kind][COST_OUTER];
            double calls = (double)site_calls(&c->sites.items[i], (enum site_kind)kind) * gauge;
            double doubt = calls * (c->rec->doubt[COST_SITES + kind] + unread * cost);
            t->of[i].cost += calls * cost;
            t->of[i].doubt += doubt;
            t->of[i].total_doubt += doubt;
        }
    }
}

/* Each node adds its own total to its self and takes it from its parent's: after all nodes the selfs are
 * those that the clock showed. A folded node is not below its parent in this sense: its parent keeps what
 * it took as `away`. */
static void add_self(struct call_times *t, const struct call_ctx *c, double tick_ns)
{
    double gauge[CALL_KINDS];
    double unread = gauges_ns(c->rec, gauge) ? 0 : 0.5; /* the machine may run at another speed since */
    for (size_t i = 0; i < t->n; i++) {
        const struct call_node *n = t->nodes[i];
        enum call_kind kind = n->func == UINT32_MAX ? CALL_PYTHON : c->rec->funcs.items[n->func].kind;
        const double *cost = c->rec->cost[kind];
        double calls = (double)n->calls * gauge[kind];
        double doubt = calls * (c->rec->doubt[kind] + unread * (cost[COST_INNER] + cost[COST_OUTER]));
        t->of[i].self += ((double)n->total - (double)n->away) * tick_ns;
        t->of[i].cost += calls * cost[COST_INNER];
        t->of[i].doubt += doubt;
        t->of[i].total_doubt += doubt;
        t->of[i].whole = (double)n->total * tick_ns - calls * cost[COST_INNER];
        if (!n->parent || (n->flags & NODE_FOLDED)) continue;
        t->of[n->parent->number].self -= (double)n->total * tick_ns;
        t->of[n->parent->number].cost += calls * cost[COST_OUTER];
        t->of[n->parent->number].doubt += doubt;
    }
    add_site_costs(t, c, gauge[CALL_PYTHON], unread);
}

static void add_aside(struct call_times *t, const struct call_ctx *c, double tick_ns)
{
    const struct map_u64_slot *slot;
    for (size_t at = 0; (slot = map_u64_next(&c->aside, &at));) {
        struct node_time *of = &t->of[slot->key / ASIDES];
        double ns = (double)slot->value * tick_ns;
        bool waited = slot->key % ASIDES == ASIDE_WAITED;
        if (waited) of->waited += ns;
        if (!waited || c->rec->cpu_clock) of->self -= ns;
    }
}

/* What ran is not what would have run without us: other caches, other places in memory. Waiting is not slowed, nor
 * is what C functions do. */
static void doubt_running(struct node_time *of, const struct call_recorder *rec, enum call_kind kind)
{
    double ran = of->self - (rec->cpu_clock ? 0 : of->waited), half = 0;
    if (ran <= 0) return;
    if (rec->slowed > 1 && kind != CALL_C && kind != CALL_METHOD) half = ran * (1 - 1 / rec->slowed) / 2;
    of->self -= half;
    of->doubt += half + RUNS_DIFFER * (ran - half);
    of->total_doubt += half + RUNS_DIFFER * (ran - half);
}

/* From the last made to the first, so that children come before their parents. A root has no time of its
 * own: what it would have is the time before the first call that we saw. */
static void add_totals(struct call_times *t, const struct call_recorder *rec)
{
    for (size_t i = t->n; i-- > 0;) {
        const struct call_node *n = t->nodes[i];
        struct node_time *of = &t->of[i], *parent = n->parent ? &t->of[n->parent->number] : NULL;
        bool is_root = n->func == UINT32_MAX;
        of->self -= of->cost;
        if (!is_root) doubt_running(of, rec, rec->funcs.items[n->func].kind);
        if (of->self < 0 && parent && !(n->flags & NODE_FOLDED)) parent->self += of->self;
        if (of->self < 0 || is_root) of->self = 0;
        of->total += of->self;
        if (!(n->flags & NODE_FOLDED))
            of->whole = of->total;
        else if (of->whole < of->self)
            of->whole = of->self;
        if (!parent) continue;
        parent->total += of->total;
        parent->total_doubt += of->total_doubt;
    }
}

/* What folded children took belongs to the callers' whole time, though not to their place in the tree. */
static void add_away(struct call_times *t, double tick_ns)
{
    for (size_t i = t->n; i-- > 0;) {
        const struct call_node *n = t->nodes[i];
        if (n->flags & NODE_FOLDED) continue;
        t->of[i].whole += (double)n->away * tick_ns;
        for (const struct call_node *up = n->away ? n->parent : NULL; up; up = up->parent)
            t->of[up->number].whole += (double)n->away * tick_ns;
    }
}

/* The steps build on one another: what the clock said, less what was aside, then sums from the leaves up. */
static bool times_of(struct call_times *t, struct call_ctx *c)
{
    *t = (struct call_times){.n = c->n_nodes};
    t->of = mem_new(t->n, sizeof *t->of);
    t->nodes = mem_new(t->n, sizeof(struct call_node *));
    if (!t->of || !t->nodes) {
        times_release(t);
        return false;
    }
    double tick_ns = recorder_tick_ns(c->rec);
    collect_nodes(t, c);
    add_self(t, c, tick_ns);
    add_aside(t, c, tick_ns);
    add_totals(t, c->rec);
    add_away(t, tick_ns);
    return true;
}

/* Time in which threads were ready to run and others had the processor. */
double recorder_preempted_ns(struct call_recorder *rec)
{
    const struct map_u64_slot *slot;
    double ticks = 0;
    for (size_t i = 0; i < rec->threads.n; i++)
        for (size_t at = 0; (slot = map_u64_next(&rec->threads.items[i]->aside, &at));)
            if (slot->key % ASIDES == ASIDE_PREEMPTED) ticks += (double)slot->value;
    return ticks * recorder_tick_ns(rec);
}

/* ---- what is open: counted as if it ended now, and taken back when the results are made ---- */

static void count_stack(const struct call_stack *s, uint64_t now, bool count)
{
    uint64_t sign = count ? 1 : UINT64_MAX; /* times minus one, modulo 2^64 */
    for (struct call_entry *e = s->top; e > s->base; e--) {
        uint64_t ticks = (s->paused ? s->paused : now) - e->start;
        e->node->calls += sign;
        e->node->total += sign * ticks;
        if (e->node->flags & NODE_FOLDED) e[-1].node->away += sign * ticks;
    }
}

static void count_open(struct call_recorder *rec, bool count)
{
    if (count) rec->opened = calls_now();
    for (size_t i = 0; i < rec->threads.n; i++) {
        struct call_ctx *c = rec->threads.items[i];
        if (count && calls_active == rec) ctx_settle(c, rec->opened);
        count_stack(&c->stack, rec->opened, count);
        for (size_t k = 0; k < c->parked.n; k++) count_stack(&c->parked.items[k], rec->opened, count);
    }
}

/* ---- sums: a call is primitive, and its time in the total, when the function (the pair) is not further up
 * ---- */

struct sum {
    uint32_t caller, func;
    uint64_t primitive, calls, active;
    double self, total, waited, cost, doubt, total_doubt;
};

struct sums {
    struct call_recorder *rec;
    struct sum *by_func; /* by number of function */
    size_t n_funcs;
    VEC(struct sum) by_pair;
    struct map_u64 pairs; /* caller << 32 | function -> number in by_pair */
};

static struct sum *pair_sum(struct sums *s, uint32_t caller, uint32_t func)
{
    uint64_t *number;
    size_t before = s->pairs.n;
    if (map_u64_ref(&s->pairs, (uint64_t)caller << 32 | func, &number, NULL) < 0) return NULL;
    if (s->pairs.n > before) {
        struct sum fresh = {.caller = caller, .func = func};
        if (vec_push(&s->by_pair, fresh, NULL) < 0) return NULL;
        *number = s->by_pair.n - 1;
    }
    return &s->by_pair.items[*number];
}

static void sum_add(struct sum *sum, const struct call_node *n, const struct call_times *t, bool again)
{
    sum->calls += n->calls;
    const struct node_time *of = &t->of[n->number];
    sum->self += of->self;
    sum->waited += of->waited;
    sum->cost += of->cost;
    sum->doubt += of->doubt;
    if (again) return;
    sum->primitive += n->calls;
    sum->total += of->whole;
    sum->total_doubt += of->total_doubt;
}

/* Placeholders of folded callers have no calls and no time of their own. */
static bool node_count(struct sums *s, const struct call_node *n, const struct call_times *t, bool enter)
{
    if (n->func == UINT32_MAX) return true;
    bool folded = n->flags & NODE_FOLDED, has_caller = n->parent->func != UINT32_MAX;
    struct sum *func = &s->by_func[n->func],
               *pair = has_caller ? pair_sum(s, n->parent->func, n->func) : NULL;
    if (has_caller && !pair) return false;
    if (enter) {
        sum_add(func, n, t, folded ? n->flags & NODE_AGAIN : func->active > 0);
        if (pair) sum_add(pair, n, t, folded ? n->flags & NODE_PAIR_AGAIN : pair->active > 0);
    }
    if (folded) return true;
    uint64_t step = enter ? 1 : UINT64_MAX; /* minus one, modulo 2^64 */
    func->active += step;
    if (pair) pair->active += step;
    return true;
}

/* Depth first over the rings, without recursion of our own: a path may be as deep as the program's. */
static bool tree_sum(struct sums *s, const struct call_node *root, const struct call_times *t)
{
    const struct call_node *n = root;
    for (;;) {
        if (!node_count(s, n, t, true)) return false;
        if (n->last) {
            n = n->last->next;
            continue;
        }
        for (;;) {
            if (!node_count(s, n, t, false)) return false;
            if (n == root) return true;
            if (n != n->parent->last) break;
            n = n->parent;
        }
        n = n->next;
    }
}

static bool ctx_sum(struct sums *s, struct call_ctx *c)
{
    struct call_times t;
    if (!times_of(&t, c)) return false;
    bool ok = tree_sum(s, c->root, &t);
    for (int i = 0; i < 3 && ok; i++)
        if (c->folded[i]) ok = tree_sum(s, c->folded[i], &t);
    times_release(&t);
    return ok;
}

static bool sums_make(struct sums *s)
{
    s->n_funcs = s->rec->funcs.n;
    s->by_func = mem_new(s->n_funcs, sizeof *s->by_func);
    if (!s->by_func) return false;
    for (uint32_t i = 0; i < s->n_funcs; i++) s->by_func[i].func = i;
    for (size_t i = 0; i < s->rec->threads.n; i++)
        if (!s->rec->threads.items[i]->left_out && !ctx_sum(s, s->rec->threads.items[i])) return false;
    return true;
}

/* ---- as Python data ---- */

static PyObject *rows(const struct sum *items, size_t n, bool with_caller)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < n; i++) {
        const struct sum *s = &items[i];
        unsigned long long primitive = s->primitive, calls = s->calls;
        if (!calls) continue;
        list = list_append(
            list, with_caller
                      ? Py_BuildValue("IIKKdd", s->caller, s->func, primitive, calls, s->self, s->total)
                      : Py_BuildValue("IKKdddddd", s->func, primitive, calls, s->self, s->total, s->waited,
                                      s->cost, s->doubt, s->total_doubt));
    }
    return list;
}

/* What is open counts as if it ended now, for the time in which the sums are made. */
PyObject *calls_sums(PyObject *recorder, PyObject *Py_UNUSED(none))
{
    struct call_recorder *rec = (struct call_recorder *)recorder;
    struct sums s = {.rec = rec, .pairs = MAP_U64_INIT};
    PyObject *result = NULL;
    count_open(rec, true);
    bool ok = sums_make(&s);
    count_open(rec, false);
    if (ok) {
        PyObject *by_func = rows(s.by_func, s.n_funcs, false),
                 *by_pair = rows(s.by_pair.items, s.by_pair.n, true);
        if (by_func && by_pair) result = PyTuple_Pack(2, by_func, by_pair);
        Py_XDECREF(by_func);
        Py_XDECREF(by_pair);
    } else {
        PyErr_NoMemory();
    }
    mem_free(s.by_func);
    vec_release(&s.by_pair);
    map_u64_release(&s.pairs);
    return result;
}

enum { PARENT, FUNCTION, CALLS, SELF, TOTAL, N_COLUMNS };

static PyObject *cell(const struct call_times *t, size_t row, int column)
{
    const struct call_node *n = t->nodes[row];
    switch (column) {
    case PARENT: return PyLong_FromLong(n->parent ? (long)n->parent->number : -1);
    case FUNCTION: return PyLong_FromLong(n->func == UINT32_MAX ? -1 : (long)n->func);
    case CALLS: return PyLong_FromUnsignedLongLong(n->calls);
    case SELF: return PyLong_FromDouble(t->of[row].self + 0.5);
    default: return PyLong_FromDouble(t->of[row].total + 0.5);
    }
}

static PyObject *column(const struct call_times *t, int which)
{
    PyObject *list = PyList_New((Py_ssize_t)t->n);
    for (size_t i = 0; list && i < t->n; i++) {
        PyObject *value = cell(t, i, which);
        if (value)
            PyList_SET_ITEM(list, (Py_ssize_t)i, value);
        else
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *ctx_columns(struct call_ctx *c)
{
    struct call_times t;
    if (!times_of(&t, c)) return PyErr_NoMemory();
    PyObject *columns = PyTuple_New(N_COLUMNS);
    for (int i = 0; columns && i < N_COLUMNS; i++) {
        PyObject *made = column(&t, i);
        if (!made || PyTuple_SetItem(columns, i, made) < 0) Py_CLEAR(columns);
    }
    times_release(&t);
    if (!columns) return NULL;
    return Py_BuildValue("OkIN", c->name ? c->name : Py_None, c->ident, c->threads, columns);
}

PyObject *calls_columns(PyObject *recorder, PyObject *Py_UNUSED(none))
{
    struct call_recorder *rec = (struct call_recorder *)recorder;
    PyObject *list = PyList_New(0);
    count_open(rec, true);
    for (size_t i = 0; list && i < rec->threads.n; i++)
        if (!rec->threads.items[i]->left_out) list = list_append(list, ctx_columns(rec->threads.items[i]));
    count_open(rec, false);
    return list;
}

PyObject *calls_leave_out(PyObject *recorder, PyObject *idents)
{
    struct call_recorder *rec = (struct call_recorder *)recorder;
    PyObject *names = PyList_New(0);
    for (size_t i = 0; names && i < rec->threads.n; i++) {
        struct call_ctx *c = rec->threads.items[i];
        PyObject *ident = PyLong_FromUnsignedLong(c->ident);
        int found = ident ? PySequence_Contains(idents, ident) : -1;
        Py_XDECREF(ident);
        if (found < 0) Py_CLEAR(names);
        if (found <= 0 || !c->root) continue;
        c->left_out = true;
        names = list_append(names, Py_NewRef(c->name ? c->name : Py_None));
    }
    return names;
}
