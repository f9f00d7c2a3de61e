/* SPDX-License-Identifier: MIT
 * probe.c - the table of probes, and a set of them sampled together. To add one: a row here, a file probe_<name>.c. */
#include "probe/probe.h"

#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "probe/probe_file.h"
#include "probe/probe_kinds.h"

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

/* A probe that sees nothing here is an error only if it was asked for by name. */
static tare_status open_one(struct probes *out, const struct probe_ops *ops, const struct probe_place *at,
                            bool asked, tare_error *err)
{
    struct buf blind = BUF_INIT;
    struct probe *p = NULL;
    tare_error own = TARE_ERROR_INIT;
    tare_status s = ops->open(&p, at, &blind, &own);
    if (s == TARE_OK) {
        p->ops = ops;
        s = vec_push(&out->items, p, err);
        if (s != TARE_OK) ops->close(p);
        tell_blind(&out->blind, ops->name, blind.data);
    } else if (s == TARE_UNSUPPORTED && !asked) {
        tell_blind(&out->blind, ops->name, own.text);
        s = TARE_OK;
    } else {
        s = error_set(err, s, "probe %s: %s", ops->name, own.text);
    }
    buf_release(&blind);
    return s == TARE_OK ? buf_status(&out->blind, err) : s;
}

static tare_status unknown(const char *name, tare_error *err)
{
    struct buf all = BUF_INIT;
    for (size_t i = 0; probe_table[i]; i++) buf_printf(&all, "%s%s", i ? ", " : "", probe_table[i]->name);
    tare_status s = error_set(err, TARE_INVALID, "there is no probe \"%s\": choose from %s", name, all.data);
    buf_release(&all);
    return s;
}

tare_status probes_open(struct probes *out, const char *const *names, size_t n, const struct probe_place *at,
                        tare_error *err)
{
    tare_status s = TARE_OK;
    *out = (struct probes){VEC_INIT, SERIES_SET_INIT, SAMPLE_INIT, .blind = BUF_INIT};
    for (size_t i = 0; s == TARE_OK && !names && probe_table[i]; i++) /* no program: none is missing */
        if (at->program || probe_table[i] != &probe_process)
            s = open_one(out, probe_table[i], at, false, err);
    for (size_t i = 0; s == TARE_OK && names && i < n; i++) {
        const struct probe_ops *ops = probe_find(names[i]);
        s = ops ? probes_get(out, names[i]) ? TARE_OK : open_one(out, ops, at, true, err)
                : unknown(names[i], err);
    }
    if (s != TARE_OK) probes_close(out);
    return s;
}

const struct probe *probes_get(const struct probes *p, const char *name)
{
    for (size_t i = 0; i < p->items.n; i++)
        if (strcmp(p->items.items[i]->ops->name, name) == 0) return p->items.items[i];
    return NULL;
}

/* ---- sampling ---- */

static double thread_cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static tare_status sample_one(struct probes *p, struct probe *probe, tare_error *err)
{
    probe->thorough = p->thorough;
    uint64_t begun = clock_raw_ns();
    tare_status s = probe->ops->sample(probe, &p->set, &p->now, err);
    uint64_t took = clock_raw_ns() - begun;
    probe->samples++;
    probe->ns += took;
    if (took > probe->ns_max) probe->ns_max = took;
    if (s != TARE_OK) error_wrap(err, "probe %s", probe->ops->name);
    return s;
}

tare_status probes_sample(struct probes *p, tare_error *err)
{
    double begun_s = thread_cpu_s();
    tare_status s = TARE_OK;
    sample_clear(&p->now);
    p->now.at_ns = clock_raw_ns();
    for (size_t i = 0; i < p->items.n && s == TARE_OK; i++) s = sample_one(p, p->items.items[i], err);
    p->cpu_s += thread_cpu_s() - begun_s;
    struct probe_put put = {&p->set, &p->now, err, s};
    probe_put(&put, METRIC_SELF_CPU, "", p->cpu_s);
    return put.status;
}

void probes_close(struct probes *p)
{
    for (size_t i = 0; i < p->items.n; i++) p->items.items[i]->ops->close(p->items.items[i]);
    vec_release(&p->items);
    series_set_release(&p->set);
    sample_release(&p->now);
    buf_release(&p->blind);
}
