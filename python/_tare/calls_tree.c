/* SPDX-License-Identifier: MIT
 * calls_tree.c - the calling-context tree of a thread and its stack of open calls. Never raises a Python
 * exception: what cannot be recorded is counted. */
#include "calls.h"

#include <string.h>

#include "core/mem.h"

enum { FIRST_STACK = 32, FIRST_SLOTS = 64 };

/* ---- nodes ---- */

/* Nodes lie in blocks that never move, so that they can point to each other. */
static struct call_node *node_new(struct call_ctx *c)
{
    if (c->blocks.n == 0 || c->used == (c->blocks.n == 1 ? NODES_FIRST : NODES_MORE)) {
        if (vec_reserve(&c->blocks, c->blocks.n + 1, NULL) < 0) return NULL;
        struct call_node *block = mem_new(c->blocks.n ? NODES_MORE : NODES_FIRST, sizeof *block);
        if (!block) return NULL;
        c->blocks.items[c->blocks.n++] = block;
        c->used = 0;
    }
    c->rec->n_nodes++;
    struct call_node *n = &c->blocks.items[c->blocks.n - 1][c->used++];
    n->number = (uint32_t)c->n_nodes++ & 0xffffff;
    return n;
}

static size_t slot_of(const struct call_ctx *c, const struct call_node *parent, const void *key)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)parent >> 6) * UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ ((uint64_t)(uintptr_t)key >> 4)) * UINT64_C(0xD6E8FEB86659FD93);
    return (size_t)(mixed >> 20) & (c->n_slots - 1);
}

static struct call_node *slots_find(const struct call_ctx *c, const struct call_node *parent, const void *key)
{
    if (!c->n_slots) return NULL;
    for (size_t i = slot_of(c, parent, key);; i = (i + 1) & (c->n_slots - 1)) {
        struct call_node *n = c->slots[i];
        if (!n || (n->parent == parent && n->key == key)) return n;
    }
}

static void slots_put(struct call_ctx *c, struct call_node *n)
{
    size_t i = slot_of(c, n->parent, n->key);
    while (c->slots[i]) i = (i + 1) & (c->n_slots - 1);
    c->slots[i] = n;
}

/* At most half of the slots are used: a search ends after a few steps. */
static bool slots_room(struct call_ctx *c)
{
    if (c->n_nodes * 2 < c->n_slots) return true;
    struct call_node **old = c->slots;
    size_t n_old = c->n_slots, n_new = n_old ? n_old * 2 : FIRST_SLOTS;
    struct call_node **made = mem_new(n_new, sizeof(struct call_node *));
    if (!made) return false;
    c->slots = made;
    c->n_slots = n_new;
    for (size_t i = 0; i < n_old; i++)
        if (old[i]) slots_put(c, old[i]);
    mem_free(old);
    return true;
}

/* Behind the child called last: the ring keeps the order of the program. */
static void ring_add(struct call_node *parent, struct call_node *child)
{
    if (parent->last) {
        child->next = parent->last->next;
        parent->last->next = child;
    } else {
        child->next = child;
        parent->last = child;
    }
}

static struct call_node *child_add(struct call_ctx *c, struct call_node *parent, const void *key,
                                   uint32_t func)
{
    if (!slots_room(c)) return NULL;
    struct call_node *n = node_new(c);
    if (!n) return NULL;
    n->key = key;
    n->parent = parent;
    n->func = func;
    if (c->rec->funcs.items[func].starts_thread) n->flags = NODE_STARTS_THREAD;
    ring_add(parent, n);
    slots_put(c, n);
    return n;
}

/* ---- beyond the limit: pairs of caller and function in place of paths ---- */

/* Is the function, is the pair open already? Costs the depth of the stack, at the limit only. */
static uint32_t again_flags(const struct call_ctx *c, const void *key)
{
    const void *caller = c->stack.top->node->key;
    uint32_t flags = 0;
    for (const struct call_entry *e = c->stack.top; e > c->stack.base; e--) {
        if (e->node->key != key) continue;
        flags |= NODE_AGAIN;
        if (e[-1].node->key == caller) return flags | NODE_PAIR_AGAIN;
    }
    return flags;
}

/* Folded pairs hang below one of three roots, by whether function and pair were open already: a node of its own for
 * each answer, so that primitive calls stay exact. */
static struct call_node *fold_root(struct call_ctx *c, uint32_t flags)
{
    struct call_node **root = &c->folded[0];
    if (flags & NODE_AGAIN) root = &c->folded[1];
    if (flags & NODE_PAIR_AGAIN) root = &c->folded[2];
    if (!*root && (*root = node_new(c))) {
        (*root)->func = UINT32_MAX;
        (*root)->parent = c->root;
        (*root)->flags = (NODE_FOLDED | flags) & 0xff;
    }
    return *root;
}

static struct call_node *fold_child(struct call_ctx *c, struct call_node *parent, const void *key,
                                    uint32_t func)
{
    struct call_node *n = slots_find(c, parent, key);
    if (!n && (n = child_add(c, parent, key, func))) n->flags = (n->flags | parent->flags) & 0xff;
    return n;
}

/* Twice the limit is where even pairs end: numbers of nodes are finite. */
static struct call_node *folded(struct call_ctx *c, const void *key, uint32_t func)
{
    const struct call_node *from = c->stack.top->node;
    c->rec->folds++;
    if (c->rec->n_nodes >= 2 * c->rec->limit + 1024) return NULL;
    struct call_node *root = fold_root(c, again_flags(c, key));
    if (!root) return NULL;
    struct call_node *caller = from == c->root ? root : fold_child(c, root, from->key, from->func);
    return caller ? fold_child(c, caller, key, func) : NULL;
}

