/* SPDX-License-Identifier: MIT
 * eh_frame.c - see eh_frame.h. */
#include "core/eh_frame.h"

#include <string.h>

enum { SAVED_MOST = 4 };

/* ---- bytes of tables ---- */

static uint64_t take(struct eh_bytes *b, unsigned n)
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

static uint64_t take_uleb(struct eh_bytes *b)
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

static int64_t take_sleb(struct eh_bytes *b)
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

static void skip(struct eh_bytes *b, uint64_t n)
{
    if (n > (uint64_t)(b->end - b->p)) b->failed = true;
    if (!b->failed) b->p += n;
}

/* A pointer as DW_EH_PE_* says; relative to its place or to `data`. */
static uint64_t take_pointer(struct eh_bytes *b, uint8_t how, uint64_t data)
{
    uint64_t at = (uint64_t)(uintptr_t)b->p + b->skew, v;
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

/* ---- the index: pairs of (start of a function, its entry), relative to the index, in order ---- */

uint64_t eh_search(struct eh_bytes b, uint64_t ip)
{
    uint64_t at = (uint64_t)(uintptr_t)b.p + b.skew;
    if (take(&b, 1) != 1) return 0;
    uint8_t frame_how = (uint8_t)take(&b, 1), count_how = (uint8_t)take(&b, 1), how = (uint8_t)take(&b, 1);
    take_pointer(&b, frame_how, at);
    uint64_t n = take_pointer(&b, count_how, at);
    if (b.failed || how != 0x3b || n > (uint64_t)(b.end - b.p) / 8 || !n) return 0;
    uint64_t lo = 0, hi = n;
    int64_t want = (int64_t)(ip - at);
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
    return pair[0] <= want ? at + (uint64_t)(int64_t)pair[1] : 0;
}

/* ---- the description of a function ---- */

struct cie {
    uint64_t code_align;
    int64_t data_align;
    uint8_t pointers;
    bool augmented, signal;
    struct eh_bytes program;
};

size_t eh_entry_bytes(const uint8_t word[4])
{
    uint32_t n;
    memcpy(&n, word, sizeof n);
    return n && n < 0xfffffff0u ? (size_t)n + 4 : 0;
}

/* What is behind the length word. */
static struct eh_bytes open_entry(struct eh_bytes b)
{
    uint64_t n = take(&b, 4);
    if (!n || n >= 0xfffffff0u || n > (uint64_t)(b.end - b.p)) b.failed = true;
    if (!b.failed) b.end = b.p + n;
    return b;
}

uint64_t eh_cie_at(struct eh_bytes entry)
{
    struct eh_bytes b = open_entry(entry);
    uint64_t here = (uint64_t)(uintptr_t)b.p + b.skew, back = take(&b, 4);
    return b.failed || !back ? 0 : here - back;
}

static void read_augmentation(struct cie *c, struct eh_bytes *b, const char *text)
{
    for (; *text && !b->failed; text++) {
        if (*text == 'R') c->pointers = (uint8_t)take(b, 1);
        if (*text == 'L') take(b, 1);
        if (*text == 'S') c->signal = true;
        if (*text == 'P') {
            uint8_t how = (uint8_t)take(b, 1);
            take_pointer(b, how & 0x7f, 0);
        }
    }
}

static bool read_cie(struct eh_bytes entry, struct cie *c)
{
    struct eh_bytes b = open_entry(entry);
    if (take(&b, 4) != 0) return false; /* not a CIE */
    uint8_t version = (uint8_t)take(&b, 1);
    if (b.failed || (version != 1 && version != 3)) return false;
    const char *text = (const char *)b.p;
    while (take(&b, 1) && !b.failed) continue;
    *c = (struct cie){.pointers = 0};
    c->code_align = take_uleb(&b);
    c->data_align = take_sleb(&b);
    uint64_t ra = version == 1 ? take(&b, 1) : take_uleb(&b);
    if (b.failed || ra != EH_RA) return false;
    if (*text == 'z') {
        c->augmented = true;
        uint64_t bytes = take_uleb(&b);
        struct eh_bytes within = b;
        skip(&b, bytes);
        within.end = b.p;
        if (!b.failed) read_augmentation(c, &within, text + 1);
        b.failed = b.failed || within.failed;
    }
    c->program = b;
    return !b.failed;
}

/* ---- its program, up to an address ---- */

static int64_t factored(uint64_t v, const struct cie *c)
{
    return (int64_t)(v * (uint64_t)c->data_align);
}

struct rules {
    bool ok, computed;
    uint8_t cfa_reg;
    int32_t cfa_offset;
    struct eh_rule reg[EH_REGS];
};

struct machine {
    const struct cie *cie;
    uint64_t at; /* address that the next row is for */
    struct rules now, initial, saved[SAVED_MOST];
    unsigned n_saved, n_text;
    uint8_t *text;
};

static void set_rule(struct machine *m, uint64_t reg, enum eh_how how, int64_t value)
{
    if (reg >= EH_REGS) return;
    m->now.reg[reg] = (struct eh_rule){(uint8_t)how, (int32_t)value};
}

static void set_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
    m->now.ok = reg < EH_RA;
    m->now.computed = false;
    m->now.cfa_reg = (uint8_t)(reg & 15);
    m->now.cfa_offset = (int32_t)offset;
}

