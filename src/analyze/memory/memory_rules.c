/* SPDX-License-Identifier: MIT
 * memory_rules.c - see memory_rules.h. One row and one small function a rule; silent where what it needs is unknown. */
#include "analyze/memory/memory_rules.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/judge/finding.h"
#include "analyze/memory/memory_resident.h"
#include "core/str.h"

#define MIB 1048576.0
enum { TOLD_MOST = 5 }; /* of one rule */

struct memory_judging {
    struct judging base;
    const struct memory_process *p;
    const struct memory_groups *lines;
    struct memory_findings *out;
};

/* "build_index train.py:42", "alloc_pages libdb.so", "libdb.so+0x1f2c"; cut where it is long. */
static const char *frame_words(const struct memory_frame_named *f, struct arena *a)
{
    if (!f) return "unknown code";
    const char *file = f->file ? str_file_name(f->file) : NULL;
    if (f->source) file = str_file_name(f->source);
    if (f->kind == MEMORY_NATIVE && !f->name)
        return arena_printf(a, "%.80s%s0x%" PRIx64, file ? file : "", file ? "+" : "", f->offset);
    const char *name = f->name ? f->name : "unknown";
    if (!file) return arena_printf(a, "%.120s", name);
    if (!f->line) return arena_printf(a, "%.120s %.80s", name, file);
    return arena_printf(a, "%.120s %.80s:%" PRIu64, name, file, f->line);
}

static const char *words(struct memory_judging *j, const struct memory_group *g)
{
    const char *w = frame_words(g->own.frame, j->base.arena);
    j->base.failed |= !w;
    return w ? w : "";
}

static void at_line(struct memory_judging *j, struct run_finding *f, const struct memory_group *g)
{
    const struct memory_frame_named *at = g->own.frame;
    if (!at) return;
    finding_text(&j->base, f, "function", at->name);
    finding_text(&j->base, f, "file", at->file);
    if (at->line) finding_number(&j->base, f, "line", (double)at->line);
}

static struct run_estimate estimate(struct memory_bytes b)
{
    struct interval i = memory_interval(b);
    return (struct run_estimate){true, i.value, known_f64(i.lo), known_f64(i.hi)};
}
#define EVIDENCE(j, f, ...) finding_numbers(&(j)->base, f, __VA_ARGS__)

/* Lines by a figure, the largest first, TOLD_MOST of those that have one above 0. */
typedef double line_figure_fn(const struct memory_judging *j, const struct memory_group *g);
typedef void line_tell_fn(struct memory_judging *j, const struct memory_group *g);
static void each_line(struct memory_judging *j, line_figure_fn *figure, line_tell_fn *tell)
{
    double below = INFINITY;
    for (int told = 0; told < TOLD_MOST; told++) {
        const struct memory_group *best = NULL;
        for (size_t i = 0; i < j->lines->n; i++) {
            const struct memory_group *g = &j->lines->all[i];
            double v = figure(j, g);
            if (v > 0 && v < below && (!best || v > figure(j, best))) best = g;
        }
        if (!best) return;
        below = figure(j, best);
        tell(j, best);
    }
}

/* ---- leaks ---- */

static double leak_rate(const struct memory_judging *j, const struct memory_group *g)
{
    bool matters = g->own.growth.rise >= fmax(MIB / 2, 0.01 * j->p->peak.sum);
    return memory_site_grows(&g->own) && matters ? g->own.growth.rate : 0;
}

static void tell_leak(struct memory_judging *j, const struct memory_group *g)
{
    const struct growth *x = &g->own.growth;
    struct run_finding *f = finding_start(
        &j->base, NULL, "%s keeps %s more each minute (%s to %s), and it was not flat at the end",
        words(j, g), show_bytes(x->rate * 60).s, show_bytes(x->lo * 60).s, show_bytes(x->hi * 60).s);
    at_line(j, f, g);
    finding_estimate(&j->base, f, "bytes_per_second",
                     (struct run_estimate){true, x->rate, known_f64(x->lo), known_f64(x->hi)});
    finding_estimate(&j->base, f, "held_at_end", estimate(g->own.at_end));
    EVIDENCE(j, f, {"grown_bytes", x->rise}, {"confidence", x->confidence});
}

