/* SPDX-License-Identifier: MIT
 * good_show.c - see good.h: how a subject stands, as small pictures. */
#include <math.h>

#include "core/fmt.h"
#include "history/good.h"
#include "report/badge.h"
#include "report/run/run_report.h"

void good_badge(struct buf *out, const char *subject, const struct good_answer *g)
{
    struct buf text = BUF_INIT;
    enum badge_tone tone = g && g->worse ? BADGE_BAD : BADGE_GOOD;
    if (!g)
        buf_add_str(&text, "unknown");
    else if (isfinite(g->value))
        run_measure_text(&text, g->metric, g->value);
    else
        buf_printf(&text, "%zu cases", g->series);
    if (g && g->worse) {
        buf_add_str(&text, ", ");
        fmt_change(&text, g->ratio);
        buf_add_str(&text, " worse");
    }
    out->failed = out->failed || text.failed;
    if (!text.failed) badge_svg(out, subject, text.data, g ? tone : BADGE_UNKNOWN);
    buf_release(&text);
}

/* The first case that got worse, or the first there is; *from: where that begins. */
static const struct trend_series *shown_of(const struct trend_answer *found, size_t *from)
{
    const struct trend_series *shown = NULL;
    for (size_t i = 0; i < found->series.n; i++) {
        const struct trend_series *s = &found->series.items[i];
        double ratio = 1;
        size_t good = good_points(s, found->metric->more_is_better, &ratio);
        if (!s->points.at.n || (shown && good == s->points.at.n)) continue;
        shown = s;
        *from = good;
        if (good < s->points.at.n) break;
    }
    return shown;
}

void good_line(struct buf *out, const struct trend_answer *found)
{
    size_t from = 0;
    const struct trend_series *s = shown_of(found, &from);
    struct badge_line line = {.about = "no runs"};
    if (s) line = (struct badge_line){s->y, s->points.at.n, from, found->metric->help};
    badge_line_svg(out, &line);
}
