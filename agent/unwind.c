/* SPDX-License-Identifier: MIT
 * unwind.c - from a frame to its caller, by the tables that compilers write for exceptions (.eh_frame). Only what
 * ordinary frames need is understood: the frame's address from rsp or rbp, rbp saved or not, the return address
 * beside it. Anything else ends the walk. How to go on from an address is kept, so that the tables are read once.
 * Reads nothing outside the thread's stack but tables of libraries that have a frame on it, which cannot be
 * unloaded. */
#include <string.h>

#include "agent/hot.h"

#if defined(__x86_64__)

enum { REG_BP = 6, REG_SP = 7, REG_RA = 16, SAVED_MOST = 4 };

/* How a frame lies: cfa = (bp or sp) + offset; the return address at cfa - 8; rbp at cfa + bp_at, if it was saved. */
struct rule {
    bool ok, by_bp, bp_saved, last; /* last: the outermost frame */
    int32_t offset, bp_at;
};

/* ---- bytes of tables ---- */

struct bytes {
    const uint8_t *p, *end;
    bool failed;
};

static uint64_t take(struct bytes *b, unsigned n)
{
    uint64_t v = 0;
    if (b->failed || (size_t)(b->end - b->p) < n) {
        b->failed = true;
        return 0;
    }
    memcpy(&v, b->p, n);
    b->p += n;
    return v;
}

static uint64_t take_uleb(struct bytes *b)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
        uint8_t c = (uint8_t)take(b, 1);
        v |= (uint64_t)(c & 127) << shift;
        if (!(c & 128)) return v;
    }
    b->failed = true;
    return 0;
}

static int64_t take_sleb(struct bytes *b)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 63;) {
        uint8_t c = (uint8_t)take(b, 1);
        v |= (uint64_t)(c & 127) << shift;
        shift += 7;
        if (c & 128) continue;
        if (c & 64) v |= ~UINT64_C(0) << shift;
        return (int64_t)v;
    }
    b->failed = true;
    return 0;
}

/* A pointer as DW_EH_PE_* says; relative to its place or to `data`. */
static uint64_t take_pointer(struct bytes *b, uint8_t how, uint64_t data)
{
    uint64_t at = (uint64_t)(uintptr_t)b->p, v;
    if (how == 0xff) return 0;
    switch (how & 15) {
    case 0:
    case 4:
    case 12: v = take(b, 8); break;
    case 2: v = take(b, 2); break;
    case 3: v = take(b, 4); break;
    case 10: v = (uint64_t)(int16_t)take(b, 2); break;
    case 11: v = (uint64_t)(int64_t)(int32_t)take(b, 4); break;
    case 1: v = take_uleb(b); break;
    case 9: v = (uint64_t)take_sleb(b); break;
    default: b->failed = true; return 0;
    }
    if ((how & 0x70) == 0x10) v += at;
    if ((how & 0x70) == 0x30) v += data;
    return v;
}

/* ---- the description of a function ---- */

struct cie {
    uint64_t code_align;
    int64_t data_align;
    uint8_t pointers;
    bool augmented, signal;
    struct bytes program;
};

static struct bytes entry_at(const uint8_t *p, uint64_t *length)
{
    uint32_t n;
    memcpy(&n, p, sizeof n);
    *length = n;
    if (!n || n >= 0xfffffff0u) return (struct bytes){.failed = true};
    return (struct bytes){p + 4, p + 4 + n, false};
}

