/* SPDX-License-Identifier: MIT
 * stacks_sum.c - see stacks_sum.h. Weights are nanoseconds since the thread's last sample; how sure a share is follows
 * from how many samples of equal weight they are worth. */
#include "analyze/stacks/stacks_sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/memory/memory_told.h"
#include "core/buf.h"
#include "core/stats.h"

enum { DEPTH_MOST = 20000, CARRIED_MOST = 64 };

struct weight {
    uint64_t stack;
    double ns;
    uint64_t looks;
};

/* Processor time of a thread whose looks since then found it off the processor. */
struct carried {
    uint64_t thread, stack;
    double ns;
    unsigned looks;
};

struct function {
    struct stacks_function f;
    size_t last; /* the stack that counted it last: once, however often it calls itself */
    size_t place;
};

struct summing {
    const struct stacks_wish *wish;
    struct stacks_profile *out;
    uint32_t process;
    bool begun;
    struct memory_told told;
    struct map_u64 stack_at; /* stack -> place in weights */
    VEC(struct weight) weights;
    struct map_u64 wanted;     /* threads */
    struct map_u64 carried_at; /* thread -> place in carried */
    VEC(struct carried) carried;
    struct map_str function_at;
    VEC(struct function) functions;
    struct map_u64 node_at; /* parent << 32 | function -> node */
    VEC(struct stacks_node) nodes;
    struct memory_names *names; /* NULL: none of native functions are wanted yet */
    double squares;
    size_t counted;
    VEC(size_t) path;
    tare_status status;
    tare_error *err;
};

/* ---- samples ---- */

static double weight_of(const struct memory_record *r, enum stacks_time time)
{
    double wall = (double)r->SAMPLE.wall, used = (double)r->SAMPLE.cpu + (double)r->SAMPLE.delay;
    switch (time) {
    case STACKS_CPU: return (double)r->SAMPLE.cpu;
    case STACKS_GIL: return r->SAMPLE.state & STACK_HOLDS_GIL ? wall : 0;
    case STACKS_IDLE: return used < wall ? wall - used : 0;
    default: return wall;
    }
}

static tare_status add_weight(struct summing *s, uint64_t stack, double ns)
{
    uint64_t *place;
    if (!(ns > 0)) return TARE_OK;
    s->out->sum_ns += ns;
    s->squares += ns * ns;
    tare_status st = map_u64_ref(&s->stack_at, stack, &place, s->err);
    if (st == TARE_OK && !*place) {
        st = vec_push(&s->weights, ((struct weight){.stack = stack}), s->err);
        *place = s->weights.n;
    }
    if (st != TARE_OK) return st;
    s->weights.items[*place - 1].ns += ns;
    s->weights.items[*place - 1].looks++;
    return TARE_OK;
}

/* Processor time belongs to where a thread is when it has a processor, not to where it lost one or waits. So time seen
 * by a look that found it off the processor waits for the next look that does not; not for ever, such looks may never
 * come. */
static tare_status add_cpu(struct summing *s, const struct memory_record *r, double ns)
{
    uint64_t *place;
    tare_status st = map_u64_ref(&s->carried_at, r->SAMPLE.thread, &place, s->err);
    if (st == TARE_OK && !*place) {
        st = vec_push(&s->carried, ((struct carried){.thread = r->SAMPLE.thread}), s->err);
        *place = s->carried.n;
    }
    if (st != TARE_OK) return st;
    struct carried *c = &s->carried.items[*place - 1];
    c->ns += ns;
    c->stack = r->SAMPLE.stack;
    if (r->SAMPLE.state & STACK_OFF_CPU && (c->looks += ns > 0) < CARRIED_MOST) return TARE_OK;
    ns = c->ns;
    c->ns = c->looks = 0;
    return add_weight(s, c->stack, ns);
}

static tare_status add_sample(struct summing *s, const struct memory_record *r)
{
    double w = weight_of(r, s->wish->time);
    if (s->wish->thread && !map_u64_find(&s->wanted, r->SAMPLE.thread)) return TARE_OK;
    s->out->noted++;
    s->out->wall_ns += (double)r->SAMPLE.wall;
    s->out->cpu_ns += (double)r->SAMPLE.cpu;
    unsigned doing = r->SAMPLE.state & STACK_DOING_BITS;
    if (doing < STACK_DOINGS) s->out->waits_ns[doing] += (double)r->SAMPLE.wall;
    return s->wish->time == STACKS_CPU ? add_cpu(s, r, w) : add_weight(s, r->SAMPLE.stack, w);
}

static tare_status add_thread(struct summing *s, const struct memory_record *r)
{
    char tid[32];
    snprintf(tid, sizeof tid, "%" PRIu64, r->THREAD.tid);
    s->out->threads++;
    const char *want = s->wish->thread;
    if (!want) return TARE_OK;
    bool same = strlen(want) == r->text_bytes && memcmp(want, r->text, r->text_bytes) == 0;
    return same || strcmp(tid, want) == 0 ? map_u64_put(&s->wanted, r->THREAD.number, 1, s->err) : TARE_OK;
}