static void restore(struct machine *m, uint64_t reg)
{
    if (reg < EH_REGS) m->now.reg[reg] = m->initial.reg[reg];
}

/* Keeps an expression; where, or -1: there is no room. */
static int32_t keep_text(struct machine *m, struct eh_bytes *b)
{
    uint64_t bytes = take_uleb(b);
    const uint8_t *from = b->p;
    int32_t at = (int32_t)m->n_text;
    skip(b, bytes);
    if (b->failed || bytes > 255 || bytes + 1 > EH_TEXT - m->n_text) return -1;
    m->text[m->n_text] = (uint8_t)bytes;
    memcpy(m->text + m->n_text + 1, from, bytes);
    m->n_text += (unsigned)bytes + 1;
    return at;
}

static void set_expression(struct machine *m, struct eh_bytes *b, enum eh_how how)
{
    uint64_t reg = take_uleb(b);
    int32_t at = keep_text(m, b);
    if (at < 0)
        set_rule(m, reg, EH_UNDEFINED, 0);
    else
        set_rule(m, reg, how, at);
    if (at < 0 && reg == EH_RA) m->now.ok = false;
}

/* Opcodes that say how the frame's address is found. */
static bool run_cfa(struct machine *m, struct eh_bytes *b, uint8_t op)
{
    uint64_t reg;
    int32_t at;
    switch (op) {
    case 0x0c:
        reg = take_uleb(b);
        set_cfa(m, reg, (int64_t)take_uleb(b));
        return true;
    case 0x0d: set_cfa(m, take_uleb(b), m->now.cfa_offset); return true;
    case 0x0e: m->now.cfa_offset = (int32_t)take_uleb(b); return true;
    case 0x0f:
        at = keep_text(m, b);
        m->now.ok = at >= 0;
        m->now.computed = true;
        m->now.cfa_offset = at;
        return true;
    case 0x12:
        reg = take_uleb(b);
        set_cfa(m, reg, factored((uint64_t)take_sleb(b), m->cie));
        return true;
    case 0x13: m->now.cfa_offset = (int32_t)factored((uint64_t)take_sleb(b), m->cie); return true;
    default: return false;
    }
}