static bool read_cie(const uint8_t *at, struct cie *c)
{
    uint64_t length;
    struct bytes b = entry_at(at, &length);
    if (take(&b, 4) != 0) return false; /* not a CIE */
    uint8_t version = (uint8_t)take(&b, 1);
    if (b.failed || (version != 1 && version != 3)) return false;
    const char *text = (const char *)b.p;
    while (take(&b, 1) && !b.failed) continue;
    *c = (struct cie){.pointers = 0};
    c->code_align = take_uleb(&b);
    c->data_align = take_sleb(&b);
    uint64_t ra = version == 1 ? take(&b, 1) : take_uleb(&b);
    if (b.failed || ra != REG_RA) return false;
    if (*text == 'z') {
        c->augmented = true;
        uint64_t bytes = take_uleb(&b);
        const uint8_t *end = b.p + bytes;
        if (b.failed || bytes > (uint64_t)(b.end - b.p)) return false;
        for (text++; *text && !b.failed; text++) {
            if (*text == 'R') c->pointers = (uint8_t)take(&b, 1);
            if (*text == 'L') take(&b, 1);
            if (*text == 'S') c->signal = true;
            if (*text == 'P') {
                uint8_t how = (uint8_t)take(&b, 1);
                take_pointer(&b, how & 0x7f, 0);
            }
        }
        b.p = end;
    }
    c->program = b;
    return !b.failed;
}

/* ---- its program, up to an address ---- */

struct machine {
    const struct cie *cie;
    uint64_t at; /* address that the next row is for */
    struct rule now, initial, saved[SAVED_MOST];
    unsigned n_saved;
};

static void set_saved(struct machine *m, uint64_t reg, int64_t factored)
{
    int64_t at = factored * m->cie->data_align;
    if (reg == REG_BP) {
        m->now.bp_saved = true;
        m->now.bp_at = (int32_t)at;
    }
    if (reg == REG_RA && at != -8) m->now.ok = false;
}

static void set_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
    m->now.ok = reg == REG_BP || reg == REG_SP;
    m->now.by_bp = reg == REG_BP;
    m->now.offset = (int32_t)offset;
}

static void restore(struct machine *m, uint64_t reg)
{
    if (reg != REG_BP) return;
    m->now.bp_saved = m->initial.bp_saved;
    m->now.bp_at = m->initial.bp_at;
}

/* Opcodes whose top bits are 0; false: not understood. */
static bool run_extended(struct machine *m, struct bytes *b, uint8_t op)
{
    uint64_t reg;
    switch (op) {
    case 0x00: return true;
    case 0x01: m->at = take_pointer(b, m->cie->pointers, 0); return true;
    case 0x02: m->at += take(b, 1) * m->cie->code_align; return true;
    case 0x03: m->at += take(b, 2) * m->cie->code_align; return true;
    case 0x04: m->at += take(b, 4) * m->cie->code_align; return true;
    case 0x05:
        reg = take_uleb(b);
        set_saved(m, reg, (int64_t)take_uleb(b));
        return true;
    case 0x06: restore(m, take_uleb(b)); return true;
    case 0x07: /* undefined: of the return address in the outermost frame */
        reg = take_uleb(b);
        if (reg == REG_RA) m->now.last = true;
        return true;
    case 0x08: restore(m, take_uleb(b)); return true;
    case 0x09:
        take_uleb(b);
        take_uleb(b);
        return true;
    case 0x0a:
        if (m->n_saved == SAVED_MOST) return false;
        m->saved[m->n_saved++] = m->now;
        return true;
    case 0x0b:
        if (!m->n_saved) return false;
        m->now = m->saved[--m->n_saved];
        return true;
    case 0x0c:
        reg = take_uleb(b);
        set_cfa(m, reg, (int64_t)take_uleb(b));
        return true;
    case 0x0d: set_cfa(m, take_uleb(b), m->now.offset); return true;
    case 0x0e: m->now.offset = (int32_t)take_uleb(b); return true;
    case 0x11:
        reg = take_uleb(b);
        set_saved(m, reg, take_sleb(b));
        return true;
    case 0x12:
        reg = take_uleb(b);
        set_cfa(m, reg, take_sleb(b) * m->cie->data_align);
        return true;
    case 0x13: m->now.offset = (int32_t)(take_sleb(b) * m->cie->data_align); return true;
    case 0x2e: take_uleb(b); return true; /* GNU: size of arguments */
    case 0x0f:                            /* the frame's address is computed: rows of such code are not ok */
        m->now.ok = false;
        reg = take_uleb(b);
        b->failed |= reg > (uint64_t)(b->end - b->p);
        if (!b->failed) b->p += reg;
        return true;
    case 0x10:
    case 0x16: { /* a register is: only rbp matters */
        uint64_t which = take_uleb(b), bytes = take_uleb(b);
        if (which == REG_BP || which == REG_RA) m->now.ok = false;
        b->failed |= bytes > (uint64_t)(b->end - b->p);
        if (!b->failed) b->p += bytes;
        return true;
    }
    default: return false;
    }
}

