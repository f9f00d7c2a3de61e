/* SPDX-License-Identifier: MIT
 * derive.c - see derive.h. A quantity is a row: a formula over one to four metrics, worked out for one label or
 * for the whole. */
#include "analyze/watch/derive.h"

#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "core/suggest.h"

/* ---- the rows ---- */

/* What is done with a + b: */
enum formula {
    sum,     /* nothing: each as it is shown alone */
    ratio,   /* divided by c */
    share,   /* the same, at most 1: ticks are counted at one time, read at another */
    rest,    /* 1 less that, not below 0 */
    per,     /* growth of (a + b) per growth of (c + d): an average per event */
    clamped, /* at most 1 */
    waiting, /* 1 less it, not below 0 */
    any_bit, /* 1 when it has any of `bits`, else 0 */
    of_c,    /* at most c, where it is above it by no more than a tenth: see hold_at() */
};

#define METRIC_NO METRIC_COUNT
struct row {
    enum formula formula;
    enum metric_id a, b, c, d;
    unsigned bits;
};

/* clang-format off */
/* name, unit, formula, metrics, help */
#define DERIVED_MAP(X) \
    X("cpu", "1", share, CPU_BUSY, NO, CPU_COUNT, NO, 0, \
      "share of all processors that work; label: one core") \
    X("cpu.user.share", "1", share, CPU_USER, NO, CPU_COUNT, NO, 0, \
      "share of all processors in user mode") \
    X("cpu.system.share", "1", share, CPU_SYSTEM, NO, CPU_COUNT, NO, 0, \
      "share of all processors in the kernel") \
    X("cpu.iowait.share", "1", share, CPU_IOWAIT, NO, CPU_COUNT, NO, 0, \
      "share idle while a task waits for I/O") \
    X("cpu.steal.share", "1", share, CPU_STEAL, NO, CPU_COUNT, NO, 0, \
      "share taken by the hypervisor") \
    X("process.cpu", "1", of_c, PROC_CPU_USER, PROC_CPU_SYSTEM, PROC_THREADS, NO, 0, \
      "processors the program keeps busy") \
    X("process.cpu.share", "1", share, PROC_CPU_USER, PROC_CPU_SYSTEM, CPU_COUNT, NO, 0, \
      "the same as a share of all") \
    X("process.waiting", "1", waiting, PROC_CPU_USER, PROC_CPU_SYSTEM, NO, NO, 0, \
      "share of time the program uses no processor") \
    X("process.memory", "1", ratio, PROC_RSS, NO, MEM_TOTAL, NO, 0, \
      "share of the machine's memory the program holds") \
    X("process.io", "B/s", sum, PROC_READ, PROC_WRITE, NO, NO, 0, \
      "bytes the program moves from and to storage") \
    X("process.faults", "1/s", sum, PROC_FAULTS_MINOR, PROC_FAULTS_MAJOR, NO, NO, 0, \
      "page faults") \
    X("process.ready", "1", of_c, PROC_RUN_DELAY, NO, PROC_THREADS, NO, 0, \
      "threads that are ready but have no processor, on average") \
    X("memory", "1", rest, MEM_AVAILABLE, NO, MEM_TOTAL, NO, 0, \
      "share of the machine's memory in use") \
    X("cgroup.memory.share", "1", ratio, CG_MEMORY, NO, CG_MEMORY_LIMIT, NO, 0, \
      "memory of the control group over its limit") \
    X("throttled", "1", clamped, CG_THROTTLED, NO, NO, NO, 0, \
      "share of time the CPU quota stops the control group") \
    X("swap", "B/s", sum, SWAP_IN, SWAP_OUT, NO, NO, 0, \
      "bytes moved from and to swap") \
    X("disk.throughput", "B/s", sum, DISK_READ, DISK_WRITE, NO, NO, 0, \
      "bytes a disk moves; label: a disk") \
    X("disk.latency", "s", per, DISK_READ_TIME, DISK_WRITE_TIME, DISK_READS, DISK_WRITES, 0, \
      "mean time of a request; label: a disk") \
    X("net", "B/s", sum, NET_RX, NET_TX, NO, NO, 0, \
      "bytes received and sent; label: an interface") \
    X("power", "W", sum, ENERGY, NO, NO, NO, 0, \
      "power by powercap; label: a domain") \
    X("gpu", "1", sum, GPU_UTIL, NO, NO, NO, 0, \
      "share of time with a kernel resident; label: a GPU") \
    X("gpu.memory", "1", ratio, GPU_MEM_USED, NO, GPU_MEM_TOTAL, NO, 0, \
      "share of a GPU's memory taken; label: a GPU") \
    X("gpu.power.share", "1", ratio, GPU_POWER, NO, GPU_POWER_LIMIT, NO, 0, \
      "power over its limit; label: a GPU") \
    X("gpu.throttled", "1", any_bit, GPU_THROTTLE, NO, NO, NO, 0xE8, \
      "1 while heat or the board holds the clock down; label: a GPU") \
    X("gpu.power_capped", "1", any_bit, GPU_THROTTLE, NO, NO, NO, 0x4, \
      "1 while the power limit holds the clock down; label: a GPU")
