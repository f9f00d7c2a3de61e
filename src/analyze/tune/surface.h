/* SPDX-License-Identifier: MIT
 * surface.h - a smooth surface through noisy measurements at points of a grid of knobs: Gaussian process regression,
 * made for some hundred measurements. Knows nothing of searching. Private to analyze/tune. */
#ifndef ANALYZE_TUNE_SURFACE_H
#define ANALYZE_TUNE_SURFACE_H

#include "analyze/tune/search.h"

struct surface_point {
    struct tune_point at;
    uint32_t block; /* measurements of one block share what the machine did then */
    double y;       /* ln of the cost, less what a model predicts */
};

struct surface_shape {            /* what is learned of the surface itself */
    double reach[TUNE_KNOBS_MAX]; /* how far a knob's values are alike, as a share of its range */
    double height;                /* standard deviation of the surface, ln */
    double alone;                 /* share of it that is a sum over knobs; the rest is their interplay */
    double rough;                 /* what is a configuration's own, like none of its neighbours: edges, ln */
    double noise;                 /* of one measurement, ln */
};

struct surface {
    const struct tune_knob *knobs;
    size_t n_knobs;
    struct surface_shape shape;
    struct surface_point p[TUNE_MEASURED_MAX + TUNE_BLOCK_MAX];
    size_t n;
    double mean;
    double *chol;  /* lower triangle of the covariance's Cholesky factor, row by row */
    double *alpha; /* covariance^-1 (y - mean) */
    double *row;   /* scratch */
};

tare_status surface_init(struct surface *s, const struct tune_knob *knobs, size_t n, tare_error *err);
void surface_release(struct surface *s);

/* Learn the shape from the points and solve for them. */
void surface_fit(struct surface *s);
/* One more point, with the shape as it is. */
void surface_add(struct surface *s, const struct surface_point *p);

struct surface_guess {
    double mean, sd; /* of the surface there, without noise and without any block's shift */
};
struct surface_guess surface_at(struct surface *s, const struct tune_point *p);
/* Of the difference a - b. */
struct surface_guess surface_difference(struct surface *s, const struct tune_point *a,
                                        const struct tune_point *b);

#endif
