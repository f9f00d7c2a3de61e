/* SPDX-License-Identifier: MIT
 * gpu_meter.c - what a card's own sensors told while it was in steady state: counters of its parts, power, clock, link,
 * and the energy of a step. The samples are tare's own, taken beside the program; a card is found in them by its UUID,
 * or because there is only one. What was not sampled is NAN. */
#include <math.h>
#include <string.h>

#include "analyze/gpu/gpu_facts.h"
#include "analyze/judge/finding.h"

/* The counter is refreshed every 0.1 s (measured on an H200: 98 to 102 ms; others say the same of older cards). */
#define REFRESH_NS 100000000
enum { UPDATES_LEAST = 20 };
enum { THROTTLE_POWER = 0x4, THROTTLE_OTHER = 0x8 | 0x20 | 0x40 | 0x80 };

struct metering {
    struct gpu_facts *f;
    const struct samples *s;
    const char *label; /* of the card: "gpu0" */
    uint64_t begun;    /* raw clock at time 0 of the trace */
};

/* ---- one card in the samples ---- */

/* "gpu0 is GPU-7d58ef82-..", as the probe noted it when it opened. */
static const char *label_by_uuid(const struct samples *s, const char *uuid, char out[32])
{
    for (size_t i = 0; uuid && i < s->marks.n; i++) {
        const char *text = s->marks.items[i].text, *is = strstr(text, GPU_NOTE_IS);
        if (s->marks.items[i].kind != SAMPLE_NOTE || !is || strcmp(is + strlen(GPU_NOTE_IS), uuid) != 0)
            continue;
        if (is - text >= 32) continue;
        memcpy(out, text, (size_t)(is - text));
        out[is - text] = 0;
        return out;
    }
    return NULL;
}

/* The only card that was sampled, if there is but one. */
static const char *only_label(const struct samples *s)
{
    const char *found = NULL;
    for (size_t i = 0; i < s->set.items.n; i++) {
        const struct series *x = &s->set.items.items[i];
        if (x->metric != METRIC_GPU_MEM_TOTAL || strchr(x->label, '/')) continue;
        if (found) return NULL;
        found = x->label;
    }
    return found;
}

static const double *column(const struct metering *m, enum metric_id metric)
{
    for (size_t i = 0; i < m->s->set.items.n; i++) {
        const struct series *x = &m->s->set.items.items[i];
        if (x->metric == metric && strcmp(x->label, m->label) == 0) return m->s->columns.items[i];
    }
    return NULL;
}

static uint64_t time_of(const struct metering *m, size_t i)
{
    uint64_t at = m->s->at_ns.items[i];
    return at > m->begun ? at - m->begun : 0;
}

static bool is_steady(const struct metering *m, size_t i)
{
    uint64_t at = time_of(m, i);
    return at >= m->f->from && at <= m->f->to;
}

/* ---- means ---- */

struct mean {
    double sum;
    double n;
};

static double value(struct mean v)
{
    return v.n > 0 ? v.sum / v.n : NAN;
}

/* Of readings that cover a time, back to the reading before: only those that lie in steady time as a whole count, by
 * their length. All counters of parts are read together; a sample without the first of them is none of a reading. */
static struct mean mean_of(const struct metering *m, enum metric_id metric, double *readings)
{
    struct mean out = {0, 0};
    const double *v = column(m, metric), *read = column(m, METRIC_GPU_SM_ACTIVE);
    size_t last = SIZE_MAX;
    *readings = 0;
    for (size_t i = 0; v && read && i < m->s->at_ns.n; i++) {
        if (isnan(read[i])) continue;
        if (last != SIZE_MAX && is_steady(m, i) && is_steady(m, last) && !isnan(v[i])) {
            double ns = (double)(time_of(m, i) - time_of(m, last));
            out = (struct mean){out.sum + v[i] * ns, out.n + ns};
            ++*readings;
        }
        last = i;
    }
    return out;
}

static double most_of(const struct metering *m, enum metric_id metric)
{
    double most = NAN;
    const double *v = column(m, metric);
    for (size_t i = 0; v && i < m->s->at_ns.n; i++) most = fmax(most, v[i]);
    return most;
}

