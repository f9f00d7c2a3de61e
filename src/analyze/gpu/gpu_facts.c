/* SPDX-License-Identifier: MIT
 * gpu_facts.c - see gpu_facts.h. One walk over the operations of steady time and one over the calls. */
#include "analyze/gpu/gpu_name.h"
#include "analyze/gpu/gpu_facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    uint32_t what;
    const char *name, *words;
    enum gpu_overhead_of { OF_LOADING, OF_JIT, OF_RECORDING, OF_QUEUE, OF_OTHER } of;
} overhead_kinds[] = {
    {GPU_OVERHEAD_COMPILER, "compiling", "the driver's compiler", OF_LOADING},
    {GPU_OVERHEAD_FLUSH, "flush", "CUPTI handed over its buffers", OF_RECORDING},
    {GPU_OVERHEAD_INSTRUMENTATION, "instrumentation", "CUPTI prepared code to be timed", OF_RECORDING},
    {GPU_OVERHEAD_RESOURCE, "resource", "CUPTI took memory for its own use", OF_RECORDING},
    {GPU_OVERHEAD_MODULE_LOAD, "module-loading", "code was loaded when the runtime started", OF_LOADING},
    {GPU_OVERHEAD_LAZY_LOAD, "lazy-loading", "code was loaded at its first use", OF_LOADING},
    {GPU_OVERHEAD_COMMAND_BUFFER, "queue-full", "a launch waited because the GPU's queue was full", OF_QUEUE},
    {GPU_OVERHEAD_BUFFER_REQUEST, "buffer-request", "CUPTI asked for a buffer", OF_RECORDING},
};
enum { OVERHEAD_KINDS = sizeof overhead_kinds / sizeof *overhead_kinds };

static int overhead_kind(uint32_t what)
{
    int i = 0;
    while (i < OVERHEAD_KINDS && overhead_kinds[i].what != what) i++;
    return i;
}

/* The driver's making of code is within the call, or the time of its compiler, that tells it as loading: it says which
 * time is not steady, and is not added to that. */
static enum gpu_overhead_of overhead_of(uint32_t what)
{
    int i = overhead_kind(what);
    if (what > GPU_OVERHEAD_JIT && what < GPU_OVERHEAD_JIT + 256) return OF_JIT;
    return i < OVERHEAD_KINDS ? overhead_kinds[i].of : OF_OTHER;
}

static bool on_program(const struct gpu_work *w, const struct gpu_overhead *o)
{
    return o->thread < w->threads.n && w->threads.items[o->thread].calls;
}

/* What the record itself cost: every kind that was told, and the share of the program's threads. */
tare_status gpu_work_self(struct gpu_work *w)
{
    struct gpu_self *self = &w->out->self;
    struct gpu_overheads *rows[OVERHEAD_KINDS] = {NULL};
    for (size_t i = 0; i < w->overheads.n; i++) {
        const struct gpu_overhead *o = &w->overheads.items[i];
        int k = overhead_kind(o->what);
        if (k == OVERHEAD_KINDS) continue;
        if (!rows[k]) rows[k] = RUN_LIST_ADD(&w->out->arena, &self->overheads);
        if (!rows[k]) return error_nomem(w->err, "what the recording cost");
        rows[k]->what = overhead_kinds[k].name;
        rows[k]->words = overhead_kinds[k].words;
        rows[k]->count++;
        gpu_grow(&rows[k]->total_ns, o->ns);
        if (!on_program(w, o)) continue;
        gpu_grow(&rows[k]->program_ns, o->ns);
        if (overhead_kinds[k].of == OF_RECORDING) gpu_grow(&self->program_ns, o->ns);
    }
    return TARE_OK;
}

/* ---- which time is steady ---- */

enum { WARM_STEPS = 3 };

struct span {
    uint64_t from, to;
};

