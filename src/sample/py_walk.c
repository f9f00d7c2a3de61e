/* SPDX-License-Identifier: MIT
 * py_walk.c - the stack of a thread that goes on meanwhile. Frames of 3.11 and later lie close together: one read takes
 * the thread's state, a window of them, and the state once more; if the two differ the thread moved under the read. */
#include <string.h>

#include "sample/py_process.h"
#include "trace/memory.h"

enum { TORN_TRIES = 8 };
enum { FRAME_BYTES = 128, WINDOW = 4096, ABOVE = 512, STATE_HEAD = 384 };

struct walk {
    struct py_process *p;
    struct py_stack *out;
    uint64_t from, bytes; /* of the window */
    uint8_t window[WINDOW + FRAME_BYTES];
};

/* The address is what the other process says: one close to the end of the address space has no end. */
static bool is_in_window(const struct walk *w, uint64_t at)
{
    return w->bytes >= FRAME_BYTES && at >= w->from && at - w->from <= w->bytes - FRAME_BYTES;
}

/* The bytes of a frame: out of the window, or read with those around it. NULL: they cannot be read. */
static const uint8_t *frame_bytes(struct walk *w, uint64_t at)
{
    if (is_in_window(w, at)) return w->window + (at - w->from);
    if (w->p->at.frame_objects) {
        w->from = at;
        w->bytes = peek_bytes(&w->p->peek, at, w->window, FRAME_BYTES) ? FRAME_BYTES : 0;
        return w->bytes ? w->window : NULL;
    }
    /* Its callers lie below it, if the memory there is the same stack's; the last frame of a chunk has less after it */
    for (uint64_t below = WINDOW; below; below = below > 256 ? 256 : 0) {
        uint64_t from = at > below ? at - below : at;
        if (!peek_bytes(&w->p->peek, from, w->window, at + FRAME_BYTES - from)) continue;
        w->from = from;
        w->bytes = at + FRAME_BYTES - from;
        return w->window + (at - from);
    }
    w->from = at;
    w->bytes = peek_bytes(&w->p->peek, at, w->window, FRAME_BYTES) ? FRAME_BYTES : 0;
    return w->bytes ? w->window : NULL;
}

static uint32_t offset_of(const struct py_process *p, const uint8_t *frame, const struct py_code *code,
                          bool *outside)
{
    const struct py_layout *l = &p->at;
    if (l->frame_objects) {
        int32_t last;
        memcpy(&last, frame + l->frame_instruction, sizeof last);
        if (last < 0) return 0;
        return (uint32_t)last * (l->version == 0x030a ? 2 : 1);
    }
    uint64_t now = peek_field(frame, (size_t)l->frame_instruction), from = code->bytecode;
    *outside = now + 2 < from ||
               now > from + code->bytecode_bytes + 2; /* one unit before its first: it just begins */
    return *outside || now < from ? 0 : (uint32_t)(now - from);
}

static bool is_shim(const struct py_layout *l, const uint8_t *frame)
{
    return l->version >= 0x030c && frame[l->frame_owner] >= PY_OWNED_BY_C;
}

/* False: that is no frame. */
static bool add_frame(struct walk *w, uint64_t at, const uint8_t *bytes)
{
    const struct py_layout *l = &w->p->at;
    bool outside = false;
    if (is_shim(l, bytes)) {
        if (w->out->frames.n) vec_last(&w->out->frames)->entry = true;
        return true;
    }
    struct py_code *code = py_code_at(w->p, peek_field(bytes, (size_t)l->frame_code));
    if (!code) return false;
    struct py_frame f = {.code = code, .at = at};
    f.offset = offset_of(w->p, bytes, code, &outside);
    if (outside) w->out->doubt |= PY_OUTSIDE;
    if (l->version == 0x030b) f.entry = bytes[l->frame_owner - 1] == 1;
    if (l->frame_objects) f.entry = true;
    return vec_push(&w->out->frames, f, NULL) == TARE_OK;
}

static void walk_frames(struct walk *w, uint64_t at)
{
    while (at) {
        const uint8_t *bytes = frame_bytes(w, at);
        if (w->out->frames.n >= PY_DEPTH_MOST) {
            w->out->doubt |= PY_CUT;
            return;
        }
        if (!bytes || !add_frame(w, at, bytes)) {
            w->out->doubt |= PY_BROKEN;
            return;
        }
        uint64_t back = peek_field(bytes, (size_t)w->p->at.frame_back);
        if (back == at) w->out->doubt |= PY_BROKEN;
        at = back == at ? 0 : back;
    }
}

