/* SPDX-License-Identifier: MIT
 * roof.c - see roof.h: which kernel runs how often, and what its best time means. */
#include "probe/roof.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "core/mem.h"
#include "probe/procfs.h"
#include "probe/procstat.h"
#include "probe/roof_parts.h"

#define NS 1e9
#define TURN_NS 1000000u /* of arithmetic: long against the clock, short against being interrupted */
#define HUGE_PAGE ((size_t)2 << 20)
#define MIB ((uint64_t)1 << 20)
enum { CPUS_MAX = 4096, LEVELS_MAX = 8 };

/* ---- arithmetic ------------------------------------------------------------------------------ */

struct compute {
    const struct roof_kernel *kernel;
    uint64_t rounds;
};

static void do_compute(void *ctx, unsigned index)
{
    const struct compute *c = ctx;
    (void)index;
    c->kernel->run(c->rounds);
}

/* What a measurement goes by, and whether it went undisturbed. */
struct measuring {
    struct roof_team *team;
    unsigned threads;
    bool busy;
};

/* Things per second when each of the threads does `amount` of them a turn: all that was done, over the time from the
 * first start to the last end of the quickest turn. A roof is a maximum, so the quickest counts and no mean does. */
static double best_turn(struct measuring *m, roof_work_fn *work, void *ctx, double amount, uint64_t budget_ns)
{
    struct roof_turn best = roof_team_best(m->team, work, ctx, budget_ns);
    if (!roof_turn_is_quiet(best)) m->busy = true;
    return amount * m->threads * NS / (double)best.ns;
}

static double rate_of_kernel(struct measuring *m, const struct roof_kernel *k, uint64_t budget_ns)
{
    struct compute c = {k, 1000};
    uint64_t took = roof_team_do(m->team, do_compute, &c, true).ns;
    while (took < TURN_NS / 4 && c.rounds < UINT64_C(1) << 40) {
        c.rounds *= 2;
        took = roof_team_do(m->team, do_compute, &c, true).ns;
    }
    if (took < TURN_NS) c.rounds = (uint64_t)((double)c.rounds * TURN_NS / (double)took);
    return best_turn(m, do_compute, &c, k->ops * (double)c.rounds, budget_ns);
}

static unsigned count_usable(const struct roof_kernel *list, enum roof_kind kind)
{
    unsigned n = 0;
    for (; list->name; list++) n += list->kind == kind && roof_kernel_usable(list);
    return n;
}

/* The best of all kernels of a kind that can run here: a wider one is not the faster one on every processor. */
static double best_rate(struct measuring *m, enum roof_kind kind, uint64_t budget_ns, const char **name)
{
    const struct roof_kernel *k = roof_kernels_native;
    unsigned n = count_usable(k, kind);
    if (!n) n = count_usable(k = roof_kernels_plain, kind);
    double best = NAN;
    for (; n && k->name; k++) {
        if (k->kind != kind || !roof_kernel_usable(k)) continue;
        double rate = rate_of_kernel(m, k, budget_ns / n);
        if (rate <= best) continue; /* never true of NAN */
        best = rate;
        *name = k->name;
    }
    return best;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A file of one cache of one processor; false: there is no such cache. */
static bool cache_text(const char *root, unsigned cpu, unsigned index, const char *name, char out[64])
{
    char path[120];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cache/index%u/%s", cpu, index, name);
    return procfs_text(root, path, out, 64);
}

static uint64_t size_of(const char *text) /* "32768K" */
{
    char *unit;
    uint64_t n = strtoull(text, &unit, 10);
    if (*unit == 'M') return n << 20;
    return *unit == 'K' ? n << 10 : n;
}

/* The largest level this processor has; its bytes if the processor is the first of those that share it, else 0. */
static unsigned last_level(const char *root, unsigned cpu, uint64_t *bytes)
{
    char text[64];
    unsigned most = 0;
    *bytes = 0;
    for (unsigned i = 0; i < LEVELS_MAX && cache_text(root, cpu, i, "level", text); i++) {
        unsigned level = (unsigned)strtoul(text, NULL, 10);
        if (level < most) continue;
        if (!cache_text(root, cpu, i, "shared_cpu_list", text)) continue;
        bool first = strtoul(text, NULL, 10) == cpu;
        most = level;
        *bytes = first && cache_text(root, cpu, i, "size", text) ? size_of(text) : 0;
    }
    return most;
}

struct known_u64 roof_cache_bytes(const char *root)
{
    uint64_t sum = 0, bytes;
    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        if (!last_level(root, cpu, &bytes)) break;
        sum += bytes;
    }
    return sum ? known_u64(sum) : (struct known_u64){0};
}

/* Of a block that fits the caches one would measure these: four times their size leaves them a quarter of the hits at
 * most. No more than an eighth of what is free, so that nothing is swapped out for it. */
