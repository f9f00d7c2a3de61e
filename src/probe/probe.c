/* SPDX-License-Identifier: MIT
 * probe.c - the table of probes (a row of PROBE_KINDS in probe.h each), and a set of them sampled together. */
#include "probe/probe.h"

#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "probe/procfs.h"

enum { SELDOM_NS = 450000000 };

const struct probe_ops *const probe_table[] = {
#define X(name) &probe_##name,
    PROBE_KINDS(X)
#undef X
        NULL,
};

const struct probe_ops *probe_find(const char *name)
{
    for (size_t i = 0; probe_table[i]; i++)
        if (strcmp(probe_table[i]->name, name) == 0) return probe_table[i];
    return NULL;
}

/* ---- opening ---- */

/* Each line of what a probe cannot see, with the probe's name before it. */
static void tell_blind(struct buf *all, const char *name, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        buf_printf(all, "%s: %.*s\n", name, (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static void close_one(struct probe *p)
{
    p->ops->close(p);
    buf_release(&p->blind);
    buf_release(&p->told);
    mem_free(p);
}

/* What a probe has to say, now or later. */
static void take_words(struct probes *to, struct probe *p)
{
    tell_blind(&to->blind, p->ops->name, p->blind.data);
    buf_add(&to->told, p->told.data, p->told.len);
    buf_clear(&p->blind);
    buf_clear(&p->told);
}

/* A probe that sees nothing here is an error only if it was asked for by name. */
static tare_status open_one(struct probes *out, const struct probe_ops *ops, const struct probe_place *at,
                            bool asked, tare_error *err)
{
    tare_error own = TARE_ERROR_INIT;
    struct probe *p = mem_new(1, ops->size);
    if (!p) return error_set(err, TARE_NOMEM, "out of memory for a probe");
    p->ops = ops;
    p->asked = asked;
    p->news = -1;
    p->blind = p->told = (struct buf)BUF_INIT;
    tare_status s = ops->open(p, at, &own);
    if (s == TARE_OK) s = vec_push(&out->items, p, &own);
    if (s != TARE_OK) close_one(p);
    if (s != TARE_OK && (s != TARE_UNSUPPORTED || asked))
        return error_set(err, s, "probe %s: %s", ops->name, own.text);
    if (s == TARE_OK)
        take_words(out, p);
    else
        tell_blind(&out->blind, ops->name, own.text);
    s = buf_status(&out->told, err);
    return s == TARE_OK ? buf_status(&out->blind, err) : s;
}

static tare_status refuse_name(const char *name, tare_error *err)
{
    struct buf all = BUF_INIT;
    for (size_t i = 0; probe_table[i]; i++) buf_printf(&all, "%s%s", i ? ", " : "", probe_table[i]->name);
    tare_status s = error_set(err, TARE_INVALID, "there is no probe \"%s\": choose from %s", name, all.data);
    buf_release(&all);
    return s;
}

static bool is_open(const struct probes *p, const struct probe_ops *ops)
{
    for (size_t i = 0; i < p->items.n; i++)
        if (p->items.items[i]->ops == ops) return true;
    return false;
}

tare_status probes_open(struct probes *out, const char *const *names, size_t n, const struct probe_place *at,
                        tare_error *err)
{
    tare_status s = TARE_OK;
    *out = (struct probes){VEC_INIT, SERIES_SET_INIT, SAMPLE_INIT, .blind = BUF_INIT, .told = BUF_INIT};
    for (size_t i = 0; s == TARE_OK && !names && probe_table[i]; i++) /* no program: none is missing */
        if (at->program || probe_table[i] != &probe_process)
            s = open_one(out, probe_table[i], at, false, err);
    for (size_t i = 0; s == TARE_OK && names && i < n; i++) {
        const struct probe_ops *ops = probe_find(names[i]);
        if (!ops)
            s = refuse_name(names[i], err);
        else if (!is_open(out, ops))
            s = open_one(out, ops, at, true, err);
    }
    if (s != TARE_OK) probes_close(out);
    return s;
}

/* ---- sampling ---- */

static tare_status set_back(struct probe_put *p, size_t series, double *value)
{
    static const struct probe_reading none = {0, 0};
    while (p->before->items.n <= series) {
        tare_status s = vec_push(&p->before->items, none, p->err);
        if (s != TARE_OK) return s;
    }
    struct probe_reading *b = &p->before->items.items[series], now = {*value, p->read_ns};
    if (b->ns && p->to->at_ns > b->ns && now.ns > p->to->at_ns)
        *value =
            b->value + (now.value - b->value) * (double)(p->to->at_ns - b->ns) / (double)(now.ns - b->ns);
    *b = now;
    return TARE_OK;
}

void probe_put(struct probe_put *p, enum metric_id m, const char *label, double value)
{
    size_t at;
    if (p->status != TARE_OK) return;
    p->status = series_find(p->set, m, label, &at, p->err);
    if (p->status == TARE_OK && p->read_ns && metric_table[m].kind == METRIC_COUNTER &&
        strcmp(metric_table[m].unit, "s") == 0)
        p->status = set_back(p, at, &value);
    if (p->status == TARE_OK) p->status = sample_set(p->to, at, value, p->err);
}

bool probe_turn(struct probe_turn *t, bool thorough, uint64_t now_ns)
{
    if (!thorough && t->last_ns && now_ns - t->last_ns < SELDOM_NS) return false;
    t->last_ns = now_ns;
    return true;
}

void probe_put_pressure(struct probe_put *p, const int fd[PROBE_PRESSURES],
                        const enum metric_id m[PROBE_PRESSURES])
{
    char text[256];
    uint64_t us;
    for (int i = 0; i < PROBE_PRESSURES; i++) {
        if (fd[i] < 0 || procfs_line(fd[i], text, sizeof text) <= 0 || !procfs_pressure_us(text, &us))
            continue;
        p->read_ns = clock_raw_ns();
        probe_put(p, m[i], "", (double)us / 1e6);
    }
    p->read_ns = 0;
}

static void sample_one(struct probes *p, struct probe *probe, struct probe_put *put)
{
    probe->thorough = p->thorough;
    uint64_t begun = clock_raw_ns();
    probe->ops->sample(probe, put);
    uint64_t took = clock_raw_ns() - begun;
    probe->samples++;
    probe->ns += took;
    if (took > probe->ns_max) probe->ns_max = took;
    take_words(p, probe);
    if (put->status != TARE_OK) error_wrap(put->err, "probe %s", probe->ops->name);
}

static void drop_gone(struct probes *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->items.n; i++) {
        struct probe *probe = p->items.items[i];
        if (probe->gone)
            close_one(probe);
        else
            p->items.items[kept++] = probe;
    }
    p->items.n = kept;
}

int probes_news(const struct probes *p)
{
    for (size_t i = 0; i < p->items.n; i++)
        if (p->items.items[i]->news >= 0) return p->items.items[i]->news;
    return -1;
}

tare_status probes_sample(struct probes *p, tare_error *err)
{
    uint64_t begun = clock_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    struct probe_put put = {&p->set, &p->now, err, TARE_OK, &p->before, 0};
    sample_clear(&p->now);
    p->now.at_ns = clock_raw_ns();
    for (size_t i = 0; i < p->items.n && put.status == TARE_OK; i++) sample_one(p, p->items.items[i], &put);
    drop_gone(p);
    p->cpu_s += (double)(clock_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begun) / 1e9;
    probe_put(&put, METRIC_SELF_CPU, "", p->cpu_s);
    return put.status;
}

void probes_close(struct probes *p)
{
    for (size_t i = 0; i < p->items.n; i++) close_one(p->items.items[i]);
    vec_release(&p->items);
    series_set_release(&p->set);
    sample_release(&p->now);
    vec_release(&p->before.items);
    buf_release(&p->blind);
    buf_release(&p->told);
}
