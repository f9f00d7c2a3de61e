/* SPDX-License-Identifier: MIT
 * unwind.c - from a frame to its caller, by the tables that compilers write for exceptions (.eh_frame). Only what
 * ordinary frames need is understood: the frame's address from rsp or rbp, rbp saved or not, the return address
 * beside it. Anything else ends the walk. How to go on from an address is kept, so that the tables are read once.
 * Reads nothing outside the thread's stack but tables of libraries that have a frame on it, which cannot be
 * unloaded. */
#include <string.h>

#include "agent/hot.h"
#include "core/eh_frame.h"

#if defined(__x86_64__)

/* How a frame lies: cfa = (bp or sp) + offset; the return address at cfa - 8; rbp at cfa + bp_at, if it was saved. */
struct rule {
    bool ok, by_bp, bp_saved, last; /* last: the outermost frame */
    int32_t offset, bp_at;
};

/* ---- from an address to its rule ---- */

/* An entry where it lies: the tables of a library that has a frame on this stack are there. */
static struct eh_bytes entry_at(uint64_t at)
{
    const uint8_t *p = (const uint8_t *)(uintptr_t)at;
    return eh_copy(p, eh_entry_bytes(p), at);
}

/* Where the frame's address and rbp come from; a row that needs more is none. */
static struct rule simplify(const struct eh_row *row)
{
    const struct eh_rule *bp = &row->reg[EH_BP], *ra = &row->reg[EH_RA];
    struct rule r = {
        .by_bp = row->cfa_reg == EH_BP, .offset = row->cfa_offset, .last = ra->how == EH_UNDEFINED};
    r.bp_saved = bp->how == EH_AT_CFA;
    r.bp_at = r.bp_saved ? bp->value : 0;
    bool by_sp = row->cfa_reg == EH_SP, bp_good = r.bp_saved || bp->how == EH_SAME || bp->how == EH_UNDEFINED;
    bool ra_good = r.last || (ra->how == EH_AT_CFA && ra->value == -8);
    r.ok = !row->signal && !row->computed && (by_sp || r.by_bp) && bp_good && ra_good;
    return r;
}

static struct rule find_rule(uint64_t ip, int at)
{
    struct rule none = {.ok = false};
    struct eh_row row;
    const struct module *m = at >= 0 ? &agent->modules[at] : NULL;
    if (!m || !m->table) return none;
    const void *table = (const void *)(uintptr_t)m->table;
    uint64_t entry = eh_search(eh_copy(table, m->table_bytes, m->table), ip);
    if (!entry) return none;
    struct eh_bytes of = entry_at(entry);
    uint64_t cie = eh_cie_at(of);
    return cie && eh_row(of, entry_at(cie), ip, &row) ? simplify(&row) : none;
}

/* ---- kept ---- */

static uint64_t pack_rule(const struct rule *r)
{
    bool fits = r->offset >= 0 && r->offset < 1 << 28 && r->bp_at > -(1 << 27) && r->bp_at <= 0;
    if (!r->ok || !fits) return 1;
    return 2 | (uint64_t)r->by_bp << 2 | (uint64_t)r->bp_saved << 3 | (uint64_t)r->last << 4 |
           (uint64_t)r->offset << 5 | (uint64_t)(uint32_t)-r->bp_at << 34;
}

static uint64_t rule_for(uint64_t ip)
{
    uint64_t generation = (uint64_t)__atomic_load_n(&agent->generation, __ATOMIC_ACQUIRE) << 48;
    struct row *r = &agent->rows[(ip ^ ip >> 13) % ROWS];
    uint64_t value = __atomic_load_n(&r->value, __ATOMIC_RELAXED);
    if (value && (__atomic_load_n(&r->key, __ATOMIC_RELAXED) ^ value ^ generation) == ip) return value;
    int module = module_at(ip);
    struct rule found = find_rule(ip, module);
    value = pack_rule(&found);
    if (module == MODULE_LATER) return value; /* a library that came a moment ago: ask again */
    generation = (uint64_t)__atomic_load_n(&agent->generation, __ATOMIC_ACQUIRE) << 48;
    __atomic_store_n(&r->key, ip ^ value ^ generation, __ATOMIC_RELAXED);
    __atomic_store_n(&r->value, value, __ATOMIC_RELAXED);
    return value;
}

/* The caller's frame must lie further out on the same stack. */
bool unwind_step(struct cursor *c)
{
    uint64_t rule = rule_for(c->ip - 1);
    if (rule & 1) return false;
    if (rule & 16) { /* the outermost: whole */
        c->ip = 0;
        return false;
    }
    uint64_t cfa = (rule & 4 ? c->bp : c->sp) + (rule >> 5 & 0x1fffffff), bp_at = rule >> 34;
    if (!c->top || cfa % 8 || cfa <= c->sp || cfa > c->top || bp_at > cfa - c->sp) return false;
    const uint64_t *at = (const uint64_t *)(uintptr_t)cfa;
    if (rule & 8) memcpy(&c->bp, (const char *)at - bp_at, sizeof c->bp);
    c->ip = at[-1];
    c->sp = cfa;
    return c->ip > 4096;
}

#else

bool unwind_step(struct cursor *c)
{
    (void)c;
    return false;
}

#endif