static void leak(struct memory_judging *j)
{
    each_line(j, leak_rate, tell_leak);
}

/* ---- temporaries ---- */

static double passing_bytes(const struct memory_judging *j, const struct memory_group *g)
{
    bool matters = g->own.passed >= 16 && g->own.passing.sum >= fmax(64 * MIB, j->p->peak.sum);
    return matters ? g->own.passing.sum : 0;
}

static void tell_temporary(struct memory_judging *j, const struct memory_group *g)
{
    double each = g->own.passing.sum / g->own.passed;
    struct run_finding *f = finding_start(
        &j->base, NULL, "%s makes temporary blocks: %s in all, %s of about %s, each freed at once",
        words(j, g), show_bytes(g->own.passing.sum).s, show_count(round(g->own.passed), "block").s,
        show_bytes(each).s);
    at_line(j, f, g);
    finding_estimate(&j->base, f, "passing_bytes", estimate(g->own.passing));
    EVIDENCE(j, f, {"blocks", round(g->own.passed)}, {"bytes_each", round(each)});
}

static void temporary(struct memory_judging *j)
{
    each_line(j, passing_bytes, tell_temporary);
}

/* ---- containers ---- */

static double risen_bytes(const struct memory_judging *j, const struct memory_group *g)
{
    const struct memory_rise *r = &g->own.rise;
    bool matters = r->steps >= 8 && (double)r->to >= fmax(MIB, 0.01 * j->p->peak.sum) && r->to / 8 >= r->from;
    return matters ? (double)r->to : 0;
}

static void tell_container(struct memory_judging *j, const struct memory_group *g)
{
    const struct memory_rise *r = &g->own.rise;
    struct run_finding *f =
        finding_start(&j->base, NULL, "%s grows a block from %s to %s in %" PRIu32 " steps", words(j, g),
                      show_bytes((double)r->from).s, show_bytes((double)r->to).s, r->steps);
    at_line(j, f, g);
    EVIDENCE(j, f, {"from_bytes", (double)r->from}, {"to_bytes", (double)r->to}, {"steps", r->steps});
}

static void container(struct memory_judging *j)
{
    each_line(j, risen_bytes, tell_container);
}

/* ---- allocators ---- */

/* Of malloc: at the peak, or where it kept most for longer than a moment. */
struct idle {
    const struct memory_heap *heap;
    struct memory_resident r;
    double free;
    bool any, spread; /* worth telling; over heaps of threads */
};

enum { THREADS_MANY = 8 };
static struct idle idle_of(const struct memory_judging *j)
{
    struct idle out = {&j->p->idle, memory_resident(&j->p->idle), 0, false, false};
    struct memory_resident peak = memory_resident(&j->p->heap);
    if (!out.r.known || (peak.known && peak.part[MEMORY_PART_FREE] > out.r.part[MEMORY_PART_FREE])) {
        out.heap = &j->p->heap;
        out.r = peak;
    }
    out.free = out.r.part[MEMORY_PART_FREE];
    out.any = out.r.known && out.r.malloc_told && out.free >= fmax(32 * MIB, 0.2 * out.r.resident);
    out.spread = j->p->threads >= THREADS_MANY && out.free >= 2 * (double)out.heap->top;
    return out;
}

static void heap_numbers(struct memory_judging *j, const struct memory_heap *h, struct run_finding *f)
{
    EVIDENCE(j, f, {"resident_bytes", (double)h->resident}, {"malloc_held", (double)h->held},
             {"malloc_used", (double)h->used}, {"malloc_top", (double)h->top},
             {"threads", (double)j->p->threads});
}