/* Of the card's steps: the first tenth, at least three, are left out. */
static bool by_steps(const struct gpu_work *w, uint16_t card, struct span *out)
{
    size_t n = 0, first = SIZE_MAX, i;
    for (i = 0; i < w->windows.n; i++) {
        if (w->windows.items[i].card != card) continue;
        if (first == SIZE_MAX) first = i;
        n++;
    }
    size_t drop = n / 10 > WARM_STEPS ? n / 10 : WARM_STEPS;
    if (n < drop + 2) return false;
    *out = (struct span){w->windows.items[first + drop].start, w->windows.items[first + n - 1].end};
    return true;
}

/* Code that is loaded in the first half belongs to the start; later it is a matter of its own (gpu.loading). */
static void skip_loading(const struct gpu_work *w, uint32_t process, struct span *s)
{
    const uint64_t half = s->from + (s->to - s->from) / 2;
    uint64_t from = s->from;
    for (size_t i = 0; i < w->overheads.n; i++) {
        const struct gpu_overhead *o = &w->overheads.items[i];
        uint64_t end = o->start + o->ns;
        enum gpu_overhead_of of = overhead_of(o->what);
        if (o->process == process && (of == OF_LOADING || of == OF_JIT) && end > from && end <= half)
            from = end;
    }
    for (size_t i = 0; i < w->calls.n; i++) {
        const struct gpu_host_call *c = &w->calls.items[i];
        uint64_t end = c->start + c->duration;
        if (c->class == CALL_LOAD && c->process == process && end > from && end <= half) from = end;
    }
    s->from = from;
}

static struct span steady_span(const struct gpu_work *w, const struct gpu_op *ops, size_t n)
{
    uint64_t end = 0;
    for (size_t i = 0; i < n; i++)
        if (ops[i].end > end) end = ops[i].end;
    struct span s = {ops[0].start + (end - ops[0].start) / 10, end};
    by_steps(w, ops[0].card, &s);
    skip_loading(w, w->cards.items[ops[0].card].process, &s);
    return s;
}

/* Steps that lie within steady time; of a few thousand their spread. */
static void count_steps(struct gpu_facts *f)
{
    enum { MOST = 4096 };
    const struct gpu_work *w = f->work;
    uint64_t ns[MOST];
    size_t n = 0;
    for (size_t i = 0; i < w->windows.n; i++) {
        const struct gpu_window *x = &w->windows.items[i];
        if (x->card != f->card || x->start < f->from || x->end > f->to) continue;
        f->steps++;
        if (n < MOST) ns[n++] = x->end - x->start;
    }
    f->step_ns = gpu_spread_of(ns, n);
}

/* ---- kernels ---- */

/* The first that fits counts. What multiplies without tensor cores says so beside a name that sounds like them. */
static bool is_tensor(const char *full)
{
    static const struct {
        const char *part;
        bool tensor;
    } parts[] = {
        {"ffma", false},   {"simt", false},    {"gemv", false},  {"sgemm", false}, {"dgemm", false},
        {"hmma", true},    {"imma", true},     {"16816", true},  {"1688", true},   {"884", true},
        {"xmma", true},    {"tensorop", true}, {"wgmma", true},  {"gmma", true},   {"nvjet", true},
        {"sm80_", true},   {"sm90_", true},    {"sm100_", true}, {"flash", true},  {"fmha", true},
        {"cutlass", true},
    };
    size_t n = sizeof parts / sizeof *parts, at = gpu_name_first(full, parts, sizeof *parts, n);
    return at < n && parts[at].tensor;
}

enum name_is { IS_KNOWN = 1, IS_MATMUL = 2, IS_TENSOR = 4, IS_GLUE = 8, IS_LAYOUT = 16, IS_ORT = 32 };

static unsigned name_is(const char *full)
{
    static const char *const glue[] = {"elementwise", "reduction", "copy"},
                             *const matmul[] = {"matmul", "convolution"},
                             *const layout[] = {"transpose", "permute", "nchwtonhwc", "nhwctonchw"};
    const char *group = gpu_name_group(full);
    unsigned is = IS_KNOWN;
    for (size_t i = 0; i < sizeof glue / sizeof *glue; i++)
        if (strcmp(group, glue[i]) == 0) is |= IS_GLUE;
    for (size_t i = 0; i < sizeof matmul / sizeof *matmul; i++)
        if (strcmp(group, matmul[i]) == 0) is |= IS_MATMUL;
    size_t layouts = sizeof layout / sizeof *layout;
    if (gpu_name_first(full, layout, sizeof *layout, layouts) < layouts) is |= IS_LAYOUT;
    if (is_tensor(full)) is |= IS_TENSOR;
    if (strstr(full, "onnxruntime")) is |= IS_ORT;
    return is;
}

