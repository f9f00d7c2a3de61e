/* SPDX-License-Identifier: MIT
 * gpu_energy.c - into which groups of kernels the energy of a card went. Between two readings of its counter some
 * groups ran for longer than between two others: what the counter rose by, over the times of the groups, gives the
 * power of each. Where the groups' times rise together nothing tells them apart, and that is said. */
#include <string.h>

#include "analyze/gpu/gpu_name.h"
#include "analyze/gpu/gpu_facts.h"
#include "core/fit.h"

enum { IDLE, SEVERAL, REST, GROUPS_FROM, STATES_MOST = GPU_STATES_MOST };
_Static_assert((int)GPU_STATES_MOST <= (int)FIT_COLUMNS_MOST, "each may be a column");
#define SHARE_LEAST 0.01 /* of the time: a group that ran for less is one of the rest */

/* Seconds of each state in the time of which it is not known whether a reading holds it, and then until the next. */
struct pieces {
    double doubtful[STATES_MOST], sure[STATES_MOST];
};

struct walk {
    const struct gpu_facts *f;
    const struct gpu_reading *at;
    size_t n, now;     /* readings; the one that the time looked at belongs to */
    struct pieces *of; /* each reading */
    const char *name[STATES_MOST];
    size_t names;
    uint64_t until[STATES_MOST]; /* when the last operation of the group ends, of those that began */
    uint8_t *of_kernel;          /* of a kernel's name: its group; 0: not asked yet */
};

/* ---- how long each group ran ---- */

static uint8_t state_of_group(struct walk *w, const char *group)
{
    size_t i = GROUPS_FROM;
    while (i < w->names && strcmp(w->name[i], group) != 0) i++;
    if (i == STATES_MOST) return REST;
    if (i == w->names) w->name[w->names++] = group;
    return (uint8_t)i;
}

static uint8_t state_of(struct walk *w, const struct gpu_op *op)
{
    if (op->kind == WORK_COPY) return state_of_group(w, "copy");
    uint8_t *known = &w->of_kernel[op->name];
    if (!*known) *known = state_of_group(w, gpu_name_group(w->f->work->names.items[op->name].text));
    return *known;
}

static void add(double *sum, uint64_t from, uint64_t to, struct gpu_reading within)
{
    if (from < within.from) from = within.from;
    if (to > within.to) to = within.to;
    if (to > from) *sum += (double)(to - from) / 1e9;
}

static void credit(struct walk *w, uint64_t from, uint64_t to, size_t state)
{
    while (w->now + 1 < w->n) {
        const struct gpu_reading *r = &w->at[w->now];
        add(&w->of[w->now].doubtful[state], from, to, *r);
        add(&w->of[w->now].sure[state], from, to, (struct gpu_reading){r->to, r[1].from, 0});
        if (to <= r[1].from) return;
        w->now++;
    }
    add(&w->of[w->now].doubtful[state], from, to, w->at[w->now]);
}

/* Time in which no operation begins. */
static void pass(struct walk *w, uint64_t from, uint64_t to)
{
    while (from < to) {
        uint64_t end = to;
        size_t running = 0, state = IDLE;
        for (size_t g = REST; g < w->names; g++) {
            if (w->until[g] <= from) continue;
            running++;
            state = g;
            if (w->until[g] < end) end = w->until[g];
        }
        credit(w, from, end, running > 1 ? SEVERAL : state);
        from = end;
    }
}

static void walk_operations(struct walk *w)
{
    uint64_t at = 0;
    for (size_t i = 0; i < w->f->n_ops; i++) {
        const struct gpu_op *op = &w->f->ops[i];
        pass(w, at, op->start);
        at = op->start;
        uint8_t state = state_of(w, op);
        if (op->end > w->until[state]) w->until[state] = op->end;
    }
    pass(w, at, w->at[w->n - 1].to);
}

/* ---- the fit ---- */

/* Half of what is in doubt at each end is taken to be in. */
static double seconds(const struct walk *w, size_t row, size_t state)
{
    const struct pieces *p = &w->of[row];
    return p->sure[state] + (p->doubtful[state] + p[1].doubtful[state]) / 2;
}

static double all_seconds(const struct walk *w, size_t state)
{
    double all = 0;
    for (size_t i = 0; i + 1 < w->n; i++) all += seconds(w, i, state);
    return all;
}

