/* SPDX-License-Identifier: MIT
 * diagnose.c - see diagnose.h. All rules but one are rows: conditions that must hold at the same time, and for what
 * share of the run. A leak is judged by growth.h. */
#include "analyze/watch/diagnose.h"

#include <math.h>
#include <string.h>

#include "analyze/judge/finding.h"
#include "analyze/watch/growth.h"
#include "core/mem.h"

#define IS(quantity, op, threshold) {COURSE_##quantity, op, threshold}

/* In the order of the report: what spoils the run first. Of rows with one id the first that holds speaks. */
const struct diagnosis diagnosis_table[] = {
    {"memory.swapping", "critical", 0.05, {IS(SWAP, '>', 1e6)}, {0},
     "the machine swaps: memory does not hold what runs",
     "hold less (smaller batches, streaming), stop what else runs here, or add memory"},
    {"memory.pressure", "warn", 0.10, {IS(PRESSURE_MEMORY, '>', 0.1)}, {0},
     "tasks wait for memory", "hold less, or raise the memory limit: the kernel is reclaiming all the time"},
    {"memory.limit", "warn", 0.05, {IS(GROUP_MEMORY, '>', 0.95)}, {0},
     "the control group's memory is nearly at its limit", "raise the limit or hold less: beyond it the kernel kills"},
    {"cpu.throttled", "warn", 0.10, {IS(THROTTLED, '>', 0.05)}, {0},
     "the CPU quota of the control group stops the program",
     "raise the quota, or start no more threads than it pays for"},
    {"gpu.throttled", "warn", 0.05, {IS(GPU_THROTTLED, '>', 0.1)}, {0},
     "the GPU's clock is held down by heat or its board", "look to the cooling, or lower the power limit"},
    {"machine.steal", "warn", 0.10, {IS(STEAL, '>', 0.05)}, {0},
     "the hypervisor takes processor time away", "measure on a machine of your own, or repeat at another time"},
    {"cpu.oversubscribed", "warn", 0.30, {IS(READY, '>', 1), IS(CPU, '>', 0.9), IS(PROCESS_SHARE, '>', 0.7)}, {0},
     "more threads are ready than there are processors",
     "start as many threads as processors: set OMP_NUM_THREADS, intra_op threads or workers lower"},
    {"cpu.contended", "warn", 0.30, {IS(READY, '>', 0.5), IS(CPU, '>', 0.9), IS(PROCESS_SHARE, '<', 0.7)}, {0},
     "other programs compete for the processors", "stop what else runs here, or give the program cores of its own"},
    {"gpu.starved", "warn", 0.30, {IS(GPU, '<', 0.7), IS(WAITING, '>', 0.5)}, IS(GPU, '>', 0.05),
     "the GPU is not kept busy while the program waits",
     "load and prepare data in parallel and ahead: more loader workers, prefetching, pinned memory"},
    {"gpu.starved", "warn", 0.30, {IS(GPU, '<', 0.7), IS(WAITING, '<', 0.5)}, IS(GPU, '>', 0.05),
     "the GPU is not kept busy while the program works on processors",
     "take preprocessing off the GPU's critical path, use larger batches, or fuse small kernels"},
    {"gpu.memory-bound", "info", 0.30, {IS(GPU_DRAM, '>', 0.6)}, {0},
     "the GPU's memory bandwidth is the limit", "fuse operators, use lower precision, reuse what is loaded"},
    {"io.bound", "warn", 0.30, {IS(WAITING, '>', 0.5), IS(IO, '>', 1e6), IS(DISK_BUSY, '>', 0.6)}, {0},
     "the program waits for a busy disk", "read larger pieces, ahead and in parallel, cache, or use a faster disk"},
    {"io.bound", "warn", 0.30, {IS(WAITING, '>', 0.5), IS(IO, '>', 1e5), IS(GROUP_PRESSURE_IO, '>', 0.3)}, {0},
     "the program waits for storage", "read larger pieces, ahead and in parallel, cache, or use faster storage"},
    {"io.bound", "warn", 0.30, {IS(WAITING, '>', 0.5), IS(IO, '>', 1e5), IS(PRESSURE_IO, '>', 0.3)}, {0},
     "the program waits for storage", "read larger pieces, ahead and in parallel, cache, or use faster storage"},
    {"net.bound", "info", 0.30, {IS(WAITING, '>', 0.5), IS(NET, '>', 10e6), IS(DISK_BUSY, '<', 0.5)}, {0},
     "the program waits while the network moves much",
     "fetch ahead and in parallel, compress, or keep the data nearer"},
    {"cpu.bound", "info", 0.60, {IS(PROCESS_SHARE, '>', 0.85)}, {0},
     "the program keeps all processors busy: they are the limit",
     "make the work cheaper (profile it), lower precision, or use more or faster cores"},
    {"cpu.one-thread", "info", 0.60,
     {IS(PROCESS_CPU, '>', 0.85), IS(PROCESS_CPU, '<', 1.15), IS(CPUS, '>', 1.5), IS(CPU, '<', 0.85)}, {0},
     "one thread works while other processors idle",
     "run parts in parallel, or find what that thread does (tare report)"},
    {.id = NULL},
};

/* ---- rows ---- */

