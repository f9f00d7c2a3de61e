/* SPDX-License-Identifier: MIT
 * compare_limit.c - reads `--fail-on` as people write it: `latency.p95>5%`, `throughput > 3 %`, `memory.peak`. The
 * share is how much worse, whichever way the metric points. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/compare/compare_saved.h"
#include "core/suggest.h"
#include "core/unit.h"

static tare_status unknown_metric(const char *text, const char *word, tare_error *err)
{
    const char *names[64];
    size_t n = 0;
    for (const struct measure *m = measure_table; m->name && n < 64; m++) names[n++] = m->name;
    const char *near = suggest_among(word, names, n);
    return error_set(err, TARE_INVALID, "%.100s: '%s' is not a metric%s%s%s", text, word,
                     near ? "; did you mean " : " (tare bench --csv names them)", near ? near : "",
                     near ? "?" : "");
}

static tare_status read_share(const char *text, const char *at, double *out, tare_error *err)
{
    const char *unit = at;
    double v;
    if (unit_number(&unit, &v))
        return error_set(err, TARE_INVALID, "%.100s: at '%.40s': a share was expected, as in latency.p95>5%%",
                         text, at);
    unit += strspn(unit, " \t");
    if (!unit_apply(UNIT_PERCENT, unit, &v))
        return error_set(
            err, TARE_INVALID,
            "%.100s: at '%.40s': expected %%, the share by which it may be worse; a limit by itself, as in "
            "latency.p95<=100ms, is a --target of tare bench",
            text, unit);
    if (v > 10) return error_set(err, TARE_INVALID, "%.100s: a limit above 1000 %% never fails", text);
    *out = v;
    return TARE_OK;
}

tare_status compare_limit_parse(struct compare_limit *out, const char *text, tare_error *err)
{
    struct compare_limit l = {.share = NAN};
    const char *at = text + strspn(text, " \t");
    size_t n = strcspn(at, " \t><=:");
    if (n == 0 || n >= sizeof l.metric)
        return error_set(err, TARE_INVALID, "%.100s: a metric was expected, as in latency.p95>5%%", text);
    memcpy(l.metric, at, n);
    l.metric[n] = 0;
    const struct measure *m = measure_find(l.metric);
    if (!m) return unknown_metric(text, l.metric, err);
    snprintf(l.metric, sizeof l.metric, "%s", m->name);
    at += n;
    at += strspn(at, " \t");
    if (*at == 0) {
        *out = l;
        return TARE_OK;
    }
    if (*at != '>' && *at != ':')
        return error_set(err, TARE_INVALID,
                         "%.100s: at '%.40s': expected >, as in latency.p95>5%%: worse by more than that",
                         text, at);
    at += at[0] == '>' && at[1] == '=' ? 2 : 1;
    tare_status s = read_share(text, at + strspn(at, " \t"), &l.share, err);
    if (s == TARE_OK) *out = l;
    return s;
}
