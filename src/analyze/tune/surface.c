/* SPDX-License-Identifier: MIT
 * surface.c - Gaussian process regression over a grid of knobs. See surface.h. */
#include "analyze/tune/surface.h"

#include <math.h>
#include <string.h>

#include "core/mem.h"

#define BLOCK_SHIFT 0.5 /* standard deviation of what a whole block may be off, ln: wide, so that it says nothing */

enum { ROOM = TUNE_MEASURED_MAX + TUNE_BLOCK_MAX, TRIANGLE = ROOM * (ROOM + 1) / 2 };

tare_status surface_init(struct surface *s, const struct tune_knob *knobs, size_t n, tare_error *err)
{
    *s = (struct surface){.knobs = knobs, .n_knobs = n};
    s->shape = (struct surface_shape){.height = 0.3, .alone = 0.5, .rough = 0.03, .noise = 0.03};
    for (size_t k = 0; k < n; k++) s->shape.reach[k] = 0.5;
    s->chol = mem_new(TRIANGLE, sizeof *s->chol);
    s->alpha = mem_new(ROOM, sizeof *s->alpha);
    s->row = mem_new(ROOM, sizeof *s->row);
    if (s->chol && s->alpha && s->row) return TARE_OK;
    surface_release(s);
    return error_nomem(err, "a search over %zu knobs", n);
}

void surface_release(struct surface *s)
{
    mem_free(s->chol);
    mem_free(s->alpha);
    mem_free(s->row);
    *s = (struct surface){0};
}

/* ---- how alike two configurations are ---- */

/* Of one knob's values: numbers by their distance on the list, words all alike far. */
static double alike_in(const struct surface *s, size_t k, const struct tune_point *a,
                       const struct tune_point *b)
{
    const struct tune_knob *knob = &s->knobs[k];
    if (a->at[k] == b->at[k]) return 1;
    double far = knob->ordered ? ((double)a->at[k] - (double)b->at[k]) / (double)(knob->n - 1) : 1;
    return exp(-far * far / (2 * s->shape.reach[k] * s->shape.reach[k]));
}

/* A sum over knobs, which learns each knob's effect from few measurements, and a product, which can follow
 * any interplay of them where it has seen enough; and what is each configuration's own. */
static double alike(const struct surface *s, const struct tune_point *a, const struct tune_point *b)
{
    double sum = 0, product = 1;
    for (size_t k = 0; k < s->n_knobs; k++) {
        double one = alike_in(s, k, a, b);
        sum += one;
        product *= one;
    }
    const struct surface_shape *h = &s->shape;
    double own = memcmp(a->at, b->at, s->n_knobs) == 0 ? h->rough * h->rough : 0;
    return own + h->height * h->height * (h->alone * sum / (double)s->n_knobs + (1 - h->alone) * product);
}

/* ---- solving ---- */

static double *row_of(const struct surface *s, size_t i)
{
    return s->chol + i * (i + 1) / 2;
}

/* v := L^-1 v, for the first n rows. */
static void forward(const struct surface *s, double *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double *l = row_of(s, i);
        double sum = v[i];
        for (size_t j = 0; j < i; j++) sum -= l[j] * v[j];
        v[i] = sum / l[i];
    }
}

/* v := L^-T v */
static void backward(const struct surface *s, double *v, size_t n)
{
    for (size_t i = n; i-- > 0;) {
        const double *l = row_of(s, i);
        v[i] /= l[i];
        for (size_t j = 0; j < i; j++) v[j] -= l[j] * v[i];
    }
}

