/* SPDX-License-Identifier: MIT
 * gpu_judge.c - from gathered work to what is said of each card in steady state, and to the findings. */
#include <math.h>

#include "analyze/gpu/gpu_facts.h"

static struct known_f64 known_share(double v)
{
    return isfinite(v) ? known_f64(fmin(fmax(v, 0), 1)) : (struct known_f64){0};
}

static struct known_f64 known_real(double v)
{
    return isfinite(v) && v >= 0 ? known_f64(v) : (struct known_f64){0};
}

static void put_activity(struct gpu_activity *a, const struct gpu_metered *m)
{
    *a = (struct gpu_activity){.known = true,
                               .sm_active = known_share(m->sm_active),
                               .sm_occupancy = known_share(m->sm_occupancy),
                               .tensor = known_share(m->tensor),
                               .dram = known_share(m->dram),
                               .samples = known_u64((uint64_t)m->readings)};
    if (m->readings > 0) return;
    a->samples = (struct known_u64){0};
    a->why =
        m->label
            ? "the card has no such counters (GPM, from Hopper on), or steady time was too short for two readings"
            : "the card was not sampled: the trace is not of `tare run`, or NVML was not there";
}

/* Unknown with its reason where there was no window that the counter can be trusted over. */
static void put_energy(struct gpu_energy *e, const struct gpu_metered *m)
{
    *e = (struct gpu_energy){
        .known = true, .joules = known_real(m->joules), .idle_watts = known_real(m->idle_watts)};
    e->idle_share = known_share(m->joules_idle / m->joules);
    if (m->window_ns > 0) e->window_ns = known_u64((uint64_t)m->window_ns);
    if (m->updates > 0) e->updates = known_u64((uint64_t)m->updates);
    if (isfinite(m->others)) e->shared = (struct known_bool){true, m->others > 0};
    e->per_step = known_real(m->per_step);
    e->per_step_lo = known_real(fmax(0, m->per_step - m->per_step_error));
    e->per_step_hi = known_real(m->per_step + m->per_step_error);
    if (!e->per_step.known)
        e->per_step_lo = e->per_step_hi = e->per_step; /* fmax() forgets what is not known */
    if (!m->label)
        e->why = "the card was not sampled";
    else if (!isfinite(m->joules))
        e->why =
            "steady time holds too few readings of the energy counter: it takes 2 s, or there is no counter";
    else if (!isfinite(m->per_step))
        e->why = "no steps were found";
}

static tare_status put_groups(struct gpu_work *w, const struct gpu_metered *m, struct gpu_energy *out)
{
    for (size_t i = 0; i < m->n_groups; i++) {
        const struct gpu_group_power *g = &m->groups[i];
        struct gpu_energy_group *row = RUN_LIST_ADD(&w->out->arena, &out->groups);
        if (!row) return error_nomem(w->err, "energy by group");
        row->group = g->group;
        row->time_ns = (uint64_t)(g->seconds * 1e9);
        row->why = g->why;
        if (g->why) continue;
        row->watts = run_estimate_of(g->watts);
        row->joules =
            run_estimate(g->watts.value * g->seconds, g->watts.lo * g->seconds, g->watts.hi * g->seconds);
    }
    return TARE_OK;
}

static tare_status put_card(struct gpu_work *w, const struct gpu_facts *f)
{
    struct gpu_card *out = &w->cards.items[f->card].out;
    out->steady_ns = known_u64((uint64_t)f->wall);
    out->queue_deep = known_share(f->deep);
    if (f->shaped.ns > 0) out->sm_fill = known_share(1 - f->empty_ns / f->shaped.ns);
    if (f->shaped.ns > 0 && f->seen->warps) out->occupancy = known_share(f->occupancy_ns / f->shaped.ns);
    if (f->kernels.ns > 0) out->tensor_share = known_share(f->tensor_ns / f->kernels.ns);
    put_activity(&out->activity, &f->meter);
    put_energy(&out->energy, &f->meter);
    return put_groups(w, &f->meter, &out->energy);
}

/* A card that nobody looked at has no findings for that reason alone. */
static void tell_unjudged(struct gpu_work *w)
{
    static const char *const fields[] = {"steps", "memory_peak_bytes", "steady_ns"};
    for (size_t i = JUDGED_CARDS_MOST; i < w->cards.n; i++)
        for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
            run_map_textf(&w->out->arena, &w->cards.items[i].out.unknown, fields[k],
                          "only the first %d cards are judged", JUDGED_CARDS_MOST);
}

tare_status gpu_work_judge(struct gpu_work *w, struct trace *t)
{
    struct samples samples = SAMPLES_INIT;
    VEC(struct gpu_facts) facts = VEC_INIT;
    tare_status s =
        t ? samples_load(&samples, trace_path(t), NULL) : TARE_FORMAT; /* not all traces have any */
    const struct samples *sampled = s == TARE_OK ? &samples : NULL;
    s = s == TARE_NOMEM ? error_nomem(w->err, "samples") : TARE_OK;
    size_t cards = 0;
    for (size_t at = 0, end; at < w->ops.n && s == TARE_OK && cards < JUDGED_CARDS_MOST; at = end, cards++) {
        struct gpu_facts f;
        for (end = at; end < w->ops.n && w->ops.items[end].card == w->ops.items[at].card;) end++;
        s = gpu_facts_of(w, &w->ops.items[at], end - at, &f);
        if (s != TARE_OK || !(f.wall > 0)) continue;
        s = gpu_facts_meter(&f, sampled, t ? trace_begun_raw_ns(t) : 0);
        if (s == TARE_OK) s = put_card(w, &f);
        if (s == TARE_OK) s = vec_push(&facts, f, w->err);
    }
    tell_unjudged(w);
    if (s == TARE_OK) s = gpu_rules(w->out, facts.items, facts.n, w->err);
    vec_release(&facts);
    samples_release(&samples);
    return s;
}
