/* SPDX-License-Identifier: MIT
 * native_walk.c - the registers of a thread, a copy of its stack, and the way out from there: see native.h. */
#include "sample/native_inner.h"

#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

enum {
    PAGE = 4096,
    PIECE = 8 * PAGE,
    NEED_FIRST = 8 << 10,
    NEED_MORE = 2 << 10,
    NEED_MOST = 1 << 20,
    RED_ZONE = 128,
    FRAME_MOST = 16 << 20 /* bytes, where only a frame pointer tells */
};

const char *const native_end_words[NATIVE_ENDS] = {
#define X(name, text) text,
    NATIVE_END_MAP(X)
#undef X
};

/* ---- what is taken while it stands still ---- */

void native_shot_release(struct native_shot *s)
{
    vec_release(&s->copy);
}

/* Page by page, for the stack may end within; how many bytes came. */
static size_t read_pages(const struct peek *p, uint64_t at, uint8_t *to, size_t bytes)
{
    struct peek_part parts[8];
    size_t done = 0;
    while (done < bytes) {
        size_t n = 0, asked = 0, got = 0;
        for (; n < 8 && done + asked < bytes; n++) {
            size_t page = PAGE - (size_t)((at + done + asked) % PAGE), left = bytes - done - asked;
            parts[n] = (struct peek_part){at + done + asked, to + done + asked, page < left ? page : left};
            asked += parts[n].bytes;
        }
        size_t whole = p->parts(p, parts, n);
        for (size_t i = 0; i < whole; i++) got += parts[i].bytes;
        done += got;
        if (whole < n) break;
    }
    return done;
}

static void copy_stack(struct native_shot *out, const struct peek *p, struct native_hint *hint)
{
    uint64_t sp = out->regs.v[EH_SP];
    size_t want = hint->need ? hint->need : NEED_FIRST;
    out->from = sp > RED_ZONE ? sp - RED_ZONE : sp;
    out->bytes = 0;
    want += (size_t)(sp - out->from);
    if (hint->top > sp && hint->top - out->from < want) want = (size_t)(hint->top - out->from);
    if (vec_reserve(&out->copy, want, NULL) != TARE_OK) return;
    if (peek_bytes(p, out->from, out->copy.items, want)) {
        out->bytes = want;
        return;
    }
    out->bytes = read_pages(p, out->from, out->copy.items, want);
    if (out->bytes) hint->top = out->from + out->bytes;
}

#if defined(__x86_64__)

bool native_shoot_held(struct native_shot *out, const struct peek *p, pid_t tid, struct native_hint *hint)
{
    struct user_regs_struct r;
    struct iovec to = {&r, sizeof r};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &to) != 0 || to.iov_len != sizeof r)
        return false;
    out->regs = (struct eh_regs){.v = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9,
                                       r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip},
                                 .known = (1u << EH_REGS) - 1};
    copy_stack(out, p, hint);
    return true;
}

#else

bool native_shoot_held(struct native_shot *out, const struct peek *p, pid_t tid, struct native_hint *hint)
{
    (void)out, (void)p, (void)tid, (void)hint;
    return false;
}

#endif

bool native_shoot_waiting(struct native_shot *out, const struct peek *p, uint64_t sp, uint64_t pc,
                          struct native_hint *hint)
{
    out->regs = (struct eh_regs){.known = 1u << EH_SP | 1u << EH_RA};
    out->regs.v[EH_SP] = sp;
    out->regs.v[EH_RA] = pc;
    copy_stack(out, p, hint);
    return true;
}

/* ---- the walk ---- */

struct walk {
    struct native_space *s;
    const struct native_shot *shot;
    uint64_t deepest; /* of the stack that was asked for */
    uint64_t from;    /* of the piece: what is beyond the copy */
    size_t bytes;
    uint8_t piece[PIECE];
};