/* clang-format on */

const struct derived derived_table[] = {
#define X(name, unit, formula, a, b, c, d, bits, help) {name, unit, help},
    DERIVED_MAP(X)
#undef X
    {NULL, NULL, NULL},
};
static const struct row rows[] = {
#define X(name, unit, formula, a, b, c, d, bits, help) \
    {formula, METRIC_##a, METRIC_##b, METRIC_##c, METRIC_##d, bits},
    DERIVED_MAP(X)
#undef X
};

/* Of these the whole is the sum of the labels; of all others the greatest. */
static const enum metric_id adds_up[] = {
    METRIC_CPU_BUSY, METRIC_CPU_USER, METRIC_CPU_SYSTEM,     METRIC_CPU_IOWAIT,      METRIC_CPU_STEAL,
    METRIC_CPU_ALL,
    METRIC_NET_RX,   METRIC_NET_TX,   METRIC_NET_RX_PACKETS, METRIC_NET_TX_PACKETS, METRIC_NET_ERRORS,
    METRIC_ENERGY,
};

enum { ROWS = sizeof rows / sizeof *rows };

/* Derived quantities come first, then all metrics. */
size_t derived_index(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(derived_table[i].name, name) == 0) return i;
    enum metric_id m = metric_find(name);
    return m == METRIC_COUNT ? DERIVED_NONE : ROWS + (size_t)m;
}

bool derived_is_share(size_t index)
{
    if (index >= ROWS || strcmp(derived_table[index].unit, "1") != 0) return false;
    enum formula f = rows[index].formula;
    return f == ratio || f == share || f == rest || f == clamped || f == waiting || f == any_bit;
}

const char *derived_metric_unit(enum metric_id m)
{
    static const char *const as_rate[][2] = {{"s", "1"}, {"B", "B/s"}, {"1", "1/s"}, {"J", "W"}};
    if (metric_table[m].kind == METRIC_GAUGE) return metric_table[m].unit;
    for (size_t i = 0; i < sizeof as_rate / sizeof *as_rate; i++)
        if (strcmp(metric_table[m].unit, as_rate[i][0]) == 0) return as_rate[i][1];
    return "1/s";
}

const char *derived_unit(const char *name)
{
    for (const struct derived *d = derived_table; d->name; d++)
        if (strcmp(d->name, name) == 0) return d->unit;
    enum metric_id m = metric_find(name);
    return m == METRIC_COUNT ? NULL : derived_metric_unit(m);
}

const char *derived_suggest(const char *name)
{
    struct suggest s;
    suggest_init(&s, name, strlen(name));
    for (const struct derived *d = derived_table; d->name; d++) suggest_offer(&s, d->name);
    for (size_t m = 0; m < METRIC_COUNT; m++) suggest_offer(&s, metric_table[m].name);
    return suggest_best(&s);
}

/* ---- what was fed ---- */

struct point {
    double first, last; /* first and last known value; NAN: none */
    double now, before; /* of the rate; NAN: unknown */
    uint64_t before_ns; /* when `before` was */
    uint64_t seen_ns;   /* when the last known value was read */
};

struct deriver {
    const struct series_set *set;
    VEC(struct point) points; /* per series */
    VEC(size_t) of[METRIC_COUNT];
    size_t whole[METRIC_COUNT]; /* the series without a label; SIZE_MAX: none */
    size_t indexed;             /* series that `of` knows */
    uint64_t now_ns, before_ns;
    double usual_ns; /* a step, about; 0: there was none */
    bool brief;
};

tare_status deriver_new(struct deriver **out, tare_error *err)
{
    *out = mem_new(1, sizeof **out);
    if (!*out) return error_nomem(err, "derived quantities");
    for (size_t m = 0; m < METRIC_COUNT; m++) (*out)->whole[m] = SIZE_MAX;
    return TARE_OK;
}

