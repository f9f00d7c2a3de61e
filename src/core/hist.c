/* SPDX-License-Identifier: MIT
 * hist.c - see hist.h. Finding a bucket is integer work alone: a leading-zero count, a table look-up and
 * two comparisons without branches. Never log(), whose rounding would put values on the wrong side. */
#include "core/hist.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/mem.h"
#include "core/wire.h"

enum { PER_OCTAVE = 1 << HIST_SCALE };

/* edges[j] = floor(2^63 * 2^(j/64)). The true edges are irrational for j > 0, so for an integer x
 * "x > edges[j]" is the same as "x > 2^63 * 2^(j/64)". The last one is never passed. */
static const uint64_t edges[PER_OCTAVE + 1] = {
    0x8000000000000000U, 0x8164D1F3BC030773U, 0x82CD8698AC2BA1D7U, 0x843A28C3ACDE4046U, 0x85AAC367CC487B14U,
    0x871F61969E8D1010U, 0x88980E8092DA8527U, 0x8A14D575496EFD9AU, 0x8B95C1E3EA8BD6E6U, 0x8D1ADF5B7E5BA9E5U,
    0x8EA4398B45CD53C0U, 0x9031DC431466B1DCU, 0x91C3D373AB11C336U, 0x935A2B2F13E6E92BU, 0x94F4EFA8FEF70961U,
    0x96942D3720185A00U, 0x9837F0518DB8A96FU, 0x99E0459320B7FA64U, 0x9B8D39B9D54E5538U, 0x9D3ED9A72CFFB750U,
    0x9EF5326091A111ADU, 0xA0B0510FB9714FC2U, 0xA27043030C496818U, 0xA43515AE09E6809EU, 0xA5FED6A9B15138EAU,
    0xA7CD93B4E9653569U, 0xA9A15AB4EA7C0EF8U, 0xAB7A39B5A93ED337U, 0xAD583EEA42A14AC6U, 0xAF3B78AD690A4374U,
    0xB123F581D2AC258FU, 0xB311C412A9112489U, 0xB504F333F9DE6484U, 0xB6FD91E328D17791U, 0xB8FBAF4762FB9EE9U,
    0xBAFF5AB2133E45FBU, 0xBD08A39F580C36BEU, 0xBF1799B67A731082U, 0xC12C4CCA66709456U, 0xC346CCDA24976407U,
    0xC5672A115506DADDU, 0xC78D74C8ABB9B15CU, 0xC9B9BD866E2F27A2U, 0xCBEC14FEF2727C5CU, 0xCE248C151F8480E3U,
    0xD06333DAEF2B2594U, 0xD2A81D91F12AE45AU, 0xD4F35AABCFEDFA1FU, 0xD744FCCAD69D6AF4U, 0xD99D15C278AFD7B5U,
    0xDBFBB797DAF23755U, 0xDE60F4825E0E9123U, 0xE0CCDEEC2A94E111U, 0xE33F8972BE8A5A51U, 0xE5B906E77C8348A8U,
    0xE8396A503C4BDC68U, 0xEAC0C6E7DD24392EU, 0xED4F301ED9942B84U, 0xEFE4B99BDCDAF5CBU, 0xF281773C59FFB139U,
    0xF5257D152486CC2CU, 0xF7D0DF730AD13BB8U, 0xFA83B2DB722A033AU, 0xFD3E0C0CF486C174U, UINT64_MAX,
};

/* By the six bits after the first: the largest j with edges[j] below the least such mantissa. At most two
 * more edges lie below the greatest one. */
static const uint8_t first_guess[64] = {
    0,  1,  2,  4,  5,  6,  8,  9,  10, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 24, 25, 26,
    27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 43, 44, 45, 46, 47,
    48, 49, 50, 50, 51, 52, 53, 54, 54, 55, 56, 57, 58, 58, 59, 60, 61, 61, 62, 63,
};

int hist_index(uint64_t value)
{
    if (value == 0) return HIST_INDEX_ZERO;
    int exponent = 63 - __builtin_clzll(value);
    uint64_t mantissa = value << (63 - exponent);
    if (mantissa == edges[0]) return exponent * PER_OCTAVE - 1; /* a power of two closes the bucket below */
    int j = first_guess[mantissa >> 57 & 63];
    j += mantissa > edges[j + 1];
    j += mantissa > edges[j + 1];
    return exponent * PER_OCTAVE + j;
}

/* The largest integer in bucket `index` or any below it. */
static uint64_t last_integer(int index)
{
    int next = index + 1; /* the closing edge is 2^(next / 64) */
    if (next < 0) return 0;
    if (next >= 64 * PER_OCTAVE) return UINT64_MAX;
    return edges[next % PER_OCTAVE] >> (63 - next / PER_OCTAVE);
}

void hist_release(struct hist *h)
{
    mem_free(h->counts);
    *h = (struct hist)HIST_INIT;
}

