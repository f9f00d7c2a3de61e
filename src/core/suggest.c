/* SPDX-License-Identifier: MIT
 * suggest.c - see suggest.h. */
#include "core/suggest.h"

#include <stdbool.h>
#include <string.h>

#define LONGEST 64 /* longer words are no typing mistakes */

static unsigned min2(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Three rows of the usual table are enough: a swap of neighbours looks two rows up, nothing looks further. */
unsigned suggest_distance(const char *a, size_t na, const char *b, size_t nb)
{
    unsigned rows[3][LONGEST + 1];
    unsigned *two_up = rows[0], *up = rows[1], *now = rows[2];
    if (na > LONGEST || nb > LONGEST) return LONGEST + 1;
    for (size_t j = 0; j <= nb; j++) up[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned d = up[j - 1] + (a[i - 1] != b[j - 1]);
            d = min2(d, min2(up[j], now[j - 1]) + 1);
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) d = min2(d, two_up[j - 2] + 1);
            now[j] = d;
        }
        unsigned *free_row = two_up;
        two_up = up;
        up = now;
        now = free_row;
    }
    return up[nb];
}

void suggest_init(struct suggest *s, const char *word, size_t len)
{
    *s = (struct suggest){.word = word, .len = len, .best = NULL, .distance = LONGEST + 1};
}

void suggest_offer(struct suggest *s, const char *candidate)
{
    size_t len = strlen(candidate);
    bool begins = s->len >= 2 && len > s->len && strncmp(candidate, s->word, s->len) == 0;
    unsigned d = begins ? 1 : suggest_distance(s->word, s->len, candidate, len);
    if (d >= s->distance) return;
    s->distance = d;
    s->best = candidate;
}

const char *suggest_best(const struct suggest *s)
{
    unsigned allowed = 1 + (s->len >= 5) + (s->len >= 8);
    return s->best && s->distance <= allowed && s->distance < s->len ? s->best : NULL;
}

const char *suggest_among(const char *word, const char *const *names, size_t n)
{
    struct suggest near;
    suggest_init(&near, word, strlen(word));
    for (size_t i = 0; i < n; i++) suggest_offer(&near, names[i]);
    return suggest_best(&near);
}