/* ---- functions and paths ---- */

/* A frame that nobody knows the name of: all code of a module without symbols is one. */
static const char *name_without(const struct memory_frame_named *f, char *out, size_t size)
{
    if (f->kind != MEMORY_NATIVE) return "(no name)";
    const char *slash = f->file ? strrchr(f->file, '/') : NULL;
    if (!f->file) return "(code made at run time)";
    snprintf(out, size, "(%s)", slash && slash[1] ? slash + 1 : f->file);
    return out;
}

static tare_status function_of(struct summing *s, const struct memory_frame_named *f, size_t *out)
{
    struct buf key = BUF_INIT;
    uint64_t *place, line = s->wish->lines && f ? f->line : 0;
    char unnamed[300];
    const char *name = f ? f->name : "(no Python)", *file = f && f->file ? f->file : "";
    bool native = f && f->kind == MEMORY_NATIVE;
    if (!name) name = name_without(f, unnamed, sizeof unnamed);
    if (native && line && f->source) file = f->source;
    buf_printf(&key, "%s%c%s%c%" PRIu64, name, 0, file, 0, line);
    tare_status st = buf_status(&key, s->err);
    if (st == TARE_OK) st = map_str_ref(&s->function_at, key.data, key.len, &place, s->err);
    buf_release(&key);
    if (st == TARE_OK && !*place) {
        struct function one = {.f = {.name = arena_str(&s->out->arena, name),
                                     .file = arena_str(&s->out->arena, file),
                                     .native = native,
                                     .line = line,
                                     .first_line = f ? f->first_line : 0}};
        if (!one.f.name || !one.f.file) return error_nomem(s->err, "functions");
        st = vec_push(&s->functions, one, s->err);
        *place = s->functions.n;
    }
    if (st == TARE_OK) *out = *place - 1;
    return st;
}

static tare_status node_of(struct summing *s, size_t parent, size_t function, size_t *out)
{
    uint64_t *place;
    tare_status st = map_u64_ref(&s->node_at, (uint64_t)parent << 32 | function, &place, s->err);
    if (st == TARE_OK && !*place) {
        st = vec_push(&s->nodes, ((struct stacks_node){.parent = parent, .function = function}), s->err);
        *place = s->nodes.n - 1;
    }
    if (st == TARE_OK) *out = *place;
    return st;
}

/* Innermost first, as the frames are linked; one place for stacks without any. */
static tare_status path_of(struct summing *s, const struct memory_frame_named *f)
{
    tare_status st = TARE_OK;
    size_t one = 0;
    vec_clear(&s->path);
    size_t walked = 0;
    for (; f && st == TARE_OK && s->path.n < DEPTH_MOST && walked++ < DEPTH_MOST; f = f->caller) {
        if (s->wish->no_native && f->kind == MEMORY_NATIVE) continue;
        st = function_of(s, f, &one);
        if (st == TARE_OK) st = vec_push(&s->path, one, s->err);
    }
    if (st != TARE_OK || s->path.n) return st;
    st = function_of(s, NULL, &one);
    return st == TARE_OK ? vec_push(&s->path, one, s->err) : st;
}

/* Symbols are looked for once there is something to look up. */
static tare_status name_natives(struct summing *s, const struct memory_frame_named *f)
{
    const struct memory_frame_named *native = f;
    for (size_t n = 0; native && native->kind != MEMORY_NATIVE && n < DEPTH_MOST; n++)
        native = native->caller;
    if (!native || native->kind != MEMORY_NATIVE || s->wish->no_native) return TARE_OK;
    if (!s->names && !(s->names = memory_names_new(&s->out->arena, s->err))) return TARE_NOMEM;
    return memory_names_stack(s->names, f, s->err);
}

static tare_status add_stack(struct summing *s, const struct memory_frame_named *f, const struct weight *w)
{
    tare_status st = name_natives(s, f);
    size_t at = 0;
    if (st == TARE_OK) st = path_of(s, f);
    s->counted++;
    for (size_t i = s->path.n; st == TARE_OK && i-- > 0;) {
        struct function *one = &s->functions.items[s->path.items[i]];
        if (one->last != s->counted) {
            one->f.total_ns += w->ns;
            one->f.looks += w->looks;
        }
        one->last = s->counted;
        st = node_of(s, at, s->path.items[i], &at);
        if (st != TARE_OK) break;
        s->nodes.items[at].total_ns += w->ns;
        s->nodes.items[at].looks += w->looks;
    }
    if (st != TARE_OK) return st;
    s->functions.items[s->path.items[0]].f.own_ns += w->ns;
    if (s->functions.items[s->path.items[0]].f.native) s->out->native_ns += w->ns;
    s->nodes.items[at].own_ns += w->ns;
    s->nodes.items[at].own_looks += w->looks;
    return TARE_OK;
}

/* ---- one process after another ---- */

static void drop_process(struct summing *s)
{
    memory_told_release(&s->told);
    s->told = (struct memory_told){0};
    map_u64_release(&s->stack_at);
    map_u64_release(&s->wanted);
    map_u64_release(&s->carried_at);
    s->stack_at = s->wanted = s->carried_at = (struct map_u64)MAP_U64_INIT;
    vec_clear(&s->weights);
    vec_clear(&s->carried);
}

