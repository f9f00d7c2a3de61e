/* SPDX-License-Identifier: MIT
 * weight.c - see weight.h. Must stay free of anything whose result depends on the machine: no libm, no sum
 * that a compiler may fuse with a product, no order of evaluation that a compiler may choose. */
#include "model/onnx/weight.h"

#include <string.h>

#include "core/rng.h"

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)
#define DRAW_STD 37837.22705 /* of the sum of four even 16-bit numbers: 65536 / sqrt(3) */

uint64_t weight_key(uint64_t seed, const char *name)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325); /* FNV-1a */
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
    uint64_t state = seed ^ hash;
    rng_splitmix(&state);
    return rng_splitmix(&state);
}

float weight_step(double std)
{
    return (float)(std / DRAW_STD);
}

static inline int32_t draw_normal(uint64_t key, uint64_t i)
{
    uint64_t state = key + i * GOLDEN, z = rng_splitmix(&state);
    return (int32_t)((z & 0xFFFF) + (z >> 16 & 0xFFFF) + (z >> 32 & 0xFFFF) + (z >> 48)) - WEIGHT_DRAW_MAX;
}

/* Walks the numbers of the values in the order of storage. */
struct element_walk {
    uint64_t at, stride, row, rows, cols;
};

static struct element_walk walk_from(const struct weight *w, uint64_t from)
{
    if (!w->rows) return (struct element_walk){.at = from, .stride = 1};
    struct element_walk k = {.stride = w->rows, .row = from / w->cols, .rows = w->rows, .cols = w->cols};
    k.at = from % w->cols * w->rows + k.row;
    return k;
}

static inline uint64_t walk_next(struct element_walk *k)
{
    uint64_t now = k->at;
    k->at += k->stride;
    if (k->rows && k->at >= k->rows * k->cols) k->at = ++k->row;
    return now;
}

void weight_float(const struct weight *w, uint64_t from, size_t n, float *out)
{
    struct element_walk k = walk_from(w, from);
    if (!w->rows)
        for (size_t i = 0; i < n; i++) out[i] = (float)draw_normal(w->key, from + i) * w->step;
    else
        for (size_t i = 0; i < n; i++) out[i] = (float)draw_normal(w->key, walk_next(&k)) * w->step;
}

/* Without branches: whether to round up is a toss of a coin, which no processor can guess. Below the
 * smallest normal half, adding 0.5 lets the float unit round to a multiple of 2^-24; the sum is of bits
 * that were looked at as an integer, so that no compiler fuses it with the product before. */
static inline uint16_t to_half(float value)
{
    uint32_t bits, tiny;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF;
    float sum;
    memcpy(&sum, &size, sizeof sum);
    sum += 0.5F;
    memcpy(&tiny, &sum, sizeof tiny);
    uint32_t normal = (size + 0xFFF + (size >> 13 & 1) - 0x38000000) >> 13;
    normal = normal < 0x7C00 ? normal : 0x7C00;    /* too large */
    normal = size <= 0x7F800000 ? normal : 0x7E00; /* not a number */
    uint32_t half = size < 0x38800000 ? tiny - 0x3F000000 : normal;
    return (uint16_t)(sign | half);
}

uint16_t weight_to_half(float value)
{
    return to_half(value);
}

void weight_half(const struct weight *w, uint64_t from, size_t n, uint16_t *out)
{
    struct element_walk k = walk_from(w, from);
    for (size_t i = 0; i < n; i++) out[i] = to_half((float)draw_normal(w->key, walk_next(&k)) * w->step);
}

uint32_t weight_peak(const struct weight *w)
{
    int32_t lo = 0, hi = 0;
    for (uint64_t i = 0; i < w->count; i++) {
        int32_t d = draw_normal(w->key, i);
        lo = d < lo ? d : lo;
        hi = d > hi ? d : hi;
    }
    int32_t peak = hi > -lo ? hi : -lo;
    return peak > 0 ? (uint32_t)peak : 1;
}

void weight_int8(const struct weight *w, uint64_t from, size_t n, uint8_t *out)
{
    struct element_walk k = walk_from(w, from);
    int32_t whole = (int32_t)w->peak;
    for (size_t i = 0; i < n; i++) { /* in integers: a float sum might be fused with the product, or not */
        int32_t d = draw_normal(w->key, walk_next(&k));
        out[i] = (uint8_t)((d * 254 + (d < 0 ? -whole : whole)) / (2 * whole) + w->zero);
    }
}

float weight_int8_scale(const struct weight *w)
{
    return (float)w->peak * w->step / 127.0F;
}
