/* SPDX-License-Identifier: MIT
 * slo.c - see slo.h. */
#include "bench/slo.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/stats.h"
#include "core/unit.h"

static const char *const time_words[] = {
#define X(name, word, help) word,
    REQUEST_TIME_MAP(X)
#undef X
};

const char *slo_word(enum request_time what)
{
    return time_words[what];
}

static double since(uint64_t end, uint64_t start)
{
    return end > start ? (double)(end - start) : 0;
}

double request_time(const struct load_outcome *o, enum request_time what)
{
    switch (what) {
    case REQUEST_LATENCY: return since(o->last_content ? o->last_content : o->end, o->planned);
    case REQUEST_TTFT: return o->first_content ? since(o->first_content, o->planned) : NAN;
    case REQUEST_TTFT_ANSWER: return o->first_answer ? since(o->first_answer, o->planned) : NAN;
    case REQUEST_GAP_MAX: return o->events > 1 ? (double)o->gap_max : NAN;
    case REQUEST_TPOT:
        if (o->events < 2 || o->tokens <= o->first_tokens) return NAN;
        return since(o->last_content, o->first_content) / (o->tokens - o->first_tokens);
    default: return NAN;
    }
}

/* ---- limits ---- */

static tare_status refuse(const char *at, const char *why, tare_error *err)
{
    return error_set(err, TARE_INVALID, "--slo: at '%.40s': %s", at, why);
}

/* "ttft<=500ms" up to a comma or the end; moves *at behind it. */
static tare_status read_limit(struct slo *s, const char **at, tare_error *err)
{
    size_t n_word = strspn(*at, "abcdefghijklmnopqrstuvwxyz_"), what = 0;
    char limit[32];
    struct duration d;
    while (what < REQUEST_TIMES &&
           (strlen(time_words[what]) != n_word || strncmp(*at, time_words[what], n_word) != 0))
        what++;
    if (what == REQUEST_TIMES)
        return refuse(*at, "latency, ttft, ttft_answer, gap_max or tpot was expected", err);
    const char *after = *at + n_word + strspn(*at + n_word, " ");
    if (strncmp(after, "<=", 2) != 0) return refuse(after, "<= was expected", err);
    after += 2;
    after += strspn(after, " ");
    size_t n = strcspn(after, ", ");
    snprintf(limit, sizeof limit, "%.*s", n < sizeof limit ? (int)n : (int)sizeof limit - 1, after);
    if (n >= sizeof limit || unit_parse_duration(limit, &d, NULL) < 0 || d.ns <= 0)
        return refuse(after, "a time above 0 was expected, such as 500ms", err);
    if (s->limit[what] > 0) return refuse(*at, "given twice", err);
    s->limit[what] = (double)d.ns;
    size_t used = strlen(s->text);
    snprintf(s->text + used, sizeof s->text - used, "%s%s<=%s", used ? "," : "", time_words[what], limit);
    *at = after + n + strspn(after + n, " ");
    return TARE_OK;
}

tare_status slo_parse(struct slo *out, const char *text, tare_error *err)
{
    struct slo s = {.text = ""};
    for (const char *at = text;; at++) {
        at += strspn(at, " ");
        tare_status status = read_limit(&s, &at, err);
        if (status < 0) return status;
        if (!*at) break;
        if (*at != ',') return refuse(at, "a comma was expected", err);
    }
    *out = s;
    return TARE_OK;
}

bool slo_missed(const struct slo *s, enum request_time what, const struct load_outcome *o)
{
    if (!(s->limit[what] > 0)) return false;
    if (!load_is_answered(o)) return true;
    double took = request_time(o, what);
    /* One token has no gap, and no time per further token: nothing was late. Without a first it is. */
    if (isnan(took)) return what != REQUEST_GAP_MAX && what != REQUEST_TPOT;
    return took > s->limit[what];
}

bool slo_kept(const struct slo *s, const struct load_outcome *o)
{
    for (unsigned i = 0; i < REQUEST_TIMES; i++)
        if (slo_missed(s, (enum request_time)i, o)) return false;
    return load_is_answered(o);
}

/* ---- shares ---- */

/* The share p at which k or more of n come with this chance. */
static double share_where(double k, double n, double chance)
{
    double lo = 0, hi = 1;
    for (int i = 0; i < 60; i++) {
        double p = (lo + hi) / 2;
        if (stats_binomial_at_least(k, n, p) < chance) {
            lo = p;
        } else {
            hi = p;
        }
    }
    return (lo + hi) / 2;
}

struct interval share_interval(uint64_t k, uint64_t n)
{
    const double side = 0.025;
    if (!n) return (struct interval){NAN, NAN, NAN};
    return (struct interval){
        .value = (double)k / (double)n,
        .lo = k ? share_where((double)k, (double)n, side) : 0,
        .hi = k < n ? share_where((double)k + 1, (double)n, 1 - side) : 1,
    };
}