/* What it was when it was last read, not longer ago than it stands; NAN: unknown. */
static double last_read(const struct metering *m, const double *v, size_t i)
{
    uint64_t now = m->s->at_ns.items[i];
    while (v && i > 0 && isnan(v[i]) && now - m->s->at_ns.items[i - 1] < METRIC_GPU_HOLD_NS) i--;
    return v ? v[i] : NAN;
}

/* Of readings while the card was at work: an idle one lowers its clock and its link. */
static void under_load(const struct metering *m, struct gpu_metered *out)
{
    const double *util = column(m, METRIC_GPU_UTIL), *reasons = column(m, METRIC_GPU_THROTTLE),
                 *clock = column(m, METRIC_GPU_CLOCK_SM), *most = column(m, METRIC_GPU_CLOCK_MAX),
                 *link = column(m, METRIC_GPU_PCIE_LINK);
    struct mean power = {0, 0}, other = {0, 0}, speed = {0, 0}, lane = {0, 0};
    for (size_t i = 0; util && i < m->s->at_ns.n; i++) {
        if (!is_steady(m, i) || !(last_read(m, util, i) > 0.05)) continue;
        if (reasons && !isnan(reasons[i])) {
            unsigned bits = (unsigned)reasons[i];
            power = (struct mean){power.sum + !!(bits & THROTTLE_POWER), power.n + 1};
            other = (struct mean){other.sum + !!(bits & THROTTLE_OTHER), other.n + 1};
        }
        double fastest = last_read(m, most, i);
        if (clock && fastest > 0 && !isnan(clock[i]))
            speed = (struct mean){speed.sum + clock[i] / fastest, speed.n + 1};
        if (link && !isnan(link[i])) lane = (struct mean){lane.sum + link[i], lane.n + 1};
    }
    out->power_capped = value(power);
    out->throttled = value(other);
    out->clock = value(speed);
    out->pcie_link = value(lane);
}

/* ---- energy ---- */

/* How many steps lie between two times, parts of a step included. */
static double steps_between(const struct gpu_facts *f, uint64_t from, uint64_t to)
{
    double n = 0;
    for (size_t i = 0; i < f->work->windows.n; i++) {
        const struct gpu_window *w = &f->work->windows.items[i];
        uint64_t a = w->start > from ? w->start : from, b = w->end < to ? w->end : to;
        if (w->card == f->card && b > a) n += (double)(b - a) / (double)(w->end - w->start);
    }
    return n;
}

/* Power at moments around which the card had nothing to do: no operation between the samples before and after. Those
 * within steady time are preferred, as an idle card that waits draws more than one that sleeps. */
static double idle_power(const struct metering *m, const struct gpu_op *ops, size_t n)
{
    enum { LEAST = 3 };
    const double *watts = column(m, METRIC_GPU_POWER);
    struct mean inside = {0, 0}, outside = {0, 0};
    size_t at = 0;
    uint64_t until = 0;
    for (size_t i = 1; watts && i + 1 < m->s->at_ns.n; i++) {
        uint64_t from = time_of(m, i - 1), to = time_of(m, i + 1);
        while (at < n && ops[at].start < from) {
            if (ops[at].end > until) until = ops[at].end;
            at++;
        }
        if (isnan(watts[i]) || until > from || (at < n && ops[at].start < to)) continue;
        struct mean *to_add = is_steady(m, i) ? &inside : &outside;
        *to_add = (struct mean){to_add->sum + watts[i], to_add->n + 1};
    }
    return value(inside.n >= LEAST ? inside : outside);
}

struct readings {
    size_t first, last, updates;
};

static struct readings readings_of(const struct metering *m, const double *joules)
{
    struct readings r = {SIZE_MAX, SIZE_MAX, 0};
    double before = NAN;
    for (size_t i = 0; joules && i < m->s->at_ns.n; i++) {
        if (!is_steady(m, i) || isnan(joules[i])) continue;
        if (r.first == SIZE_MAX) r.first = i;
        r.updates += joules[i] > before;
        before = joules[i];
        r.last = i;
    }
    return r;
}