/* The covariance of measurements grows by point i: one more row of the factor. */
static void factor_row(struct surface *s, size_t i)
{
    double *l = row_of(s, i), own;
    for (size_t j = 0; j < i; j++)
        l[j] = alike(s, &s->p[i].at, &s->p[j].at) +
               (s->p[i].block == s->p[j].block ? BLOCK_SHIFT * BLOCK_SHIFT : 0);
    own = alike(s, &s->p[i].at, &s->p[i].at) + BLOCK_SHIFT * BLOCK_SHIFT + s->shape.noise * s->shape.noise;
    forward(s, l, i);
    for (size_t j = 0; j < i; j++) own -= l[j] * l[j];
    l[i] = sqrt(fmax(own, 1e-12));
}

static void solve(struct surface *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++) sum += s->p[i].y;
    s->mean = s->n ? sum / (double)s->n : 0;
    for (size_t i = 0; i < s->n; i++) s->alpha[i] = s->p[i].y - s->mean;
    forward(s, s->alpha, s->n);
    backward(s, s->alpha, s->n);
}

/* ln of how likely the measurements are under the shape; leaves everything solved for it. */
static double likelihood(struct surface *s)
{
    double out = 0;
    for (size_t i = 0; i < s->n; i++) factor_row(s, i);
    solve(s);
    for (size_t i = 0; i < s->n; i++) out -= (s->p[i].y - s->mean) * s->alpha[i] / 2 + log(row_of(s, i)[i]);
    return out;
}

/* ---- the shape ---- */

/* Try each of the values for one number of the shape and keep the likeliest. */
static void choose(struct surface *s, double *what, const double *values, size_t n, double *best)
{
    double keep = *what;
    for (size_t i = 0; i < n; i++) {
        *what = values[i];
        double l = likelihood(s);
        if (l > *best) {
            *best = l;
            keep = values[i];
        }
    }
    *what = keep;
}

/* One number after the other, over a few values each: the surface needs no exact shape, and no search that can go
 * astray. */
void surface_fit(struct surface *s)
{
    static const double noises[] = {0.003, 0.01, 0.03, 0.1, 0.25}, heights[] = {0.1, 0.3, 0.8, 2};
    static const double reaches[] = {0.15, 0.4, 1, 3}, shares[] = {0.1, 0.5, 0.9};
    static const double roughs[] = {0.003, 0.02, 0.08, 0.25};
    double best = likelihood(s);
    if (s->n >= 6) {
        choose(s, &s->shape.height, heights, 4, &best);
        choose(s, &s->shape.rough, roughs, 4, &best);
        choose(s, &s->shape.noise, noises, 5, &best);
        for (size_t k = 0; k < s->n_knobs; k++) choose(s, &s->shape.reach[k], reaches, 4, &best);
        choose(s, &s->shape.alone, shares, 3, &best);
    }
    likelihood(s);
}

void surface_add(struct surface *s, const struct surface_point *p)
{
    s->p[s->n] = *p;
    factor_row(s, s->n++);
    solve(s);
}

/* ---- asking ---- */

struct surface_guess surface_at(struct surface *s, const struct tune_point *p)
{
    struct surface_guess g = {.mean = s->mean};
    double *k = s->row, var = alike(s, p, p);
    for (size_t i = 0; i < s->n; i++) {
        k[i] = alike(s, p, &s->p[i].at);
        g.mean += k[i] * s->alpha[i];
    }
    forward(s, k, s->n);
    for (size_t i = 0; i < s->n; i++) var -= k[i] * k[i];
    g.sd = sqrt(fmax(var, 0));
    return g;
}

struct surface_guess surface_difference(struct surface *s, const struct tune_point *a,
                                        const struct tune_point *b)
{
    struct surface_guess g = {0};
    double *k = s->row, var = alike(s, a, a) + alike(s, b, b) - 2 * alike(s, a, b);
    for (size_t i = 0; i < s->n; i++) {
        k[i] = alike(s, a, &s->p[i].at) - alike(s, b, &s->p[i].at);
        g.mean += k[i] * s->alpha[i];
    }
    forward(s, k, s->n);
    for (size_t i = 0; i < s->n; i++) var -= k[i] * k[i];
    g.sd = sqrt(fmax(var, 0));
    return g;
}
