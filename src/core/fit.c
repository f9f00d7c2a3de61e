/* SPDX-License-Identifier: MIT
 * fit.c - least squares by the normal equations of columns scaled to length 1. */
#include "core/fit.h"

#include <stdbool.h>

#include "core/stats.h"

enum { MOST = FIT_COLUMNS_MOST, TURNS = 20000 };
#define APART 1e-4 /* of a column's square that others must leave unexplained: 1 % of its length */

struct system {
    double g[MOST][MOST]; /* products of columns; then, of those in `held`, the inverse */
    double c[MOST];       /* products with y */
    double length[MOST];
    size_t n;
    bool held[MOST];
};

static void set_up(struct system *s, const struct fit_rows *in)
{
    *s = (struct system){.n = in->columns};
    for (size_t i = 0; i < in->rows; i++) {
        const double *x = &in->x[i * s->n];
        for (size_t k = 0; k < s->n; k++) {
            s->c[k] += x[k] * in->y[i];
            for (size_t j = 0; j < s->n; j++) s->g[k][j] += x[k] * x[j];
        }
    }
    for (size_t k = 0; k < s->n; k++) s->length[k] = sqrt(s->g[k][k]);
    for (size_t k = 0; k < s->n; k++) {
        if (s->length[k] > 0) s->c[k] /= s->length[k];
        for (size_t j = 0; j < s->n; j++)
            if (s->length[k] > 0 && s->length[j] > 0) s->g[k][j] /= s->length[k] * s->length[j];
    }
}

/* Takes a column into the fit (Gauss and Jordan, in place), unless those that are in it explain it. What is left on the
 * diagonal of a column that is not in the fit is what those in it do not explain. */
static void take(struct system *s, size_t k)
{
    const double pivot = s->g[k][k];
    s->held[k] = pivot >= APART;
    if (!s->held[k]) return;
    for (size_t j = 0; j < s->n; j++) s->g[k][j] /= pivot;
    for (size_t i = 0; i < s->n; i++) {
        const double b = s->g[i][k];
        if (i == k) continue;
        for (size_t j = 0; j < s->n; j++) s->g[i][j] -= b * s->g[k][j];
        s->g[i][k] = -b / pivot;
    }
    s->g[k][k] = 1 / pivot;
}

static double unexplained(const struct system *s, size_t k)
{
    struct system others = *s;
    for (size_t i = 0; i < s->n; i++)
        if (i != k) take(&others, i);
    return others.g[k][k];
}

/* The best values that are not below zero: each in its turn, until none moves. The sum of squares is convex, so that
 * this ends at its least. */
static void best_nonnegative(const struct system *s, double b[])
{
    for (int turn = 0; turn < TURNS; turn++) {
        double moved = 0, largest = 0;
        for (size_t k = 0; k < s->n; k++) {
            double left = s->c[k];
            for (size_t j = 0; j < s->n; j++) left -= s->g[k][j] * b[j];
            double now = s->g[k][k] > 0 ? fmax(0, b[k] + left / s->g[k][k]) : 0;
            moved = fmax(moved, fabs(now - b[k]));
            largest = fmax(largest, now);
            b[k] = now;
        }
        if (moved <= 1e-10 * largest) return;
    }
}

/* Standard errors of the unbounded fit `b` of scaled columns. */
static void errors_of(const struct fit_rows *in, const struct system *inverse, const double b[], double out[])
{
    double squares = 0, robust[MOST] = {0}, before[MOST] = {0}, rank = 0;
    for (size_t k = 0; k < in->columns; k++) rank += inverse->held[k];
    for (size_t i = 0; i < in->rows; i++) {
        double x[MOST], left = in->y[i];
        for (size_t k = 0; k < in->columns; k++) {
            x[k] = inverse->length[k] > 0 ? in->x[i * in->columns + k] / inverse->length[k] : 0;
            left -= b[k] * x[k];
        }
        squares += left * left;
        for (size_t k = 0; k < in->columns; k++) {
            double weight = 0; /* of this row in the value */
            for (size_t j = 0; j < in->columns; j++)
                if (inverse->held[j]) weight += inverse->g[k][j] * x[j];
            robust[k] += left * weight * (left * weight + before[k]);
            before[k] = left * weight;
        }
    }
    const double free_rows = (double)in->rows - rank;
    for (size_t k = 0; k < in->columns; k++)
        out[k] = sqrt(fmax(squares / free_rows * inverse->g[k][k], robust[k] * (double)in->rows / free_rows));
}

/* How far errors of x have moved the value of a column: the first term of the series in blur / x'x. */
static double moved_by(const struct fit_rows *in, const struct system *inverse, const double b[], size_t k)
{
    double moved = 0;
    for (size_t i = 0; in->blur && i < in->columns; i++)
        for (size_t j = 0; inverse->held[i] && j < in->columns; j++)
            if (inverse->held[j])
                moved += inverse->g[k][i] * in->blur[i * in->columns + j] * b[j] /
                         (inverse->length[i] * inverse->length[j]);
    return fabs(moved);
}

void fit_nonnegative(const struct fit_rows *in, double level, struct interval out[])
{
    struct system s, inverse;
    double b[MOST] = {0}, best[MOST], error[MOST];
    for (size_t k = 0; k < in->columns; k++) out[k] = (struct interval){NAN, NAN, NAN};
    if (in->columns > MOST || in->rows < in->columns + FIT_ROWS_MORE) return;
    set_up(&s, in);
    inverse = s;
    for (size_t k = 0; k < s.n; k++) take(&inverse, k);
    for (size_t k = 0; k < s.n; k++)
        for (size_t j = 0; inverse.held[k] && j < s.n; j++)
            if (inverse.held[j]) b[k] += inverse.g[k][j] * s.c[j];
    errors_of(in, &inverse, b, error);
    for (size_t k = 0; k < s.n; k++) best[k] = fmax(0, b[k]);
    best_nonnegative(&s, best);
    const double t = stats_t_quantile(0.5 + level / 2, (double)(in->rows - in->columns));
    for (size_t k = 0; k < s.n; k++) {
        if (!inverse.held[k] || unexplained(&s, k) < APART) continue;
        const double half = t * error[k] + moved_by(in, &inverse, b, k);
        const double lo = fmax(0, b[k] - half), hi = fmax(0, b[k] + half);
        out[k] = (struct interval){best[k] / s.length[k], fmin(lo, best[k]) / s.length[k],
                                   fmax(hi, best[k]) / s.length[k]};
    }
}