static void tally(struct gpu_tally *t, double ns, double bytes)
{
    t->ns += ns;
    t->count++;
    t->bytes += bytes;
}

/* Shared memory of a multiprocessor in KiB, by compute capability: it is not in the record. 0: no limit is known. */
static double shared_kib(uint32_t capability)
{
    static const struct {
        uint32_t capability;
        double kib;
    } known[] = {{0x700, 96},  {0x705, 64},  {0x800, 164}, {0x806, 100},
                 {0x809, 100}, {0x900, 228}, {0xa00, 228}, {0xc00, 100}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].capability == capability) return known[i].kib;
    return 0;
}

/* Warps that fit on a multiprocessor beside one another, and warps there are for it: the fewer of the two, of the most
 * it can have. An estimate from the launch shape: what else limits a kernel is not seen. */
static double occupancy(const struct gpu_seen_card *card, const struct gpu_record *shape, double blocks,
                        double sms)
{
    enum { BLOCKS_MOST = 32, REGISTERS = 65536, WARP = 32 };
    double threads =
        (double)shape->SHAPE.block_x * (double)shape->SHAPE.block_y * (double)shape->SHAPE.block_z;
    double warps = ceil(threads / WARP), fit = BLOCKS_MOST, registers = (double)shape->SHAPE.registers;
    double shared = (double)shape->SHAPE.shared_static + (double)shape->SHAPE.shared_dynamic;
    double room = shared_kib(card->capability) * 1024;
    if (!(warps > 0)) return NAN;
    fit = fmin(fit, floor(card->warps / warps));
    if (registers > 0) fit = fmin(fit, floor(REGISTERS / (registers * WARP * warps)));
    if (shared > 0 && room > 0) fit = fmin(fit, floor(room / (shared + 1024)));
    return fmin(1, fmin(fmax(fit, 1), blocks / sms) * warps / card->warps);
}

static void add_shape(struct gpu_facts *f, const struct gpu_op *op, double ns)
{
    const struct gpu_seen_card *card = f->seen;
    double sms = card->out.multiprocessors.known ? (double)card->out.multiprocessors.v : 0;
    if (!op->shape || !(sms > 0)) return;
    const struct gpu_record *s = &f->work->tables.shapes.items[op->shape - 1];
    double blocks = (double)s->SHAPE.grid_x * (double)s->SHAPE.grid_y * (double)s->SHAPE.grid_z;
    double used = card->warps ? occupancy(card, s, blocks, sms) : NAN;
    tally(&f->shaped, ns, 0);
    if (isfinite(used)) f->occupancy_ns += ns * used;
    if (!(blocks < sms)) return;
    tally(&f->under, ns, 0);
    f->empty_ns += ns * (1 - blocks / sms);
}

static void add_kernel(struct gpu_facts *f, uint8_t *known, const struct gpu_op *op)
{
    double ns = (double)(op->end - op->start);
    if (!known[op->name]) known[op->name] = (uint8_t)name_is(f->work->names.items[op->name].text);
    const unsigned is = known[op->name];
    tally(&f->kernels, ns, 0);
    if (is & IS_MATMUL) tally(is & IS_TENSOR ? &f->matmul : &f->plain_matmul, ns, 0);
    if (is & IS_TENSOR) f->tensor_ns += ns;
    if (is & IS_GLUE) tally(&f->glue, ns, 0);
    if (is & IS_LAYOUT) tally(&f->layout, ns, 0);
    f->onnxruntime |= (is & IS_ORT) != 0;
    add_shape(f, op, ns);
}

