/* SPDX-License-Identifier: MIT
 * stacks.c - who called: frames of Python where there are any, and native frames below them, as far as they are
 * not the interpreter's own. A stack is told frame by frame, callers first, each frame once; after that it goes by
 * its number. The table of what was told is of fixed size and has no locks. */
#include "agent/hot.h"

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0xBF58476D1CE4E5B9);
    return h ^ h >> 29;
}

/* ---- what was told ---- */

/* Two threads that meet the same at once: one tells it, the other goes without for this once. */
uint32_t known_number(uint64_t key, bool *fresh)
{
    key |= !key;
    *fresh = false;
    for (unsigned i = 0; i < 64; i++) {
        struct known *k = &agent->known[(key + i) % KNOWN];
        uint64_t there = __atomic_load_n(&k->key, __ATOMIC_ACQUIRE);
        if (there == key) return __atomic_load_n(&k->number, __ATOMIC_ACQUIRE);
        if (there) continue;
        if (__atomic_load_n(&agent->n_known, __ATOMIC_RELAXED) >= KNOWN_MOST) return 0;
        if (__atomic_compare_exchange_n(&k->key, &there, key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            __atomic_fetch_add(&agent->n_known, 1, __ATOMIC_RELAXED);
            *fresh = true;
            return 0;
        }
        if (there == key) return __atomic_load_n(&k->number, __ATOMIC_ACQUIRE);
    }
    return 0;
}

/* 0: nobody told it, or somebody is about to. */
static uint32_t known_find(uint64_t key)
{
    key |= !key;
    for (unsigned i = 0; i < 64; i++) {
        const struct known *k = &agent->known[(key + i) % KNOWN];
        uint64_t there = __atomic_load_n(&k->key, __ATOMIC_ACQUIRE);
        if (there == key) return __atomic_load_n(&k->number, __ATOMIC_ACQUIRE);
        if (!there) return 0;
    }
    return 0;
}

void known_tell(uint64_t key, uint32_t number)
{
    key |= !key;
    for (unsigned i = 0; i < 64; i++) {
        struct known *k = &agent->known[(key + i) % KNOWN];
        if (__atomic_load_n(&k->key, __ATOMIC_RELAXED) != key) continue;
        __atomic_store_n(&k->number, number, __ATOMIC_RELEASE);
        return;
    }
}

/* ---- walking ---- */

/* Where this thread's stack ends, or 0: of a thread of libc its control block lies there, of the main thread what libc
 * noted. On another stack, as coroutines and signal handlers may have, nobody can say how far it is safe to read. */
extern void *__libc_stack_end __attribute__((weak));
static uint64_t stack_top(uint64_t sp)
{
    const uint64_t most = UINT64_C(1) << 30;
    uint64_t main_top = &__libc_stack_end ? (uint64_t)(uintptr_t)__libc_stack_end : 0;
    uint64_t own = (uint64_t)(uintptr_t)__builtin_thread_pointer();
    if (sp < main_top && main_top - sp < most) return main_top;
    return sp < own && own - sp < most ? own : 0;
}

static void walk_native(struct stack *out, void *const *fp, bool to_python)
{
    uint64_t sp = (uint64_t)(uintptr_t)(fp + 2);
    struct cursor c = {(uint64_t)(uintptr_t)fp[1], sp, (uint64_t)(uintptr_t)fp[0], stack_top(sp)};
    for (;;) {
        if (to_python && python_is_interpreter(c.ip)) return;
        if (out->n >= settings.frames) {
            out->cut = to_python ? 0 : MEMORY_CUT_DEPTH;
            return;
        }
        out->native[out->n++] = c.ip - 1; /* in the call, not behind it */
        uint64_t ip = c.ip;
        if (unwind_step(&c)) continue;
        if (!to_python && c.ip == ip) out->cut = MEMORY_CUT_UNKNOWN;
        return;
    }
}

void stack_walk(struct stack *out, void *const *fp, bool object)
{
    out->innermost = python_innermost(object);
    out->n = out->cut = 0;
    if (!settings.native || (out->innermost && python_is_interpreter((uint64_t)(uintptr_t)fp[1]))) return;
    walk_native(out, fp, out->innermost);
}

/* ---- telling ---- */

/* key: of the frame and all around it. */
static uint64_t tell_frame(struct slot *s, uint64_t key, uint64_t parent, const struct frame *f)
{
    bool fresh;
    uint32_t number = known_number(key, &fresh);
    if (!fresh) return number;
    struct memory_record r = {.kind = MEMORY_STACK, .text = "", .v = {0, parent, f->kind, f->where, f->at}};
    if (f->kind == MEMORY_PYTHON) r.STACK.where = python_code(s, f);
    if (f->kind == MEMORY_NATIVE) {
        int m = module_at(f->where);
        r.STACK.at = m < 0 ? 0 : (uint64_t)(m + 1);
    }
    r.STACK.number = number = __atomic_add_fetch(&agent->numbers, 1, __ATOMIC_RELAXED);
    slot_put(s, &r);
    known_tell(key, number);
    return number;
}

static uint64_t frame_key(uint64_t around, const struct frame *f)
{
    return mix(mix(around, f->where ^ f->key), f->kind << 56 ^ f->at);
}

static uint64_t key_around(const struct last_stack *last, uint32_t i)
{
    return i ? last->keys[i - 1] : mix(UINT64_C(0x7461726500000002), last->cut);
}

/* Native frames lie behind what is around them. The first that is another. */
static uint32_t keep_native(struct last_stack *last, const struct stack *stack, uint32_t at)
{
    uint32_t first = UINT32_MAX;
    for (uint32_t i = stack->n; i--; at++) {
        struct frame *was = &last->frames[at];
        if (at < last->n && was->kind == MEMORY_NATIVE && was->where == stack->native[i]) continue;
        *was = (struct frame){.kind = MEMORY_NATIVE, .where = stack->native[i]};
        if (first == UINT32_MAX) first = at;
    }
    return first;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Brings `last` to this stack; keys are those of before up to the first frame that is another. */
static void keep_stack(struct slot *s, const struct stack *stack)
{
    struct last_stack *last = &s->last;
    uint32_t cut = stack->cut, good = scopes_told ? scopes_frames(s, last) : UINT32_MAX;
    if (!stack->innermost)
        last->n_python = 0;
    else {
        good = least(good, python_frames(last, stack->innermost, settings.frames - stack->n));
        if (!last->whole) cut = MEMORY_CUT_DEPTH;
    }
    uint32_t around = last->n_scopes + last->n_python, n = around + stack->n;
    if (stack->n) good = least(good, keep_native(last, stack, around));
    if (cut != last->cut) good = 0;
    last->cut = cut;
    good = least(good, last->n);
    if (good >= n && n == last->n) return;
    last->number = 0;
    last->n = n;
    uint64_t key = key_around(last, good < n ? good : 0);
    for (; good < n; good++) last->keys[good] = key = frame_key(key, &last->frames[good]);
}

/* From the innermost frame outwards until one is known, with all around it; those within it are told. */
static uint64_t tell_stack(struct slot *s, const struct last_stack *last)
{
    uint32_t i = last->n;
    uint64_t at = 0;
    while (i > 0 && !(at = known_find(last->keys[i - 1]))) i--;
    if (!at && last->cut) {
        at = tell_frame(s, key_around(last, 0), 0, &(struct frame){.kind = MEMORY_CUT, .where = last->cut});
        if (!at) return 0;
    }
    for (; i < last->n; i++) {
        at = tell_frame(s, last->keys[i], at, &last->frames[i]);
        if (!at) return 0;
    }
    return at;
}

uint64_t stack_number(struct slot *s, struct stack *stack)
{
    struct last_stack *last = &s->last;
    keep_stack(s, stack);
    if (!last->number) last->number = (uint32_t)tell_stack(s, last);
    if (!last->number && last->n) __atomic_fetch_add(&agent->lost_stacks, 1, __ATOMIC_RELAXED);
    return last->number;
}
