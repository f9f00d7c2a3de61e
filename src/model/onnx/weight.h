/* SPDX-License-Identifier: MIT
 * weight.h - seeded weights: value number i of a tensor is a function of (key, i) alone, so that any piece
 * of any tensor can be made at any time, in any layout and any type, with the same bits on every machine.
 * Integer and single IEEE operations only; never the C library's mathematics. */
#ifndef MODEL_WEIGHT_H
#define MODEL_WEIGHT_H

#include <stddef.h>
#include <stdint.h>

/* How the values of a tensor are drawn: nearly normal (the sum of four even ones), mean 0. */
struct weight {
    uint64_t key;
    uint64_t count;
    uint64_t rows, cols; /* rows > 0: stored as [rows, cols], numbered as in its transpose */
    float step;          /* value = draw * step; see weight_step() */
    uint32_t peak;       /* for 8 bits: what weight_peak() said */
    uint8_t zero;        /* for 8 bits: which number stands for 0.0; 0 or 128 */
};

#define WEIGHT_DRAW_MAX 131070 /* draws lie in -MAX .. MAX */

uint64_t weight_key(uint64_t seed, const char *name); /* the key of a tensor of a model */
float weight_step(double std);                        /* the step that gives this standard deviation */

/* `n` values from number `from` on, in the order of storage. */
void weight_float(const struct weight *w, uint64_t from, size_t n, float *out);
void weight_half(const struct weight *w, uint64_t from, size_t n, uint16_t *out);

/* The largest |draw|. Reads the whole tensor; at least 1. */
uint32_t weight_peak(const struct weight *w);

/* Symmetric 8-bit values, the peak becoming 127: value = (q - zero) * weight_int8_scale(). */
void weight_int8(const struct weight *w, uint64_t from, size_t n, uint8_t *out);
float weight_int8_scale(const struct weight *w);

/* The nearest IEEE half (ties to even; too large becomes infinite). */
uint16_t weight_to_half(float value);

#endif