/* The states that ran, as columns; small ones become one. */
static size_t columns_of(const struct walk *w, uint8_t state[])
{
    double time[STATES_MOST], all = 0;
    size_t n = 0;
    for (size_t k = 0; k < w->names; k++) all += time[k] = all_seconds(w, k);
    for (size_t k = 0; k < w->names; k++) {
        if (k == REST || time[k] >= SHARE_LEAST * all) continue;
        for (size_t i = 0; i < w->n; i++) {
            struct pieces *p = &w->of[i];
            p->sure[REST] += p->sure[k];
            p->doubtful[REST] += p->doubtful[k];
        }
        time[REST] += time[k];
        time[k] = 0;
    }
    for (size_t k = 0; k < w->names; k++)
        if (time[k] > 0) state[n++] = (uint8_t)k;
    return n;
}

/* Each end of a row is off by up to half of its doubt, evenly: a twelfth of the square, at two rows. */
static void blur_of(const struct walk *w, const uint8_t state[], size_t columns, double *blur)
{
    for (size_t i = 0; i < w->n; i++)
        for (size_t j = 0; j < columns; j++)
            for (size_t k = 0; k < columns; k++)
                blur[j * columns + k] += w->of[i].doubtful[state[j]] * w->of[i].doubtful[state[k]] / 12 * 2;
}

/* Why nothing can be said of any group; NULL: something may be. */
static const char *why_none(const struct gpu_facts *f, const struct fit_rows *in)
{
    if (f->meter.others > 0) return "other processes were on the GPU";
    if (!f->complete || f->steady.unrecorded_ns.v) return "records are missing: what ran is not known";
    if (in->rows < in->columns + FIT_ROWS_MORE)
        return "too few readings of the energy counter for so many groups";
    return NULL;
}

/* An interval as wide as the card's power says nothing of a group. */
static const char *why_not(struct interval watts, double mean_watts)
{
    if (isnan(watts.value)) return "it ran beside the others in the same proportion all the time";
    if (watts.hi - watts.lo > mean_watts) return "the readings do not tell it from the others";
    return NULL;
}

static void fit(struct gpu_facts *f, struct walk *w, double *x, double *y)
{
    uint8_t state[STATES_MOST];
    double blur[STATES_MOST * STATES_MOST] = {0}, time = 0;
    struct interval watts[STATES_MOST];
    const size_t rows = w->n - 1, columns = columns_of(w, state);
    for (size_t i = 0; i < rows; i++) {
        y[i] = w->at[i + 1].joules - w->at[i].joules;
        for (size_t k = 0; k < columns; k++) time += x[i * columns + k] = seconds(w, i, state[k]);
    }
    blur_of(w, state, columns, blur);
    const struct fit_rows in = {y, x, rows, columns, blur};
    fit_nonnegative(&in, 0.95, watts);
    const double mean_watts = (w->at[rows].joules - w->at[0].joules) / time;
    for (size_t k = 0; k < columns; k++) {
        struct gpu_group_power *g = &f->meter.groups[f->meter.n_groups++];
        *g =
            (struct gpu_group_power){w->name[state[k]], all_seconds(w, state[k]), watts[k], why_none(f, &in)};
        if (!g->why) g->why = why_not(watts[k], mean_watts);
    }
}

tare_status gpu_energy_groups(struct gpu_facts *f, const struct gpu_reading *at, size_t n)
{
    if (n < 2) return TARE_OK;
    struct walk w = {.f = f, .at = at, .n = n, .names = GROUPS_FROM, .name = {"idle", "several", "rest"}};
    double *x = mem_new(n, STATES_MOST * sizeof *x), *y = mem_new(n, sizeof *y);
    w.of = mem_new(n, sizeof *w.of);
    w.of_kernel = mem_new(f->work->names.n + 1, 1);
    const bool room = x && y && w.of && w.of_kernel;
    if (room) {
        walk_operations(&w);
        fit(f, &w, x, y);
    }
    mem_free(x);
    mem_free(y);
    mem_free(w.of);
    mem_free(w.of_kernel);
    return room ? TARE_OK : error_nomem(f->work->err, "%zu readings of energy", n);
}