/* .. and how the caller's registers are. */
static bool run_registers(struct machine *m, struct eh_bytes *b, uint8_t op)
{
    uint64_t reg;
    switch (op) {
    case 0x05:
        reg = take_uleb(b);
        set_rule(m, reg, EH_AT_CFA, factored(take_uleb(b), m->cie));
        return true;
    case 0x06: restore(m, take_uleb(b)); return true;
    case 0x07: set_rule(m, take_uleb(b), EH_UNDEFINED, 0); return true;
    case 0x08: set_rule(m, take_uleb(b), EH_SAME, 0); return true;
    case 0x09:
        reg = take_uleb(b);
        set_rule(m, reg, EH_REGISTER, (int64_t)(take_uleb(b) & 255));
        return true;
    case 0x10: set_expression(m, b, EH_AT_EXPRESSION); return true;
    case 0x11:
        reg = take_uleb(b);
        set_rule(m, reg, EH_AT_CFA, factored((uint64_t)take_sleb(b), m->cie));
        return true;
    case 0x14:
        reg = take_uleb(b);
        set_rule(m, reg, EH_CFA_PLUS, factored(take_uleb(b), m->cie));
        return true;
    case 0x15:
        reg = take_uleb(b);
        set_rule(m, reg, EH_CFA_PLUS, factored((uint64_t)take_sleb(b), m->cie));
        return true;
    case 0x16: set_expression(m, b, EH_IS_EXPRESSION); return true;
    default: return false;
    }
}

/* Opcodes whose top bits are 0; false: not understood. */
static bool run_extended(struct machine *m, struct eh_bytes *b, uint8_t op)
{
    switch (op) {
    case 0x00: return true;
    case 0x01: m->at = take_pointer(b, m->cie->pointers, 0); return true;
    case 0x02: m->at += take(b, 1) * m->cie->code_align; return true;
    case 0x03: m->at += take(b, 2) * m->cie->code_align; return true;
    case 0x04: m->at += take(b, 4) * m->cie->code_align; return true;
    case 0x0a:
        if (m->n_saved == SAVED_MOST) return false;
        m->saved[m->n_saved++] = m->now;
        return true;
    case 0x0b:
        if (!m->n_saved) return false;
        m->now = m->saved[--m->n_saved];
        return true;
    case 0x2e: take_uleb(b); return true; /* GNU: size of arguments */
    default: return run_cfa(m, b, op) || run_registers(m, b, op);
    }
}

static bool run(struct machine *m, struct eh_bytes b, uint64_t until)
{
    while (b.p < b.end && !b.failed) {
        uint8_t op = (uint8_t)take(&b, 1);
        uint64_t at = m->at;
        if (op >> 6 == 1)
            m->at += (op & 63) * m->cie->code_align;
        else if (op >> 6 == 2)
            set_rule(m, op & 63, EH_AT_CFA, factored(take_uleb(&b), m->cie));
        else if (op >> 6 == 3)
            restore(m, op & 63);
        else if (!run_extended(m, &b, op))
            return false;
        if (m->at != at && m->at > until) break;
    }
    return !b.failed;
}

bool eh_row(struct eh_bytes entry, struct eh_bytes cie_bytes, uint64_t ip, struct eh_row *out)
{
    struct cie cie;
    struct eh_bytes b = open_entry(entry);
    if (!take(&b, 4) || b.failed || !read_cie(cie_bytes, &cie)) return false;
    uint64_t start = take_pointer(&b, cie.pointers, 0), size = take_pointer(&b, cie.pointers & 15, 0);
    if (b.failed || ip < start || ip - start >= size) return false;
    if (cie.augmented) {
        uint64_t bytes = take_uleb(&b);
        skip(&b, bytes);
    }
    struct machine machine = {.cie = &cie, .at = start, .text = out->text};
    if (b.failed || !run(&machine, cie.program, UINT64_MAX)) return false;
    machine.initial = machine.now;
    machine.at = start;
    if (!run(&machine, b, ip) || !machine.now.ok) return false;
    out->signal = cie.signal;
    out->computed = machine.now.computed;
    out->cfa_reg = machine.now.cfa_reg;
    out->cfa_offset = machine.now.cfa_offset;
    memcpy(out->reg, machine.now.reg, sizeof out->reg);
    out->start = start;
    return true;
}

/* ---- to the caller ---- */