size_t roof_working_set(struct known_u64 cache, struct known_u64 available)
{
    uint64_t caches = cache.known ? cache.v : 32 * MIB, want = 4 * caches;
    if (want < 64 * MIB) want = 64 * MIB;
    if (want > 1024 * MIB) want = 1024 * MIB;
    if (available.known && want > available.v / 8) want = available.v / 8;
    return want < 2 * caches ? 0 : (size_t)want;
}

struct memory {
    char *block;  /* as allocated */
    char *bytes;  /* the part that is used */
    size_t slice; /* of each thread: three equal parts, each a multiple of ROOF_BLOCK */
};

/* Each thread writes its own part first: an untouched page would be the one page of zeros, and on machines with
 * several memories a page lives near who touched it first. */
static void do_touch(void *ctx, unsigned index)
{
    const struct memory *m = ctx;
    memset(m->bytes + index * m->slice, 1 + (int)(index % 7), m->slice);
}

static void do_read(void *ctx, unsigned index)
{
    const struct memory *m = ctx;
    roof_read(m->bytes + index * m->slice, m->slice);
}

static void do_triad(void *ctx, unsigned index)
{
    const struct memory *m = ctx;
    char *mine = m->bytes + index * m->slice;
    size_t part = m->slice / 3;
    roof_triad(mine, mine + part, mine + 2 * part, part);
}

/* The better of reading alone and of the triad counts: which of the two a memory does faster differs. */
static tare_status measure_memory(struct measuring *to, struct roof *r, const struct roof_options *o,
                                  uint64_t budget_ns, tare_error *err)
{
    size_t chosen = roof_working_set(roof_cache_bytes(""), memory_available(""));
    size_t size = o->memory_bytes ? o->memory_bytes : chosen;
    struct memory m = {.slice = size / r->threads / (3 * ROOF_BLOCK) * (3 * ROOF_BLOCK)};
    size_t all = m.slice * r->threads;
    r->read = r->triad = r->bandwidth = NAN;
    if (!m.slice) return TARE_OK;
    m.block = mem_new(1, all + HUGE_PAGE);
    if (!m.block) return error_set(err, TARE_NOMEM, "out of memory for measuring the memory's bandwidth");
    m.bytes = m.block + (HUGE_PAGE - (uintptr_t)m.block % HUGE_PAGE);
    madvise(m.bytes, all, MADV_HUGEPAGE); /* a wish: without it translations cost a little */
    roof_team_do(to->team, do_touch, &m, true);
    r->read = best_turn(to, do_read, &m, (double)m.slice, budget_ns / 2);
    r->triad = best_turn(to, do_triad, &m, (double)m.slice, budget_ns / 2);
    r->bandwidth = fmax(r->read, r->triad);
    mem_free(m.block);
    return TARE_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void set_time(struct roof *r)
{
    time_t now = (time_t)(clock_unix_ns() / 1000000000u);
    struct tm tm;
    if (!gmtime_r(&now, &tm) || strftime(r->measured, sizeof r->measured, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(r->measured, sizeof r->measured, "now");
}

/* Three tenths of the budget each for floats, integers and memory; a tenth goes for touching the memory. */
static tare_status measure_roof(struct roof *out, const struct roof_options *o, tare_error *err)
{
    struct roof r = {.threads = o->threads};
    struct measuring m = {.threads = o->threads};
    double budget = o->budget.ns > 0 ? (double)o->budget.ns : NS;
    tare_status s = roof_team_new(&m.team, o->threads, err);
    if (s < 0) return s;
    set_time(&r);
    r.flops = best_rate(&m, ROOF_FLOAT, (uint64_t)(0.3 * budget), &r.kernel);
    r.int_ops = best_rate(&m, ROOF_INT, (uint64_t)(0.3 * budget), &r.int_kernel);
    s = measure_memory(&m, &r, o, (uint64_t)(0.3 * budget), err); /* a tenth for touching it */
    roof_team_free(m.team);
    r.busy = m.busy;
    if (s == TARE_OK) *out = r;
    return s;
}

tare_status roof_measure(struct roof *out, const struct roof_options *o, tare_error *err)
{
    if (o->threads < 1 || o->threads > ROOF_THREADS_MAX)
        return error_set(err, TARE_INVALID, "the roof can be measured with 1 to %d threads, not %u",
                         ROOF_THREADS_MAX, o->threads);
    if (!o->fresh && roof_recall(out, o)) return TARE_OK;
    tare_status s = measure_roof(out, o, err);
    if (s == TARE_OK && !out->busy) roof_cache_save(out, o);
    return s;
}

static struct known_f64 rate(double v)
{
    return v > 0 && isfinite(v) ? known_f64(v) : (struct known_f64){0};
}

void roof_record(const struct roof *r, struct run *run)
{
    run->roof = (struct run_roof){
        .known = true,
        .threads = known_u64(r->threads),
        .flops = rate(r->flops),
        .int_ops = rate(r->int_ops),
        .bandwidth = rate(r->bandwidth),
        .measured = arena_str(&run->arena, r->measured),
    };
}