/* Make the array cover buckets first..last. Grows with half an octave to spare on the growing side. */
static tare_status cover(struct hist *h, int first, int last, tare_error *err)
{
    if (h->n_counts) {
        int have_last = h->first + (int)h->n_counts - 1;
        if (first >= h->first && last <= have_last) return TARE_OK;
        first = first < h->first ? first - PER_OCTAVE / 2 : h->first;
        last = last > have_last ? last + PER_OCTAVE / 2 : have_last;
    }
    if (first < HIST_INDEX_MIN) first = HIST_INDEX_MIN;
    if (last > HIST_INDEX_MAX) last = HIST_INDEX_MAX;
    size_t n = (size_t)(last - first + 1);
    uint64_t *counts = mem_new(n, sizeof *counts);
    if (!counts) return error_nomem(err, "a histogram of %zu buckets", n);
    if (h->n_counts) memcpy(counts + (h->first - first), h->counts, h->n_counts * sizeof *counts);
    mem_free(h->counts);
    h->counts = counts;
    h->n_counts = (uint32_t)n;
    h->first = first;
    return TARE_OK;
}

static uint64_t add_capped(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t times_capped(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Memory is taken before anything changes, so that a failure leaves all as it was. Counts stop at their
 * largest value instead of wrapping. One unsigned comparison covers both ends of the array. */
tare_status hist_record_n(struct hist *h, uint64_t value, uint64_t n, tare_error *err)
{
    if (n == 0) return TARE_OK;
    uint64_t *bucket = &h->zeros;
    if (value) {
        int index = hist_index(value);
        if ((uint32_t)(index - h->first) >= h->n_counts) {
            tare_status s = cover(h, index, index, err);
            if (s < 0) return s;
        }
        bucket = &h->counts[index - h->first];
    }
    *bucket = add_capped(*bucket, n);
    h->count = add_capped(h->count, n);
    h->sum = add_capped(h->sum, times_capped(value, n));
    if (value < h->min) h->min = value;
    if (value > h->max) h->max = value;
    return TARE_OK;
}

tare_status hist_record(struct hist *h, uint64_t value, tare_error *err)
{
    return hist_record_n(h, value, 1, err);
}

/* The value of a bucket whose relative error is the same at both its ends: the harmonic mean of its least
 * and greatest integer. Exact where a bucket holds one integer, as all up to 92 do. */
static double representative(int index)
{
    double low = (double)(last_integer(index - 1) + 1), high = (double)last_integer(index);
    return 2 * low / (low + high) * high;
}

/* Counted as doubles above 2^53 the rank may come out too high: it is held to the count. The bucket's
 * value is held to min and max, which are exact, so that no quantile lies outside of what was recorded. */
double hist_quantile(const struct hist *h, double q)
{
    if (h->count == 0 || isnan(q)) return NAN;
    if (q <= 0) return (double)h->min;
    if (q >= 1) return (double)h->max;
    double wanted = ceil(q * (double)h->count);
    uint64_t rank = wanted >= (double)h->count ? h->count : (uint64_t)fmax(wanted, 1);
    if (rank <= h->zeros) return 0;
    uint64_t seen = h->zeros;
    int last = HIST_INDEX_ZERO;
    for (uint32_t i = 0; i < h->n_counts; i++) {
        if (h->counts[i] == 0) continue;
        last = h->first + (int)i;
        seen = add_capped(seen, h->counts[i]);
        if (seen >= rank) break;
    }
    return fmin(fmax(representative(last), (double)h->min), (double)h->max);
}

tare_status hist_merge(struct hist *h, const struct hist *from, tare_error *err)
{
    if (from->n_counts) {
        tare_status s = cover(h, from->first, from->first + (int)from->n_counts - 1, err);
        if (s < 0) return s;
    }
    for (uint32_t i = 0; i < from->n_counts; i++) {
        uint64_t *bucket = &h->counts[from->first + (int)i - h->first];
        *bucket = add_capped(*bucket, from->counts[i]);
    }
    h->zeros = add_capped(h->zeros, from->zeros);
    h->count = add_capped(h->count, from->count);
    h->sum = add_capped(h->sum, from->sum);
    if (from->min < h->min) h->min = from->min;
    if (from->max > h->max) h->max = from->max;
    return TARE_OK;
}

/* The shift of a negative index must round down: bucket -1 is a bucket below 0 on every scale. */
uint64_t *hist_coarse(const struct hist *h, unsigned scale, int *first, size_t *n)
{
    if (!h->n_counts) return NULL;
    int step = 1 << (HIST_SCALE - scale), last = h->first + (int)h->n_counts - 1;
    int from = (h->first + step) / step - 1;
    size_t many = (size_t)((last + step) / step - 1 - from + 1);
    uint64_t *counts = mem_new(many, sizeof *counts);
    if (!counts) return NULL;
    for (uint32_t i = 0; i < h->n_counts; i++) {
        uint64_t *to = &counts[(h->first + (int)i + step) / step - 1 - from];
        *to = add_capped(*to, h->counts[i]);
    }
    *first = from;
    *n = many;
    return counts;
}

/* ---- from elsewhere ---- */

static const char *bounds_fault(const struct hist *h, int low, int high)
{
    if (h->count == 0) return h->sum || h->min <= h->max ? "sum, min or max of nothing" : NULL;
    if (h->min > h->max) return "min is above max";
    if (hist_index(h->min) != low) return "min is not in the lowest bucket that counts something";
    if (hist_index(h->max) != high) return "max is not in the highest bucket that counts something";
    if (h->sum < add_capped(times_capped(h->min, h->count - 1), h->max))
        return "the sum is below what the counts and min make";
    if (h->sum > add_capped(times_capped(h->max, h->count - 1), h->min))
        return "the sum is above what the counts and max make";
    return NULL;
}

const char *hist_fault(struct hist *h)
{
    int low = HIST_INDEX_ZERO, high = HIST_INDEX_ZERO;
    bool any = h->zeros > 0;
    uint64_t count = h->zeros;
    if (h->n_counts && (h->first < HIST_INDEX_MIN || h->n_counts > HIST_INDEX_MAX - HIST_INDEX_MIN + 1 ||
                        h->first > HIST_INDEX_MAX + 1 - (int)h->n_counts))
        return "buckets outside of 1 to 2^64";
    for (uint32_t i = 0; i < h->n_counts; i++) {
        if (h->counts[i] == 0) continue;
        high = h->first + (int)i;
        if (!any) low = high;
        any = true;
        if (__builtin_add_overflow(count, h->counts[i], &count) || count > INT64_MAX)
            return "counts that are too large";
    }
    h->count = count;
    return count > INT64_MAX ? "counts that are too large" : bounds_fault(h, low, high);
}

void hist_encode(const struct hist *h, struct buf *out)
{
    const uint64_t head[] = {HIST_SCALE, h->zeros, h->sum, h->min, h->max};
    int next = HIST_INDEX_MIN;
    if (h->count == 0) return;
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) wire_add_varint(out, head[i]);
    for (uint32_t i = 0; i < h->n_counts; i++) {
        if (h->counts[i] == 0) continue;
        int index = h->first + (int)i;
        wire_add_varint(out, (uint64_t)(index - next));
        wire_add_varint(out, h->counts[i]);
        next = index + 1;
    }
}

/* The pairs of one that is empty as yet. The array is made once, from the buckets of min and max. */
static tare_status decode_pairs(struct hist *h, struct wire *w, tare_error *err)
{
    uint64_t gap, count;
    const char *why = NULL;
    int at = HIST_INDEX_MIN, rc;
    while ((rc = wire_packed(w, WIRE_VARINT, &gap, &why)) == 1) {
        if (gap > (uint64_t)(HIST_INDEX_MAX - at)) return error_set(err, TARE_FORMAT, "a bucket beyond 2^64");
        at += (int)gap;
        if (wire_packed(w, WIRE_VARINT, &count, &why) != 1 || count == 0)
            return error_set(err, TARE_FORMAT, "%s", why ? why : "a bucket without its count");
        if (at < h->first || at >= h->first + (int)h->n_counts)
            return error_set(err, TARE_FORMAT, "a bucket outside of min and max");
        h->counts[at++ - h->first] = count;
    }
    return rc < 0 ? error_set(err, TARE_FORMAT, "%s", why) : TARE_OK;
}

static tare_status decode_one(struct hist *h, struct wire *w, tare_error *err)
{
    uint64_t scale;
    const char *why = NULL;
    uint64_t *const head[] = {&scale, &h->zeros, &h->sum, &h->min, &h->max};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        if (wire_packed(w, WIRE_VARINT, head[i], &why) != 1)
            return error_set(err, TARE_FORMAT, "%s", why ? why : "the head is cut short");
    if (scale != HIST_SCALE)
        return error_set(err, TARE_FORMAT, "scale %llu, not %d", (unsigned long long)scale, HIST_SCALE);
    if (h->min > h->max) return error_set(err, TARE_FORMAT, "min is above max");
    if (h->max) {
        tare_status s = cover(h, h->min ? hist_index(h->min) : HIST_INDEX_MIN, hist_index(h->max), err);
        if (s < 0) return s;
    }
    tare_status s = decode_pairs(h, w, err);
    if (s < 0) return s;
    const char *fault = hist_fault(h);
    return fault ? error_set(err, TARE_FORMAT, "%s", fault) : TARE_OK;
}

tare_status hist_decode(struct hist *h, const void *bytes, size_t n, tare_error *err)
{
    struct wire w = {bytes, (const uint8_t *)bytes + n};
    struct hist one = HIST_INIT;
    if (n == 0) return TARE_OK;
    tare_status s = decode_one(&one, &w, err);
    if (s == TARE_OK) s = hist_merge(h, &one, err);
    hist_release(&one);
    return s;
}