enum { OPERANDS = 16, STEPS_MOST = 200 };
enum { KEPT_BY_CALLS = 1 << 3 | 1 << EH_BP | 1 << EH_SP | 0xf000 | 1 << EH_RA }; /* rbx, rbp, r12 to r15 */

struct operands {
    uint64_t v[OPERANDS];
    unsigned n;
    bool failed; /* too many, too few */
};

static void push(struct operands *s, uint64_t v)
{
    s->failed = s->failed || s->n == OPERANDS;
    if (!s->failed) s->v[s->n++] = v;
}

static uint64_t pop(struct operands *s)
{
    s->failed = s->failed || s->n == 0;
    return s->failed ? 0 : s->v[--s->n];
}

static uint64_t take_constant(struct eh_bytes *b, uint8_t op)
{
    switch (op) {
    case 0x08: return take(b, 1);
    case 0x09: return (uint64_t)(int64_t)(int8_t)take(b, 1);
    case 0x0a: return take(b, 2);
    case 0x0b: return (uint64_t)(int64_t)(int16_t)take(b, 2);
    case 0x0c: return take(b, 4);
    case 0x0d: return (uint64_t)(int64_t)(int32_t)take(b, 4);
    case 0x0e:
    case 0x0f: return take(b, 8);
    case 0x10: return take_uleb(b);
    default: return (uint64_t)take_sleb(b);
    }
}

/* Of the two on top; false: not such an opcode. */
static bool combine(struct operands *s, uint8_t op)
{
    if (op < 0x1a || op > 0x2e || op == 0x1b || op == 0x1d || op == 0x1f || op == 0x20 || op == 0x23 ||
        op == 0x28)
        return false;
    uint64_t b = pop(s), a = pop(s);
    int64_t y = (int64_t)b, x = (int64_t)a;
    switch (op) {
    case 0x1a: push(s, a & b); break;
    case 0x1c: push(s, a - b); break;
    case 0x1e: push(s, a * b); break;
    case 0x21: push(s, a | b); break;
    case 0x22: push(s, a + b); break;
    case 0x24: push(s, b < 64 ? a << b : 0); break;
    case 0x25: push(s, b < 64 ? a >> b : 0); break;
    case 0x26: push(s, b < 64 ? (uint64_t)(x >> b) : 0); break;
    case 0x27: push(s, a ^ b); break;
    case 0x29: push(s, x == y); break;
    case 0x2a: push(s, x >= y); break;
    case 0x2b: push(s, x > y); break;
    case 0x2c: push(s, x <= y); break;
    case 0x2d: push(s, x < y); break;
    default: push(s, x != y); break;
    }
    return true;
}

struct frame_at { /* what is known of a frame */
    const struct eh_row *row;
    const struct eh_regs *regs;
    const struct eh_reader *mem;
};

static enum eh_stop work_out_one(struct operands *s, struct eh_bytes *b, const struct eh_regs *regs,
                                 const struct eh_reader *mem)
{
    uint64_t v;
    uint8_t op = (uint8_t)take(b, 1);
    if (op >= 0x30 && op <= 0x4f) {
        push(s, op - 0x30u);
    } else if (op >= 0x70 && op <= 0x70 + EH_RA) {
        if (!(regs->known >> (op - 0x70) & 1)) return EH_NO_REGISTER;
        push(s, regs->v[op - 0x70] + (uint64_t)take_sleb(b));
    } else if (op >= 0x08 && op <= 0x11) {
        push(s, take_constant(b, op));
    } else if (op == 0x06) {
        if (!mem->word(mem->ctx, pop(s), &v)) return EH_NO_MEMORY;
        push(s, v);
    } else if (op == 0x12) {
        v = pop(s);
        push(s, v);
        push(s, v);
    } else if (op == 0x23) {
        push(s, pop(s) + take_uleb(b));
    } else if (op != 0x96 && !combine(s, op)) {
        return EH_NOT_UNDERSTOOD;
    }
    return s->failed || b->failed ? EH_NOT_UNDERSTOOD : EH_GOES_ON;
}

