/* SPDX-License-Identifier: MIT
 * told.h - an answer that a search was told, as text, for the next search to be told again: the number of each knob's
 * value, the outcome, the cost: "0.1.0.3 0 12345.6". Pure. */
#ifndef ANALYZE_TUNE_TOLD_H
#define ANALYZE_TUNE_TOLD_H

#include "analyze/tune/search.h"

enum { TOLD_TEXT_MAX = TUNE_KNOBS_MAX * 4 + 48 };

void told_write(const struct tune_space *s, const struct tune_point *at, const struct tune_answer *a,
                char text[TOLD_TEXT_MAX]);
/* False: it is none, or none of this space. */
bool told_read(const struct tune_space *s, const char *text, struct tune_point *at, struct tune_answer *out);

#endif