void deriver_free(struct deriver *d)
{
    if (!d) return;
    for (size_t m = 0; m < METRIC_COUNT; m++) vec_release(&d->of[m]);
    vec_release(&d->points);
    mem_free(d);
}

static tare_status index_new(struct deriver *d, const struct series_set *set, tare_error *err)
{
    static const struct point unknown = {NAN, NAN, NAN, NAN, 0, 0};
    for (; d->indexed < set->items.n; d->indexed++) {
        enum metric_id m = set->items.items[d->indexed].metric;
        if (m >= METRIC_COUNT) return error_set(err, TARE_INVALID, "series %zu has no metric", d->indexed);
        tare_status s = vec_reserve(&d->points, d->indexed + 1, err);
        if (s == TARE_OK) s = vec_push(&d->of[m], d->indexed, err);
        if (s == TARE_OK) s = vec_push(&d->points, unknown, err);
        if (s != TARE_OK) return s;
        if (!*set->items.items[d->indexed].label) d->whole[m] = d->indexed;
    }
    return TARE_OK;
}

/* The usual step follows slowly, and a pause moves it no more than two steps would. */
static void note_step(struct deriver *d)
{
    double step = (double)derived_step_ns(d);
    d->brief = step * 2 < d->usual_ns;
    if (step > 0 && d->usual_ns > 0)
        d->usual_ns += (fmin(step, 2 * d->usual_ns) - d->usual_ns) / 16;
    else if (step > 0)
        d->usual_ns = step;
}

static bool is_held(const struct point *p, enum metric_id m, uint64_t now_ns)
{
    return m >= METRIC_GPU_UTIL && m <= METRIC_GPU_DRAM && metric_table[m].kind == METRIC_GAUGE &&
           now_ns - p->seen_ns < METRIC_GPU_HOLD_NS;
}

/* The kernel counts these in ticks of up to 10 ms, or adds to them when a thread leaves its processor: over a shorter
 * time one tick alone makes a rate of several processors. */
#define TICKED_NS UINT64_C(90000000)
static bool is_cpu_time(enum metric_id m)
{
    return m == METRIC_PROC_CPU_USER || m == METRIC_PROC_CPU_SYSTEM || m == METRIC_CG_CPU ||
           (m >= METRIC_CPU_BUSY && m <= METRIC_CPU_ALL);
}

static bool is_ticked(enum metric_id m)
{
    return is_cpu_time(m) || m == METRIC_CG_THROTTLED || m == METRIC_DISK_BUSY;
}

/* A counter that was not seen this time keeps its last known value and the time of it, so that the next rate is one
 * over the whole gap instead of none. One that was seen too short a time ago is not seen either. */
tare_status deriver_feed(struct deriver *d, const struct series_set *set, const struct sample *s,
                         tare_error *err)
{
    tare_status st = index_new(d, set, err);
    if (st != TARE_OK) return st;
    d->set = set;
    d->before_ns = d->now_ns;
    d->now_ns = s->at_ns;
    note_step(d);
    for (size_t i = 0; i < d->points.n; i++) {
        struct point *p = &d->points.items[i];
        double v;
        if (!isnan(p->now)) {
            p->before = p->now;
            p->before_ns = p->seen_ns;
        }
        enum metric_id m = set->items.items[i].metric;
        bool known = sample_get(s, i, &v) && isfinite(v);
        if (known) p->last = v;
        if (p->seen_ns && s->at_ns - p->seen_ns < TICKED_NS && is_ticked(m)) known = false;
        if (known || !is_held(p, m, s->at_ns)) p->now = known ? v : NAN;
        if (known) p->seen_ns = s->at_ns;
        if (known && isnan(p->first)) p->first = v;
    }
    return TARE_OK;
}

uint64_t derived_step_ns(const struct deriver *d)
{
    return d->before_ns && d->now_ns > d->before_ns ? d->now_ns - d->before_ns : 0;
}

bool derived_brief(const struct deriver *d)
{
    return d->brief;
}

/* ---- one series ---- */

/* What a counter grew since it was known before; NAN: unknown, or it went back. */
static double growth(const struct point *p)
{
    double g = p->now - p->before;
    return g >= 0 ? g : NAN;
}

/* Time in which something was so: it cannot grow faster than time. The kernel counts some of it in ticks, so that short
 * steps seem to have more; probes see to it that a step has no more for another reason (probe_put()). */