static bool run(struct machine *m, struct bytes b, uint64_t until)
{
    while (b.p < b.end && !b.failed) {
        struct rule before = m->now;
        uint8_t op = (uint8_t)take(&b, 1);
        uint64_t at = m->at;
        if (op >> 6 == 1)
            m->at += (op & 63) * m->cie->code_align;
        else if (op >> 6 == 2)
            set_saved(m, op & 63, (int64_t)take_uleb(&b));
        else if (op >> 6 == 3)
            restore(m, op & 63);
        else if (!run_extended(m, &b, op))
            return false;
        if (m->at != at && m->at > until) {
            m->now = before;
            break;
        }
    }
    return !b.failed;
}

/* ---- from an address to its rule ---- */

/* The table of a library: pairs of (start of a function, its description), relative to the table, in order. */
static const uint8_t *find_entry(const struct module *m, uint64_t ip)
{
    const uint8_t *t = (const uint8_t *)(uintptr_t)m->table;
    struct bytes b = {t, t + m->table_bytes, false};
    if (take(&b, 1) != 1) return NULL;
    uint8_t frame_how = (uint8_t)take(&b, 1), count_how = (uint8_t)take(&b, 1),
            table_how = (uint8_t)take(&b, 1);
    take_pointer(&b, frame_how, m->table);
    uint64_t n = take_pointer(&b, count_how, m->table);
    if (b.failed || table_how != 0x3b || n > (uint64_t)(b.end - b.p) / 8 || !n) return NULL;
    uint64_t lo = 0, hi = n;
    int64_t want = (int64_t)(ip - m->table);
    while (hi - lo > 1) {
        uint64_t mid = lo + (hi - lo) / 2;
        int32_t start;
        memcpy(&start, b.p + mid * 8, sizeof start);
        if (start <= want)
            lo = mid;
        else
            hi = mid;
    }
    int32_t pair[2];
    memcpy(pair, b.p + lo * 8, sizeof pair);
    return pair[0] <= want ? t + pair[1] : NULL;
}

static struct rule find_rule(uint64_t ip, int at)
{
    struct rule none = {.ok = false};
    struct cie cie;
    uint64_t length;
    const struct module *m = at >= 0 ? &agent->modules[at] : NULL;
    const uint8_t *entry = m && m->table ? find_entry(m, ip) : NULL;
    if (!entry) return none;
    struct bytes b = entry_at(entry, &length);
    const uint8_t *here = b.p;
    uint64_t back = take(&b, 4);
    if (b.failed || !back || !read_cie(here - back, &cie) || cie.signal) return none;
    uint64_t start = take_pointer(&b, cie.pointers, 0), size = take_pointer(&b, cie.pointers & 15, 0);
    if (b.failed || ip < start || ip - start >= size) return none;
    if (cie.augmented) {
        uint64_t bytes = take_uleb(&b);
        if (b.failed || bytes > (uint64_t)(b.end - b.p)) return none;
        b.p += bytes;
    }
    struct machine machine = {.cie = &cie, .at = start};
    if (!run(&machine, cie.program, UINT64_MAX)) return none;
    machine.initial = machine.now;
    machine.at = start;
    return run(&machine, b, ip) ? machine.now : none;
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