/* State, what it points to where the last look found it, a window there, the state again: one system call. */
static bool read_all(struct walk *w, struct py_thread *t, uint8_t *before, uint8_t *after, uint64_t *then)
{
    const struct py_layout *l = &w->p->at;
    size_t state = (size_t)(l->thread_chunk > 0 ? l->thread_chunk : l->thread_ident) + 16, n = 0;
    struct peek_part parts[4];
    parts[n++] = (struct peek_part){t->state, before, state};
    if (l->thread_then >= 0 && t->then)
        parts[n++] = (struct peek_part){t->then + (uint64_t)l->thread_then, then, 8};
    if (t->window) parts[n++] = (struct peek_part){t->window, w->window, WINDOW};
    parts[n++] = (struct peek_part){t->state, after, state};
    size_t got = w->p->peek.parts(&w->p->peek, parts, n);
    if (got == n) {
        w->from = t->window;
        w->bytes = t->window ? WINDOW : 0;
        return true;
    }
    if (got == 0) return false;
    t->window = t->then = 0; /* what was guessed is gone: the state alone */
    memcpy(after, before, state);
    return true;
}

static bool moved(const struct py_layout *l, const uint8_t *before, const uint8_t *after)
{
    if (peek_field(before, (size_t)l->thread_frame) != peek_field(after, (size_t)l->thread_frame))
        return true;
    return l->thread_chunk > 0 &&
           memcmp(before + l->thread_chunk, after + l->thread_chunk, 16) != 0; /* the chunk, and its top */
}

/* Where the next look expects the innermost frames: around this one, not before the chunk begins. */
static void expect(const struct py_layout *l, struct py_thread *t, const uint8_t *state, uint64_t innermost)
{
    uint64_t chunk = l->thread_chunk > 0 ? peek_field(state, (size_t)l->thread_chunk) : 0;
    if (!chunk || innermost < chunk || innermost - chunk > 1 << 20) return;
    t->window = innermost + ABOVE > chunk + WINDOW ? innermost + ABOVE - WINDOW : chunk;
}

/* Adds to what is there. */
static bool read_once(struct py_process *p, struct py_thread *t, struct py_stack *out)
{
    const struct py_layout *l = &p->at;
    struct walk w = {.p = p, .out = out};
    uint8_t before[STATE_HEAD], after[STATE_HEAD];
    uint64_t then = 0;
    if ((l->thread_chunk > 0 ? l->thread_chunk : l->thread_ident) + 16 > STATE_HEAD) return false;
    uint64_t guessed = t->then;
    if (!read_all(&w, t, before, after, &then)) return false;
    uint64_t frame = peek_field(before, (size_t)l->thread_frame);
    if (l->thread_then >= 0 && frame) { /* the address of what holds it */
        if (frame != guessed || !t->then) {
            if (!peek_u64(&p->peek, frame + (uint64_t)l->thread_then, &then)) out->doubt |= PY_BROKEN;
        }
        t->then = frame;
        frame = then;
    }
    if (moved(l, before, after)) out->doubt |= PY_MOVED;
    expect(l, t, before, frame);
    walk_frames(&w, frame);
    return true;
}

/* A generator's frame does not lie with the others, so it is read after them; when it has yielded meanwhile it has no
 * caller any more, and the stack ends there. */
static bool is_torn(const struct py_stack *s)
{
    return s->frames.n && !(s->doubt & (PY_BROKEN | PY_CUT)) && vec_last(&s->frames)->code->generator;
}

/* Frames from `n` on were read later: what of them called the generator before. If it is among them, those outside it;
 * else all, for it went back to whoever called it. */
static void join_torn(struct py_stack *s, size_t n)
{
    size_t from = n;
    for (size_t i = n; i < s->frames.n; i++)
        if (s->frames.items[i].at == s->frames.items[n - 1].at) from = i + 1;
    memmove(&s->frames.items[n], &s->frames.items[from], (s->frames.n - from) * sizeof s->frames.items[0]);
    s->frames.n -= from - n;
    s->doubt |= PY_MOVED;
}

bool py_stack_read(struct py_process *p, struct py_thread *t, struct py_stack *out)
{
    vec_clear(&out->frames);
    out->doubt = 0;
    if (!read_once(p, t, out)) return false;
    for (unsigned tries = 0; is_torn(out) && tries < TORN_TRIES; tries++) {
        size_t n = out->frames.n;
        if (!read_once(p, t, out)) break;
        join_torn(out, n);
    }
    if (is_torn(out)) out->doubt |= PY_BROKEN;
    return true;
}

uint32_t py_line(const struct py_process *p, const struct py_frame *f)
{
    struct memory_record code = {
        .kind = MEMORY_CODE, .text = f->code->table, .text_bytes = f->code->table_bytes};
    code.CODE.first_line = f->code->first_line;
    code.CODE.version = p->at.version;
    return memory_line(&code, f->offset);
}