static bool stack_word(void *ctx, uint64_t at, uint64_t *out)
{
    struct walk *w = ctx;
    const struct native_shot *shot = w->shot;
    if (at >= shot->from && at - shot->from < NEED_MOST && at > w->deepest) w->deepest = at;
    if (shot->bytes >= sizeof *out && at >= shot->from && at - shot->from <= shot->bytes - sizeof *out) {
        memcpy(out, shot->copy.items + (at - shot->from), sizeof *out);
        return true;
    }
    if (w->bytes < sizeof *out || at < w->from || at - w->from > w->bytes - sizeof *out) {
        w->from = at;
        w->bytes = read_pages(&w->s->peek, at, w->piece, at < UINT64_MAX - PIECE ? PIECE : 8);
    }
    if (w->bytes < sizeof *out) return false;
    memcpy(out, w->piece + (at - w->from), sizeof *out);
    return true;
}

/* Code made at run time often has frame pointers, and nothing else. */
static enum eh_stop step_by_pointer(struct walk *w, struct eh_regs *r)
{
    uint64_t bp = r->v[EH_BP], sp = r->v[EH_SP], next, back;
    if (!(r->known >> EH_BP & 1)) return EH_NO_REGISTER;
    if (bp % 8 || bp < sp || bp - sp > FRAME_MOST) return EH_NOT_UNDERSTOOD;
    if (!stack_word(w, bp, &next) || !stack_word(w, bp + 8, &back)) return EH_NO_MEMORY;
    if (!back) return EH_OUTERMOST;
    if (!native_module_at(w->s, back) && !perf_map_find(&w->s->made, w->s->peek.pid, back))
        return EH_NOT_UNDERSTOOD;
    *r = (struct eh_regs){.known = 1u << EH_BP | 1u << EH_SP | 1u << EH_RA};
    r->v[EH_BP] = next;
    r->v[EH_SP] = bp + 16;
    r->v[EH_RA] = back;
    return EH_GOES_ON;
}

static enum native_end end_of(enum eh_stop stop, bool has_row)
{
    switch (stop) {
    case EH_OUTERMOST: return NATIVE_WHOLE;
    case EH_NO_REGISTER: return has_row ? NATIVE_NO_REGISTER : NATIVE_NO_TABLES;
    case EH_NO_MEMORY: return NATIVE_NO_MEMORY;
    default: return has_row ? NATIVE_NONSENSE : NATIVE_NO_TABLES;
    }
}

static bool add(struct native_stack *out, const struct native_space *s, uint64_t where,
                const struct eh_row *row)
{
    struct native_frame f = {.where = where, .eval = row && s->eval && row->start == s->eval};
    return vec_push(&out->frames, f, NULL) == TARE_OK;
}

/* Once all are found: a walk may have looked at the maps anew. */
static void place_frames(const struct native_space *s, struct native_stack *out)
{
    for (size_t i = 0; i < out->frames.n; i++) {
        const struct native_module *m = native_module_known(s, out->frames.items[i].where);
        out->frames.items[i].module = m ? (uint32_t)(m - s->modules.items) + 1 : 0;
    }
}

void native_walk(struct native_space *s, const struct native_shot *shot, struct native_stack *out,
                 struct native_hint *hint)
{
    struct walk w;
    w.s = s;
    w.shot = shot;
    w.deepest = w.from = w.bytes = 0;
    struct eh_regs r = shot->regs;
    const struct eh_reader mem = {stack_word, &w};
    uint64_t behind = 0; /* 1 where the address is behind a call */
    enum eh_stop stop = EH_GOES_ON;
    vec_clear(&out->frames);
    out->end = NATIVE_DEEP;
    while (out->frames.n < NATIVE_DEPTH_MOST) {
        uint64_t where = r.v[EH_RA] - behind;
        const struct eh_row *row = native_row(s, where);
        if (!add(out, s, where, row)) break;
        stop = row ? eh_step(row, &r, &mem) : step_by_pointer(&w, &r);
        if (stop != EH_GOES_ON) {
            out->end = end_of(stop, row);
            break;
        }
        behind = row && row->signal ? 0 : 1;
    }
    place_frames(s, out);
    if (w.deepest) hint->need = (size_t)(w.deepest - shot->from) + NEED_MORE;
}
