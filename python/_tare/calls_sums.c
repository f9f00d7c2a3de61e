/* SPDX-License-Identifier: MIT
 * calls_sums.c - the trees as Python data: columns of nodes, and the sums by function and by pair of caller
 * and function as pstats defines them. A call counts as primitive, and its time into the total, when the
 * function (the pair) is not further up the path. */
#include "calls_results.h"

struct sum {
    uint32_t caller, func;
    uint64_t primitive, calls, active;
    double self, total;
};

struct sums {
    struct recorder *rec;
    struct sum *by_func; /* by number of function */
    size_t n_funcs;
    VEC(struct sum) by_pair;
    struct map_u64 pairs; /* caller << 32 | function -> number in by_pair */
};

/* ---- sums ---- */

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
    sum->self += t->self[n->number];
    if (again) return;
    sum->primitive += n->calls;
    sum->total += t->whole[n->number];
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
    uint64_t step = folded ? 0 : enter ? 1 : UINT64_MAX;
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
        if (!ctx_sum(s, s->rec->threads.items[i])) return false;
    return true;
}

/* ---- as Python data ---- */

static PyObject *append(PyObject *list, PyObject *item)
{
    if (list && (!item || PyList_Append(list, item) < 0)) Py_CLEAR(list);
    Py_XDECREF(item);
    return list;
}

static PyObject *rows(const struct sum *items, size_t n, bool with_caller)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < n; i++) {
        const struct sum *s = &items[i];
        unsigned long long primitive = s->primitive, calls = s->calls;
        if (!calls) continue;
        list = append(list,
                      with_caller
                          ? Py_BuildValue("IIKKdd", s->caller, s->func, primitive, calls, s->self, s->total)
                          : Py_BuildValue("IKKdd", s->func, primitive, calls, s->self, s->total));
    }
    return list;
}

PyObject *calls_sums(struct recorder *rec)
{
    struct sums s = {.rec = rec, .pairs = MAP_U64_INIT};
    PyObject *result = NULL;
    calls_open(rec, true);
    bool ok = sums_make(&s);
    calls_open(rec, false);
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
    case SELF: return PyLong_FromDouble(t->self[row] + 0.5);
    default: return PyLong_FromDouble(t->total[row] + 0.5);
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

PyObject *calls_columns(struct recorder *rec)
{
    PyObject *list = PyList_New(0);
    calls_open(rec, true);
    for (size_t i = 0; list && i < rec->threads.n; i++)
        list = append(list, ctx_columns(rec->threads.items[i]));
    calls_open(rec, false);
    return list;
}
