/* SPDX-License-Identifier: MIT
 * badge.h - small pictures for other pages (SVG): a word beside its value, and how a number went. No text of a run can
 * be more than text in them. */
#ifndef REPORT_BADGE_H
#define REPORT_BADGE_H

#include <stddef.h>

#include "core/buf.h"

enum badge_tone { BADGE_UNKNOWN, BADGE_GOOD, BADGE_BAD };

void badge_svg(struct buf *out, const char *label, const char *text, enum badge_tone tone);
/* `y` in the order of time; `from`: where what is worse begins, n where nothing is. `about` is read aloud. */
struct badge_line {
    const double *y;
    size_t n, from;
    const char *about;
};
void badge_line_svg(struct buf *out, const struct badge_line *line);

#endif