static bool is_found(const struct run *run, const struct run_case *c, const char *id)
{
    for (size_t i = 0; i < run->findings.n; i++) {
        const struct run_finding *f = run->findings.at[i];
        if (f->case_name == c->name && strcmp(f->id, id) == 0) return true;
    }
    return false;
}

/* "gpu 52 % (below 70 %), process.waiting 88 % (above 50 %)": what was measured, and the rule beside it. */
static void add_measured(struct buf *to, const struct course *course, const struct diagnosis *r,
                         struct course_span span)
{
    for (size_t i = 0; i < DIAGNOSIS_CONDITIONS && r->all[i].op; i++) {
        const struct course_condition *c = &r->all[i];
        const char *name = course_names[c->quantity];
        bool number =
            c->quantity == COURSE_PROCESS_CPU || c->quantity == COURSE_READY || c->quantity == COURSE_CPUS;
        double v = course_mean(course, c->quantity, span.from, span.to);
        struct shown now = number ? show_number(v) : show_quantity(derived_unit(name), v);
        struct shown limit =
            number ? show_number(c->threshold) : show_quantity(derived_unit(name), c->threshold);
        buf_printf(to, "%s%s %s (%s %s)", i ? ", " : "", name, now.s, c->op == '<' ? "below" : "above",
                   limit.s);
    }
}

/* The finding names the longest stretch in which the conditions held, and what was measured in it. */
static void check_conditions(struct judging *j, const struct run_case *c, const struct course *course,
                             const struct diagnosis *r)
{
    struct finding_rule row = {.id = r->id, .severity = r->severity, .action = r->action};
    if (is_found(j->run, c, r->id)) return;
    if (r->once.op && course_when(course, &r->once, 1).share < 0.1) return;
    struct course_span span = course_when(course, r->all, DIAGNOSIS_CONDITIONS);
    if (span.share < r->share) return;
    j->rule = &row;
    double from = course_seconds(course, span.from), to = course_seconds(course, span.to);
    struct buf measured = BUF_INIT;
    add_measured(&measured, course, r, span);
    struct run_finding *f =
        finding_start(j, c, "%s: %s from %s to %s; so for %s of the time", r->title, measured.data,
                      show_time(from * 1e9).s, show_time(to * 1e9).s, show_percent(span.share).s);
    j->failed |= buf_status(&measured, NULL) != TARE_OK;
    buf_release(&measured);
    finding_numbers(j, f, {"share_of_time", span.share}, {"from_s", from}, {"to_s", to});
    for (size_t i = 0; i < DIAGNOSIS_CONDITIONS && r->all[i].op; i++) /* the map keeps one of a name */
        finding_number(j, f, course_names[r->all[i].quantity],
                       course_mean(course, r->all[i].quantity, span.from, span.to));
}

/* ---- a leak ---- */

#define LEAK_LEAST 4e6  /* bytes: less is not worth a finding of a whole program */
#define LEAK_SHARE 0.05 /* of the memory held */

static void tell_leak(struct judging *j, const struct run_case *c, const struct growth *g)
{
    static const struct finding_rule row = {
        .id = "memory.leak",
        .severity = "warn",
        .action = "watch it longer: data that is built up is there at last, a cache fills, a leak does neither; "
                  "then look at what is kept alive",
    };
    j->rule = &row;
    struct run_finding *f = finding_start(
        j, c, "memory grew by %s from %s to %s, %s per second, and was not flat at the end",
        show_bytes(g->rise).s, show_time(g->from * 1e9).s, show_time(g->to * 1e9).s, show_bytes(g->rate).s);
    finding_numbers(j, f, {"from_s", g->from}, {"to_s", g->to}, {"grown_bytes", g->rise});
    finding_estimate(j, f, "bytes_per_second",
                     (struct run_estimate){true, g->rate, known_f64(g->lo), known_f64(g->hi)});
    finding_number(j, f, "confidence", g->confidence);
}

static void check_leak(struct judging *j, const struct run_case *c, const struct course *course)
{
    size_t n = course->steps.n;
    double *at = mem_new(2 * n, sizeof *at), *held = at + n;
    struct growth g;
    struct growth_series x = {at, held, 0};
    j->failed |= !at;
    for (size_t i = 0; at && i < n; i++) {
        if (isnan(course->steps.items[i].value[COURSE_RSS])) continue;
        at[x.n] = course_seconds(course, i + 1);
        held[x.n++] = course->steps.items[i].value[COURSE_RSS];
    }
    if (at && growth_test(&x, &g, NULL) == TARE_OK && strcmp(g.verdict, "growing") == 0 &&
        g.rise >= fmax(LEAK_LEAST, LEAK_SHARE * held[x.n / 3]))
        tell_leak(j, c, &g);
    mem_free(at);
}

tare_status diagnose(struct run *run, const struct run_case *c, const struct course *course, tare_error *err)
{
    struct judging j = judging_of_run(run);
    if (course->steps.n < DIAGNOSE_STEPS_MIN) return TARE_OK;
    check_leak(&j, c, course);
    for (const struct diagnosis *r = diagnosis_table; r->id; r++) check_conditions(&j, c, course, r);
    return j.failed || run->arena.failed ? error_nomem(err, "the findings") : TARE_OK;
}