static void add_copy(struct gpu_facts *f, const struct gpu_op *op)
{
    const struct gpu_copied *c = &f->work->copied.items[op->name];
    const struct gpu_copy *kind = &f->work->copies[c->row];
    double ns = (double)(op->end - op->start), bytes = (double)c->bytes;
    bool in = strcmp(kind->direction, "to-device") == 0, out = strcmp(kind->direction, "to-host") == 0;
    f->to_device += in;
    f->to_host += out;
    if (in || out) tally(&f->host_copies, ns, bytes);
    if (kind->host_memory && strcmp(kind->host_memory, "pageable") == 0) tally(&f->pageable, ns, bytes);
    if (strcmp(kind->direction, "on-device") == 0) tally(&f->on_device, ns, bytes);
}

/* The median of a few thousand, evenly taken. */
static double median_kernel(const struct gpu_op *ops, size_t n)
{
    enum { MOST = 4096 };
    uint64_t ns[MOST];
    size_t got = 0, step = n / MOST + 1;
    for (size_t i = 0; i < n && got < MOST; i += step)
        if (ops[i].kind != WORK_COPY) ns[got++] = ops[i].end - ops[i].start;
    return got ? (double)gpu_spread_of(ns, got).p50 : NAN;
}

/* ---- the queue ---- */

static uint64_t launched(const struct gpu_work *w, const struct gpu_op *op)
{
    const struct gpu_host_call *c = op->call == NO_CALL ? NULL : &w->calls.items[op->call];
    return c ? c->start + c->duration : UINT64_MAX;
}

/* The share of the time before the start of an operation in which it and the two after it had been launched. Within one
 * stream that is a queue of more than two; over several it is at least that. NAN: launches were not recorded. */
static double queue_deep(const struct gpu_work *w, const struct gpu_op *ops, size_t n)
{
    double deep = 0, all = 0;
    size_t seen = 0;
    for (size_t i = 1; i + 2 < n; i++) {
        uint64_t last = 0, from = ops[i - 1].start, to = ops[i].start;
        for (size_t k = i; k <= i + 2; k++)
            if (launched(w, &ops[k]) > last) last = launched(w, &ops[k]);
        all += (double)(to - from);
        if (last == UINT64_MAX) continue;
        seen++;
        if (last < to) deep += (double)(to - (last > from ? last : from));
    }
    return seen * 2 > n && all > 0 ? deep / all : NAN;
}

/* ---- calls ---- */

static double within(const struct gpu_facts *f, uint64_t start, uint64_t ns)
{
    uint64_t from = start > f->from ? start : f->from, to = start + ns < f->to ? start + ns : f->to;
    return to > from ? (double)(to - from) : 0;
}

/* Memory that is taken in the order of a stream makes nobody wait. */
static bool in_order(const struct gpu_work *w, const struct gpu_host_call *c)
{
    return c->name < w->call_names.n && strstr(w->names.items[w->call_names.items[c->name]].text, "Async");
}

/* What calls and overheads take of a thread's time. */
enum { IN_WAITS, IN_LAUNCHES, IN_ALLOCATION, IN_LOADING, IN_RECORDING, IN_FULL, THREAD_TIMES };
struct thread_times {
    double ns[THREAD_TIMES];
};

/* Threads run beside each other: their sum may be more than all of the time. The thread with most of it counts. */
static double longest(const struct gpu_facts *f, const struct thread_times *of, int what)
{
    double most = 0;
    for (size_t i = 0; i < f->work->threads.n; i++) most = fmax(most, of[i].ns[what]);
    return fmin(most, f->wall);
}

static void walk_overheads(const struct gpu_facts *f, struct thread_times *of)
{
    const struct gpu_work *w = f->work;
    for (size_t i = 0; i < w->overheads.n; i++) {
        const struct gpu_overhead *o = &w->overheads.items[i];
        if (o->process != f->seen->process || !on_program(w, o)) continue;
        double ns = within(f, o->start, o->ns), *in = of[o->thread].ns;
        enum gpu_overhead_of what = overhead_of(o->what);
        if (what == OF_LOADING) in[IN_LOADING] += ns;
        if (what == OF_RECORDING) in[IN_RECORDING] += ns;
        if (what == OF_QUEUE) in[IN_FULL] += ns;
    }
}