static tare_status end_process(struct summing *s)
{
    struct arena names = ARENA_INIT;
    tare_status st = TARE_OK;
    const struct memory_frame_named *frames = memory_told_frames(&s->told, &names);
    if (names.failed) st = error_nomem(s->err, "frames");
    for (size_t i = 0; st == TARE_OK && i < s->carried.n; i++)
        st = add_weight(s, s->carried.items[i].stack, s->carried.items[i].ns);
    for (size_t i = 0; st == TARE_OK && i < s->weights.n; i++)
        st = add_stack(s, memory_told_frame(&s->told, frames, s->weights.items[i].stack),
                       &s->weights.items[i]);
    arena_release(&names);
    if (s->names) memory_names_restart(s->names);
    drop_process(s);
    return st;
}

static int take(void *ctx, uint32_t process, const struct memory_record *r)
{
    struct summing *s = ctx;
    if (s->begun && process != s->process) s->status = end_process(s);
    if (!s->begun || process != s->process) s->out->processes++;
    s->begun = true;
    s->process = process;
    if (s->status != TARE_OK) return 1;
    if (r->kind == MEMORY_SAMPLE) {
        s->status = add_sample(s, r);
    } else if (r->kind == MEMORY_RATE) {
        s->out->rate = *r;
    } else if (r->kind == MEMORY_HELD) {
        s->out->held = *r;
    } else if (r->kind == MEMORY_NATIVE_ENDS) {
        s->out->ends = *r;
    } else {
        if (r->kind == MEMORY_THREAD) s->status = add_thread(s, r);
        if (s->status == TARE_OK) s->status = memory_told_add(&s->told, r, &s->out->arena, s->err);
    }
    return s->status != TARE_OK;
}

/* ---- the answer ---- */

static int by_own(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    if (x->f.own_ns != y->f.own_ns) return x->f.own_ns < y->f.own_ns ? 1 : -1;
    if (x->f.total_ns != y->f.total_ns) return x->f.total_ns < y->f.total_ns ? 1 : -1;
    return strcmp(x->f.name, y->f.name);
}

static tare_status finish(struct summing *s)
{
    struct stacks_profile *p = s->out;
    size_t n = s->functions.n;
    size_t *place = arena_new(&p->arena, n + 1, sizeof *place);
    p->functions = arena_new(&p->arena, n + 1, sizeof *p->functions);
    p->nodes = arena_new(&p->arena, s->nodes.n + 1, sizeof *p->nodes);
    if (p->arena.failed) return error_nomem(s->err, "%zu functions", n);
    p->n_eff = s->squares > 0 ? p->sum_ns * p->sum_ns / s->squares : 0;
    for (size_t i = 0; i < n; i++) s->functions.items[i].place = i;
    if (n > 1) qsort(s->functions.items, n, sizeof s->functions.items[0], by_own);
    for (size_t i = 0; i < n; i++) {
        struct stacks_function *f = &p->functions[i];
        *f = s->functions.items[i].f;
        place[s->functions.items[i].place] = i;
        f->own = stats_share_interval(f->own_ns / p->sum_ns, p->n_eff, 0.95);
        f->total =
            stats_share_interval(f->total_ns < p->sum_ns ? f->total_ns / p->sum_ns : 1, p->n_eff, 0.95);
    }
    p->n = n;
    p->n_nodes = s->nodes.n;
    for (size_t i = 0; i < s->nodes.n; i++) {
        p->nodes[i] = s->nodes.items[i];
        if (i) p->nodes[i].function = place[p->nodes[i].function];
    }
    return TARE_OK;
}

tare_status stacks_sum(struct trace *t, const struct stacks_wish *wish, struct stacks_profile *out,
                       tare_error *err)
{
    struct summing s = {.wish = wish, .out = out, .err = err};
    *out = (struct stacks_profile){.arena = ARENA_INIT};
    if (!trace_has_stacks(t))
        return error_set(err, TARE_INVALID,
                         "has no sampled stacks: record them with tare run --stacks or tare attach");
    tare_status st = vec_push(&s.nodes, ((struct stacks_node){.parent = 0}), err); /* the root */
    if (st == TARE_OK) st = trace_stacks(t, take, &s, err);
    if (st == TARE_OK) st = s.status;
    if (st == TARE_OK) st = end_process(&s);
    if (st == TARE_OK && wish->thread && !out->noted)
        st = error_set(err, TARE_INVALID, "has no samples of a thread '%s'", wish->thread);
    if (st == TARE_OK) st = finish(&s);
    drop_process(&s);
    memory_names_free(s.names);
    vec_release(&s.weights);
    vec_release(&s.carried);
    map_str_release(&s.function_at);
    vec_release(&s.functions);
    map_u64_release(&s.node_at);
    vec_release(&s.nodes);
    vec_release(&s.path);
    return st;
}

void stacks_profile_release(struct stacks_profile *p)
{
    arena_release(&p->arena);
}