static bool is_part_of_time(enum metric_id m)
{
    return m == METRIC_DISK_BUSY || (m >= METRIC_PRESSURE_CPU && m <= METRIC_PRESSURE_IO) ||
           (m >= METRIC_CG_PRESSURE_CPU && m <= METRIC_CG_PRESSURE_IO);
}

/* Nothing keeps more processors busy than there are. */
static double at_most_all(const struct deriver *d, double v)
{
    size_t at = d->whole[METRIC_CPU_COUNT];
    double all = at == SIZE_MAX ? NAN : d->points.items[at].now;
    return v > all ? all : v;
}

static double shown(const struct deriver *d, size_t i)
{
    const struct point *p = &d->points.items[i];
    enum metric_id m = d->set->items.items[i].metric;
    if (metric_table[m].kind == METRIC_GAUGE) return p->now;
    double v = d->now_ns > p->before_ns ? growth(p) / ((double)(d->now_ns - p->before_ns) / 1e9) : NAN;
    bool of_core = m >= METRIC_CPU_BUSY && m <= METRIC_CPU_ALL && *d->set->items.items[i].label;
    if (is_cpu_time(m) && !of_core) return at_most_all(d, v);
    return v > 1 && (of_core || is_part_of_time(m)) ? 1 : v;
}

bool derived_series(const struct deriver *d, size_t series, double *out)
{
    if (series >= d->points.n) return false;
    double v = shown(d, series);
    if (isfinite(v)) *out = v;
    return isfinite(v);
}

uint64_t derived_series_ns(const struct deriver *d, size_t series)
{
    if (series >= d->points.n || metric_table[d->set->items.items[series].metric].kind == METRIC_GAUGE)
        return derived_step_ns(d);
    const struct point *p = &d->points.items[series];
    return p->before_ns && d->now_ns > p->before_ns ? d->now_ns - p->before_ns : 0;
}

bool derived_series_is_new(const struct deriver *d, size_t series)
{
    return series < d->points.n && d->points.items[series].seen_ns == d->now_ns;
}

bool derived_growth(const struct deriver *d, size_t series, double *out)
{
    if (series >= d->points.n) return false;
    const struct point *p = &d->points.items[series];
    double g = p->last - p->first;
    if (!(g >= 0)) return false;
    *out = g;
    return true;
}

/* ---- one label ---- */

static double of_label(const struct deriver *d, enum metric_id m, const char *label, bool grown)
{
    size_t at = *label ? SIZE_MAX : d->whole[m];
    for (size_t k = 0; *label && at == SIZE_MAX && k < d->of[m].n; k++)
        if (strcmp(d->set->items.items[d->of[m].items[k]].label, label) == 0) at = d->of[m].items[k];
    if (at == SIZE_MAX) return NAN;
    return grown ? growth(&d->points.items[at]) : shown(d, at);
}

/* a + b of one label; b may be METRIC_NO. */
static double pair_of(const struct deriver *d, enum metric_id a, enum metric_id b, const char *label,
                      bool grown)
{
    double v = of_label(d, a, label, grown);
    return b == METRIC_NO ? v : v + of_label(d, b, label, grown);
}

/* What a labelled quantity is divided by: the total of its label, or the machine's; a core is one processor. */
static double divisor(const struct deriver *d, const struct row *r, const char *label)
{
    if (*label && r->c == METRIC_CPU_COUNT && r->a != METRIC_PROC_CPU_USER) return 1;
    double v = of_label(d, r->c, label, false);
    return isnan(v) ? of_label(d, r->c, "", false) : v;
}

/* A thread works, or is ready, for no more than all of the time: a little more comes of counters that are read after
 * the clock. Much more comes of threads that ended in between, and stays. */
static double hold_at(const struct deriver *d, const struct row *r, const char *label, double v)
{
    double most = of_label(d, r->c, label, false);
    if (r->a == METRIC_PROC_CPU_USER) v = at_most_all(d, v);
    return v > most && v <= 1.1 * most ? most : v;
}

/* fmin() would make 1 of what is unknown. */
static double at_most_1(double v)
{
    return v > 1 ? 1 : v;
}