/* The expression at `at` in the row's text; `pushed`: what lies on its stack before, if there is such. */
static enum eh_stop work_out(const struct frame_at *f, int32_t at, const uint64_t *pushed, uint64_t *out)
{
    struct operands s = {.n = 0};
    if (at < 0 || at >= EH_TEXT || f->row->text[at] > EH_TEXT - 1 - at) return EH_NOT_UNDERSTOOD;
    struct eh_bytes b = eh_copy(f->row->text + at + 1, f->row->text[at], 0);
    if (pushed) push(&s, *pushed);
    for (unsigned i = 0; b.p < b.end; i++) {
        enum eh_stop stop = i < STEPS_MOST ? work_out_one(&s, &b, f->regs, f->mem) : EH_NOT_UNDERSTOOD;
        if (stop != EH_GOES_ON) return stop;
    }
    *out = pop(&s);
    return s.failed ? EH_NOT_UNDERSTOOD : EH_GOES_ON;
}

/* One register of the caller: unknown where that cannot be told. */
static enum eh_stop recover(const struct frame_at *f, unsigned reg, uint64_t cfa, struct eh_regs *out)
{
    const struct eh_rule *rule = &f->row->reg[reg];
    uint64_t v = 0, at = cfa + (uint64_t)(int64_t)rule->value;
    enum eh_stop stop = EH_GOES_ON;
    bool known = true;
    switch (rule->how) {
    case EH_SAME:
        known = f->regs->known >> reg & 1;
        v = f->regs->v[reg];
        break;
    case EH_AT_CFA:
        if (!f->mem->word(f->mem->ctx, at, &v)) stop = EH_NO_MEMORY;
        break;
    case EH_CFA_PLUS: v = at; break;
    case EH_REGISTER:
        known = rule->value >= 0 && rule->value < EH_REGS && f->regs->known >> rule->value & 1;
        v = known ? f->regs->v[rule->value] : 0;
        break;
    case EH_AT_EXPRESSION:
        stop = work_out(f, rule->value, &cfa, &at);
        if (stop == EH_GOES_ON && !f->mem->word(f->mem->ctx, at, &v)) stop = EH_NO_MEMORY;
        break;
    case EH_IS_EXPRESSION: stop = work_out(f, rule->value, &cfa, &v); break;
    default: known = false;
    }
    out->v[reg] = v;
    if (known && stop == EH_GOES_ON) out->known |= 1u << reg;
    return stop;
}

enum eh_stop eh_step(const struct eh_row *row, struct eh_regs *regs, const struct eh_reader *mem)
{
    struct eh_regs next = {.known = 1u << EH_SP};
    const struct frame_at here = {row, regs, mem};
    enum eh_stop stop = EH_GOES_ON;
    uint64_t cfa = 0;
    if (row->reg[EH_RA].how == EH_UNDEFINED) return EH_OUTERMOST;
    if (row->computed) {
        stop = work_out(&here, row->cfa_offset, NULL, &cfa);
    } else {
        if (!(regs->known >> row->cfa_reg & 1)) return EH_NO_REGISTER;
        cfa = regs->v[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_offset;
    }
    if (stop != EH_GOES_ON) return stop;
    next.v[EH_SP] = cfa;
    for (unsigned i = 0; i < EH_REGS; i++) {
        if (i == EH_SP && row->reg[i].how == EH_SAME) continue;
        if (i == EH_SP) next.known &= ~(1u << EH_SP);
        stop = recover(&here, i, cfa, &next);
        if (stop != EH_GOES_ON && (i == EH_RA || i == EH_SP)) return stop;
    }
    if (!row->signal) next.known &= KEPT_BY_CALLS;
    if (!(next.known >> EH_RA & 1) || !(next.known >> EH_SP & 1)) return EH_NO_REGISTER;
    if (!row->signal && next.v[EH_SP] <= regs->v[EH_SP])
        return EH_NOT_UNDERSTOOD; /* callers lie further out */
    *regs = next;
    return next.v[EH_RA] ? EH_GOES_ON : EH_OUTERMOST;
}