/* ---- open calls ---- */

static struct call_node *skip(struct call_ctx *c)
{
    c->skipped++;
    c->rec->events_lost++;
    return NULL;
}

/* By rising cost: the next in the ring (a loop that calls the same few), the table, a new node. */
struct call_node *ctx_child(struct call_ctx *c, const void *key, PyObject *object, enum call_kind kind)
{
    struct call_node *parent = c->stack.top->node, *n = parent->last;
    if (c->skipped) return skip(c);
    if (n && n->next->key == key) return parent->last = n->next;
    if ((n = slots_find(c, parent, key))) return parent->last = n;
    long func = func_number(c->rec, key, object, kind);
    if (func == -2) return NULL;
    if (func < 0) return skip(c);
    if (!c->name || !c->hooked) threads_settle(c);
    if (c->rec->n_nodes >= c->rec->limit || (parent->flags & NODE_FOLDED))
        n = folded(c, key, (uint32_t)func);
    else
        n = child_add(c, parent, key, (uint32_t)func);
    if (!n) return skip(c);
    if (!(n->flags & NODE_FOLDED)) parent->last = n;
    return n;
}

/* Room for all nodes there are, so that this is rare. Without memory the events are not known of. */
struct site_events *ctx_sites_more(struct call_ctx *c, uint32_t number)
{
    static struct site_events nowhere;
    if (vec_reserve(&c->sites, c->n_nodes, NULL) < 0 || number >= c->n_nodes) return &nowhere;
    memset(&c->sites.items[c->sites.n], 0, (c->n_nodes - c->sites.n) * sizeof *c->sites.items);
    c->sites.n = c->n_nodes;
    return &c->sites.items[number];
}

bool ctx_grow(struct call_ctx *c)
{
    struct call_stack *s = &c->stack;
    size_t depth = (size_t)(s->top - s->base), room = (size_t)(s->end - s->base);
    struct call_entry *grown = mem_resize(s->base, room * 2, sizeof *grown);
    if (!grown) {
        skip(c);
        return false;
    }
    s->base = grown;
    s->top = grown + depth;
    s->end = grown + room * 2;
    return true;
}

static void leave_top(struct call_stack *s, uint64_t now)
{
    struct call_node *n = s->top->node;
    n->calls++;
    n->total += now - s->top->start;
    if (n->flags & NODE_FOLDED) s->top[-1].node->away += now - s->top->start;
    s->top--;
}

/* Rare ends: of a folded call, whose time its caller must know of, and of a call that started a thread. */
void ctx_left_special(struct call_ctx *c, const struct call_node *n, uint64_t ticks)
{
    if (n->flags & NODE_FOLDED) c->stack.top->node->away += ticks;
    const struct call_engine *engine = c->rec->engine;
    if ((n->flags & NODE_STARTS_THREAD) && engine && engine->thread_started) engine->thread_started(c->rec);
}

/* What was left is not what was entered last: it began before we did, or the interpreter did not tell of the
 * end of something in between (a generator that was dropped). Ends what lies above it, and nothing when it is
 * not open at all. */
void ctx_leave_far(struct call_ctx *c, const void *key, uint64_t now)
{
    struct call_stack *s = &c->stack;
    if (c->skipped) {
        c->skipped--;
        return;
    }
    const struct call_entry *e = s->top;
    while (e > s->base && e->node->key != key) e--;
    if (e == s->base) return;
    while (s->top >= e) leave_top(s, now);
}

static void stack_close(struct call_stack *s, uint64_t now)
{
    while (s->top > s->base) leave_top(s, s->paused ? s->paused : now);
}

void ctx_close(struct call_ctx *c, uint64_t now)
{
    c->skipped = 0;
    stack_close(&c->stack, now);
    for (size_t i = 0; i < c->parked.n; i++) {
        stack_close(&c->parked.items[i], now);
        stack_release(&c->parked.items[i]);
    }
    c->parked.n = 0;
    c->stack.owner = NULL;
}

/* ---- lifetime ---- */

bool stack_init(struct call_stack *s, struct call_node *root)
{
    memset(s, 0, sizeof *s);
    s->base = mem_new(FIRST_STACK, sizeof *s->base);
    if (!s->base) return false;
    s->base->node = root;
    s->top = s->base;
    s->end = s->base + FIRST_STACK;
    return true;
}

void stack_release(struct call_stack *s)
{
    mem_free(s->base);
    memset(s, 0, sizeof *s);
}

struct call_ctx *ctx_new(struct call_recorder *rec)
{
    struct call_ctx *c = mem_new(1, sizeof *c);
    if (!c) return NULL;
    c->rec = rec;
    c->root = node_new(c);
    if (!c->root || !stack_init(&c->stack, c->root) || vec_push(&rec->threads, c, NULL) < 0) {
        ctx_free(c);
        return NULL;
    }
    c->root->func = UINT32_MAX;
    return c;
}

void ctx_free(struct call_ctx *c)
{
    if (c->holder) c->holder->ctx = NULL;
    for (size_t i = 0; i < c->parked.n; i++) stack_release(&c->parked.items[i]);
    for (size_t i = 0; i < c->blocks.n; i++) mem_free(c->blocks.items[i]);
    map_u64_release(&c->aside);
    vec_release(&c->parked);
    vec_release(&c->blocks);
    vec_release(&c->sites);
    stack_release(&c->stack);
    mem_free(c->slots);
    Py_XDECREF(c->name);
    mem_free(c);
}