static tare_status walk_calls(struct gpu_facts *f)
{
    const struct gpu_work *w = f->work;
    struct thread_times *of = mem_new(w->threads.n + 1, sizeof *of);
    if (!of) return error_nomem(w->err, "%zu threads", w->threads.n);
    for (size_t i = 0; i < w->calls.n; i++) {
        const struct gpu_host_call *c = &w->calls.items[i];
        double ns = within(f, c->start, c->duration);
        if (c->process != f->seen->process || !(ns > 0) || c->thread >= w->threads.n) continue;
        double *in = of[c->thread].ns;
        if (c->class == CALL_LAUNCH) in[IN_LAUNCHES] += ns;
        if (c->class == CALL_LOAD) in[IN_LOADING] += ns;
        if (c->class == CALL_SYNC) {
            in[IN_WAITS] += ns;
            f->syncs.count++;
        }
        if (c->class == CALL_ALLOCATE && !in_order(w, c)) {
            in[IN_ALLOCATION] += ns;
            f->allocations.count++;
        }
    }
    walk_overheads(f, of);
    f->syncs.ns = longest(f, of, IN_WAITS);
    f->launch_calls = longest(f, of, IN_LAUNCHES);
    f->allocations.ns = longest(f, of, IN_ALLOCATION);
    f->loading_ns = longest(f, of, IN_LOADING);
    f->own_ns = longest(f, of, IN_RECORDING);
    f->full_ns = longest(f, of, IN_FULL);
    mem_free(of);
    return TARE_OK;
}

/* ---- all of it ---- */

static tare_status walk_operations(struct gpu_facts *f, const struct gpu_op *ops, size_t n)
{
    uint8_t *known = mem_new(f->work->names.n + 1, 1);
    if (!known) return error_nomem(f->work->err, "%zu names", f->work->names.n);
    for (size_t i = 0; i < n; i++)
        if (ops[i].kind == WORK_COPY)
            add_copy(f, &ops[i]);
        else
            add_kernel(f, known, &ops[i]);
    mem_free(known);
    return TARE_OK;
}

tare_status gpu_facts_of(struct gpu_work *w, const struct gpu_op *ops, size_t n, struct gpu_facts *out)
{
    enum { OPERATIONS_LEAST = 10 };
    size_t first = 0, end;
    *out = (struct gpu_facts){.work = w, .ops = ops, .n_ops = n};
    if (n < OPERATIONS_LEAST) return TARE_OK;
    struct span s = steady_span(w, ops, n);
    while (first < n && ops[first].start < s.from) first++;
    for (end = first; end < n && ops[end].start < s.to;) end++;
    if (end - first < OPERATIONS_LEAST) return TARE_OK;
    out->card = (uint16_t)ops[0].card;
    out->seen = &w->cards.items[out->card];
    out->from = ops[first].start;
    out->to = s.to;
    tare_status status = gpu_idle_of(w, ops + first, end - first, &out->steady);
    if (status == TARE_OK) status = walk_operations(out, ops + first, end - first);
    if (status != TARE_OK) return status;
    out->wall = (double)out->steady.wall_ns.v;
    out->complete =
        !gpu_work_doubt(w, out->seen->process) && (!out->seen->cut_at || out->seen->cut_at >= out->to);
    out->deep = out->complete ? queue_deep(w, ops + first, end - first) : NAN;
    out->kernel_p50 = median_kernel(ops + first, end - first);
    count_steps(out);
    return walk_calls(out);
}

double gpu_facts_idle(const struct gpu_facts *f, const char *cause)
{
    for (size_t i = 0; i < f->steady.idle.n; i++)
        if (strcmp(f->steady.idle.at[i]->cause, cause) == 0)
            return (double)f->steady.idle.at[i]->ns / f->wall;
    return 0;
}
