/* SPDX-License-Identifier: MIT
 * gpu_sort.c - sorting and finding for arrays that are nearly in order, as records of several streams and threads are:
 * each comes in order, and they are mixed only within a second or so. The C library's qsort wants as much memory again
 * as there are items; this one wants as much as is out of place. */
#include <string.h>

#include "analyze/gpu/gpu_work.h"
#include "core/mem.h"

enum { SMALL = 16, ITEM_MOST = 64 };

struct sorting {
    size_t size;
    gpu_compare_fn *compare;
    char *spare;
    size_t spare_bytes;
};

static void insert_each(const struct sorting *s, char *a, size_t n)
{
    char item[ITEM_MOST];
    for (size_t i = 1; i < n; i++) {
        size_t at = i;
        if (s->compare(a + (i - 1) * s->size, a + i * s->size) <= 0) continue;
        memcpy(item, a + i * s->size, s->size);
        while (at && s->compare(a + (at - 1) * s->size, item) > 0) at--;
        memmove(a + (at + 1) * s->size, a + at * s->size, (i - at) * s->size);
        memcpy(a + at * s->size, item, s->size);
    }
}

/* How many of a's n items are not above `item` (or, `below`: under it). */
static size_t count_under(const struct sorting *s, const char *a, size_t n, const char *item, bool below)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = s->compare(a + middle * s->size, item);
        if (below ? order < 0 : order <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Two sorted halves become one. Only what lies between the first of the second and the last of the first half moves. */
static bool merge_halves(struct sorting *s, char *a, size_t first, size_t n)
{
    const size_t z = s->size;
    size_t from = count_under(s, a, first, a + first * z, false);
    size_t to = first + count_under(s, a + first * z, n - first, a + (first - 1) * z, true);
    size_t bytes = (first - from) * z;
    if (bytes > s->spare_bytes) {
        char *more = mem_resize(s->spare, bytes, 1);
        if (!more) return false;
        s->spare = more;
        s->spare_bytes = bytes;
    }
    if (!s->spare) return true; /* nothing out of order */
    memcpy(s->spare, a + from * z, bytes);
    const char *x = s->spare, *x_end = x + bytes, *y = a + first * z, *y_end = a + to * z;
    char *out = a + from * z;
    while (x < x_end && y < y_end) {
        const char **least = s->compare(x, y) <= 0 ? &x : &y;
        memcpy(out, *least, z);
        *least += z;
        out += z;
    }
    memcpy(out, x, (size_t)(x_end - x)); /* what is left of the second half is in its place */
    return true;
}

static bool sort_part(struct sorting *s, char *a, size_t n)
{
    size_t first = n / 2;
    if (n <= SMALL) {
        insert_each(s, a, n);
        return true;
    }
    if (!sort_part(s, a, first) || !sort_part(s, a + first * s->size, n - first)) return false;
    if (s->compare(a + (first - 1) * s->size, a + first * s->size) <= 0) return true;
    return merge_halves(s, a, first, n);
}

tare_status gpu_sort(void *items, size_t n, size_t size, gpu_compare_fn *compare, tare_error *err)
{
    struct sorting s = {.size = size, .compare = compare};
    bool done = !n || sort_part(&s, items, n);
    mem_free(s.spare);
    return done ? TARE_OK : error_nomem(err, "%zu items to sort", n);
}

/* Steps away from where the last one was, twice as far each time, then halves what lies between. */
size_t gpu_find(const struct gpu_sorted *in, const void *wanted, size_t near)
{
    const char *a = in->items;
    const size_t n = in->n, size = in->size;
    gpu_compare_fn *const compare = in->compare;
    size_t low = 0, high = n, step = 1;
    if (near < n && compare(a + near * size, wanted) < 0) {
        low = near + 1;
        for (; step < n - near && compare(a + (near + step) * size, wanted) < 0; step *= 2)
            low = near + step + 1;
        if (step < n - near) high = near + step;
    } else if (near < n) {
        high = near;
        for (; step <= near && compare(a + (near - step) * size, wanted) >= 0; step *= 2) high = near - step;
        if (step <= near) low = near - step + 1;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(a + middle * size, wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