static void fragmented(struct memory_judging *j)
{
    struct idle i = idle_of(j);
    if (!i.any || i.spread) return;
    bool top = (double)i.heap->top >= i.free / 2;
    struct run_finding *f =
        finding_start(&j->base, NULL, "malloc holds %s that the program has freed, of %s resident%s",
                      show_bytes(i.free).s, show_bytes(i.r.resident).s, top ? "" : ": fragments");
    if (top)
        finding_action(
            &j->base, f,
            "it is free at the top of the heap: MALLOC_TRIM_THRESHOLD_=131072 in the environment gives it "
            "back, and so does malloc_trim(0) after the load");
    heap_numbers(j, i.heap, f);
}

static void arenas(struct memory_judging *j)
{
    struct idle i = idle_of(j);
    if (!i.any || !i.spread) return;
    struct run_finding *f = finding_start(
        &j->base, NULL, "malloc holds %s that the program has freed, of %s resident, and %s allocate",
        show_bytes(i.free).s, show_bytes(i.r.resident).s, show_count((double)j->p->threads, "thread").s);
    heap_numbers(j, i.heap, f);
}

static void page_cache(struct memory_judging *j)
{
    const struct memory_heap *h = &j->p->cached;
    double file = (double)h->file, resident = (double)h->resident;
    if (!h->known || !(file >= fmax(64 * MIB, 0.3 * resident))) return;
    struct run_finding *f = finding_start(&j->base, NULL, "%s of the %s resident are pages of files",
                                          show_bytes(file).s, show_bytes(resident).s);
    EVIDENCE(j, f, {"file_bytes", file}, {"resident_bytes", resident}, {"share", file / resident});
}

/* ---- all of them ---- */

static const struct memory_rule {
    struct finding_rule base;
    void (*judge)(struct memory_judging *j);
} rules[] = {
#define RULE(i, s, a) {.id = i, .severity = s, .action = a}
    {RULE(
         "memory.leak", "warn",
         "see what keeps it alive: a list, dict or cache that is never emptied; --by stack shows who calls it"),
     leak},
    {RULE("memory.temporary", "info",
          "write into memory that is there already (out=, in place, views), or work in smaller pieces"),
     temporary},
    {RULE(
         "memory.container", "info",
         "give it its size at once (a preallocated array, reserve, one concatenation at the end): each step may "
         "copy all of it"),
     container},
    {RULE(
         "memory.fragmented", "warn",
         "call malloc_trim(0) after the load, free in large pieces what was allocated together, or use another "
         "allocator (jemalloc, mimalloc)"),
     fragmented},
    {RULE(
         "memory.arenas", "warn",
         "set MALLOC_ARENA_MAX=2 in the environment: each thread has a heap of its own, and what is free in one is "
         "not used by another"),
     arenas},
    {RULE("memory.page-cache", "info",
          "do not count it as the program's: the kernel drops these pages when memory is asked for"),
     page_cache},
};

static struct run_finding *add(void *to, const char *id, const char *severity)
{
    struct memory_judging *j = to;
    struct run_finding *all = arena_grow(j->base.arena, j->out->all, j->out->n, sizeof *all);
    if (!all) return NULL;
    j->out->all = all;
    all[j->out->n] = (struct run_finding){.id = id, .severity = severity};
    return &all[j->out->n++];
}

tare_status memory_find(const struct memory_process *p, const struct memory_groups *lines, struct arena *a,
                        struct memory_findings *out, tare_error *err)
{
    struct memory_judging j = {.base = {.arena = a, .add = add}, .p = p, .lines = lines, .out = out};
    *out = (struct memory_findings){NULL, 0};
    j.base.to = &j;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        j.base.rule = &rules[i].base;
        rules[i].judge(&j);
    }
    return j.base.failed || a->failed ? error_nomem(err, "the findings") : TARE_OK;
}
