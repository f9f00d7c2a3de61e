/* SPDX-License-Identifier: MIT
 * told.c - see told.h. */
#include "analyze/tune/told.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void told_write(const struct tune_space *s, const struct tune_point *at, const struct tune_answer *a,
                char text[TOLD_TEXT_MAX])
{
    size_t n = 0;
    for (size_t k = 0; k < s->n; k++)
        n += (size_t)snprintf(text + n, TOLD_TEXT_MAX - n, "%s%u", k ? "." : "", at->at[k]);
    snprintf(text + n, TOLD_TEXT_MAX - n, " %d %.17g", (int)a->outcome, a->cost);
}

/* Digits alone: strtoul() would also take blanks and signs. */
static bool read_count(const char **text, unsigned long below, char end, unsigned long *out)
{
    const char *p = *text;
    *out = 0;
    while (*p >= '0' && *p <= '9' && *out < 1000) *out = *out * 10 + (unsigned long)(*p++ - '0');
    bool good = p > *text && *out < below && *p == end;
    *text = p + 1;
    return good;
}

bool told_read(const struct tune_space *s, const char *text, struct tune_point *at, struct tune_answer *out)
{
    unsigned long value;
    memset(at, 0, sizeof *at);
    for (size_t k = 0; k < s->n; k++) {
        if (!read_count(&text, s->knobs[k].n, k + 1 < s->n ? '.' : ' ', &value)) return false;
        at->at[k] = (uint8_t)value;
    }
    if (!read_count(&text, TUNE_FAILED + 1, ' ', &value)) return false;
    char *end = NULL;
    *out = (struct tune_answer){.outcome = (enum tune_outcome)value, .cost = strtod(text, &end)};
    bool measured = out->outcome != TUNE_FAILED;
    return end != text && *end == 0 && isfinite(out->cost) &&
           (out->cost > 0 || (!measured && out->cost == 0));
}