/* From the first to the last reading in steady state. Each reading may be as old as the counter's refresh, so that both
 * ends are in doubt by what is used in that time: a window must hold many refreshes. */
static void measure_energy(const struct metering *m, struct gpu_metered *out)
{
    const double *joules = column(m, METRIC_GPU_ENERGY);
    const struct readings r = readings_of(m, joules);
    if (r.first == SIZE_MAX || r.last == r.first || !joules) return;
    uint64_t from = time_of(m, r.first), to = time_of(m, r.last);
    out->window_ns = (double)(to - from);
    out->updates = (double)r.updates;
    if (out->window_ns < UPDATES_LEAST * REFRESH_NS) return;
    double steps = steps_between(m->f, from, to), used = joules[r.last] - joules[r.first];
    out->joules = used;
    if (steps >= 1) {
        out->per_step = used / steps;
        out->per_step_error = out->per_step * REFRESH_NS / out->window_ns;
    }
}

/* Each reading may be as old as the counter's refresh: those are taken that lie far apart beside that. */
static tare_status group_energy(const struct metering *m)
{
    enum { DOUBTS_APART = 8 };
    const double *joules = column(m, METRIC_GPU_ENERGY);
    VEC(struct gpu_reading) taken = VEC_INIT;
    tare_status s = TARE_OK;
    for (size_t i = 0; joules && i < m->s->at_ns.n && s == TARE_OK; i++) {
        const uint64_t at = time_of(m, i);
        const struct gpu_reading *last = taken.n ? &taken.items[taken.n - 1] : NULL;
        if (!is_steady(m, i) || isnan(joules[i]) || at < REFRESH_NS) continue;
        if (last && at - REFRESH_NS < last->to + DOUBTS_APART * (uint64_t)REFRESH_NS) continue;
        s = vec_push(&taken, ((struct gpu_reading){at - REFRESH_NS, at, joules[i]}), m->f->work->err);
    }
    if (s == TARE_OK) s = gpu_energy_groups(m->f, taken.items, taken.n);
    vec_release(&taken);
    return s;
}

/* ---- all of it ---- */

static const struct gpu_metered unknown = {
    .sm_active = NAN, .sm_occupancy = NAN, .tensor = NAN, .dram = NAN, .power_capped = NAN, .throttled = NAN,
    .clock = NAN, .pcie_link = NAN, .memory_share = NAN, .joules = NAN, .joules_idle = NAN, .window_ns = NAN,
    .per_step = NAN, .per_step_error = NAN, .idle_watts = NAN, .others = NAN,
};

tare_status gpu_facts_meter(struct gpu_facts *f, const struct samples *s, uint64_t begun_raw_ns)
{
    char found[32];
    f->meter = unknown;
    if (!s || !f->seen) return TARE_OK;
    const char *label = label_by_uuid(s, f->seen->out.uuid, found);
    struct metering m = {f, s, label ? label : only_label(s), begun_raw_ns};
    if (!m.label) return TARE_OK;
    struct gpu_metered *out = &f->meter;
    out->label = m.label;
    double others;
    out->sm_active = value(mean_of(&m, METRIC_GPU_SM_ACTIVE, &out->readings));
    out->sm_occupancy = value(mean_of(&m, METRIC_GPU_SM_OCCUPANCY, &others));
    out->tensor = value(mean_of(&m, METRIC_GPU_TENSOR, &others));
    out->dram = value(mean_of(&m, METRIC_GPU_DRAM, &others));
    out->memory_share = most_of(&m, METRIC_GPU_MEM_USED) / most_of(&m, METRIC_GPU_MEM_TOTAL);
    out->others = most_of(&m, METRIC_GPU_OTHERS);
    under_load(&m, out);
    measure_energy(&m, out);
    out->idle_watts = idle_power(&m, f->ops, f->n_ops);
    out->joules_idle = out->idle_watts * out->window_ns / 1e9 * (1 - OR_NAN(f->steady.busy));
    return isfinite(out->joules) ? group_energy(&m) : TARE_OK;
}