/* A quantity of one label; NAN: unknown. */
static double work_out(const struct deriver *d, const struct row *r, const char *label)
{
    if (r->formula == per) {
        double events = pair_of(d, r->c, r->d, label, true);
        return events > 0 ? pair_of(d, r->a, r->b, label, true) / events : NAN;
    }
    double v = pair_of(d, r->a, r->b, label, false), all = NAN;
    if (r->c == METRIC_CPU_COUNT && r->a != METRIC_PROC_CPU_USER)
        all = of_label(d, METRIC_CPU_ALL, label, true);
    if (all > 0)
        return at_most_1(of_label(d, r->a, label, true) / all); /* of one reading: parts make no more */
    if (r->formula == ratio || r->formula == share || r->formula == rest) {
        double by = divisor(d, r, label);
        v = by > 0 ? v / by : NAN;
    }
    if (isnan(v)) return v;
    switch (r->formula) {
    case share:
    case clamped: return at_most_1(v);
    case rest:
    case waiting: return fmax(1 - v, 0);
    case of_c: return hold_at(d, r, label, v);
    case any_bit: return v >= 0 && v < 0x1p63 ? ((uint64_t)v & r->bits) != 0 : NAN;
    default: return v;
    }
}

/* ---- the whole ---- */

static bool is_added(enum metric_id m)
{
    for (size_t i = 0; i < sizeof adds_up / sizeof *adds_up; i++)
        if (adds_up[i] == m) return true;
    return false;
}

/* Zones of powercap hold one another ("package-0/core"): only packages and memory stand apart. */
static bool stands_apart(const char *zone)
{
    const char *slash = strrchr(zone, '/'), *name = slash ? slash + 1 : zone;
    return strcmp(name, "dram") == 0 || (!slash && strncmp(name, "package", 7) == 0);
}

/* Loopback moves nothing anywhere. */
static bool is_counted(enum metric_id m, const char *label)
{
    if (m == METRIC_ENERGY) return stands_apart(label);
    bool net = m >= METRIC_NET_RX && m <= METRIC_NET_ERRORS;
    return !net || strcmp(label, "lo") != 0;
}

/* Per label, then added or the greatest. A sum over CPU_COUNT is divided once, at its end. */
static double over_labels(const struct deriver *d, const struct row *r)
{
    bool add = is_added(r->a), any = false, machine = add && r->formula == share;
    double all = add ? 0 : -INFINITY;
    for (size_t k = 0; k < d->of[r->a].n; k++) {
        const char *label = d->set->items.items[d->of[r->a].items[k]].label;
        double v = is_counted(r->a, label) ? work_out(d, r, label) : NAN;
        if (isnan(v)) continue;
        any = true;
        all = add ? all + v : fmax(all, v);
    }
    if (!any) return NAN;
    return machine ? all / of_label(d, r->c, "", false) : all;
}

bool derived_at(const struct deriver *d, size_t index, const char *label, double *out)
{
    struct row plain = {sum, METRIC_NO, METRIC_NO, METRIC_NO, METRIC_NO, 0};
    if (index >= ROWS + METRIC_COUNT || !d->set) return false;
    const struct row *r = index < ROWS ? &rows[index] : &plain;
    if (index >= ROWS) plain.a = (enum metric_id)(index - ROWS);
    double v = work_out(d, r, label);
    if (isnan(v) && !*label) v = over_labels(d, r);
    if (!isfinite(v)) return false;
    *out = v;
    return true;
}

static enum metric_id measured(size_t index)
{
    return index < ROWS ? rows[index].a : (enum metric_id)(index - ROWS);
}

bool derived_is_new(const struct deriver *d, size_t index)
{
    if (index >= ROWS + METRIC_COUNT) return false;
    enum metric_id m = measured(index);
    for (size_t k = 0; k < d->of[m].n; k++)
        if (derived_series_is_new(d, d->of[m].items[k])) return true;
    return false;
}

uint64_t derived_span_ns(const struct deriver *d, size_t index)
{
    if (index >= ROWS + METRIC_COUNT) return 0;
    enum metric_id m = measured(index);
    uint64_t most = 0;
    if (d->whole[m] != SIZE_MAX) return derived_series_ns(d, d->whole[m]);
    for (size_t k = 0; k < d->of[m].n; k++) {
        uint64_t one = derived_series_ns(d, d->of[m].items[k]);
        if (derived_series_is_new(d, d->of[m].items[k]) && one > most) most = one;
    }
    return most;
}

bool derived_is_rate(size_t index)
{
    return index < ROWS + METRIC_COUNT && metric_table[measured(index)].kind == METRIC_COUNTER;
}

bool derived_value(const struct deriver *d, const char *name, const char *label, double *out)
{
    return derived_at(d, derived_index(name), label, out);
}
