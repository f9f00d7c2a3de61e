/* SPDX-License-Identifier: MIT
 * subject.c - what all kinds of subject share, and the simplest of them, which only spins. */
#include "subject/subject.h"

#include <string.h>

#include "core/mem.h"

int64_t case_dim(const struct case_params *p, const char *name)
{
    for (size_t i = 0; i < p->n_dims; i++)
        if (strcmp(p->dims[i].name, name) == 0) return p->dims[i].value;
    return 0;
}

void case_say_params(const struct case_params *p, const struct case_record *to)
{
    struct arena *a = &to->run->arena;
    if (p->batch) run_map_int(a, to->params, "batch", p->batch);
    if (p->seq) run_map_int(a, to->params, "seq", p->seq);
    if (p->rate > 0) run_map_real(a, to->params, "rate", p->rate);
    if (p->concurrency) run_map_int(a, to->params, "concurrency", p->concurrency);
    for (size_t i = 0; i < p->n_dims; i++) run_map_int(a, to->params, p->dims[i].name, p->dims[i].value);
}

void subject_close(struct subject *s)
{
    if (s) s->ops->close(s);
}

/* ---- spin: its table is allocated for each instance, so that a shifted heap shifts it too ---- */

enum { TABLE = 4096 }; /* words: as much as a first-level cache holds */

struct spin_subject {
    struct subject base;
    uint64_t steps;
};

struct spin_instance {
    struct instance base;
    uint64_t state;
    uint64_t table[TABLE];
};

static tare_status spin_describe(struct subject *s, struct run *run, tare_error *err)
{
    (void)s;
    (void)err;
    run->subject.type = "spin";
    run->subject.name = "spin";
    return TARE_OK;
}

static tare_status spin_prepare(struct subject *s, const struct case_params *p, const struct case_record *to,
                                struct instance **out, tare_error *err)
{
    (void)p;
    (void)to;
    struct spin_instance *i = mem_new(1, sizeof *i);
    if (!i) return error_nomem(err, "a table");
    i->base.subject = s;
    i->state = UINT64_C(88172645463325252);
    *out = &i->base;
    return TARE_OK;
}

static tare_status spin_run(struct instance *base, unsigned worker, struct subject_cost *cost,
                            tare_error *err)
{
    struct spin_instance *i = (struct spin_instance *)base;
    uint64_t n = ((struct spin_subject *)base->subject)->steps, x = i->state;
    (void)worker;
    (void)err;
    for (uint64_t k = 0; k < n; k++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x += i->table[x % TABLE]++; /* the next step needs it: nothing can be left out or done at once */
        x |= 1;
    }
    i->state = x;
    cost->known = false;
    return TARE_OK;
}

static void spin_finish(struct instance *i)
{
    mem_free(i);
}

static void spin_close(struct subject *s)
{
    mem_free(s);
}

static const struct subject_ops spin_ops = {.type = "spin",
                                            .describe = spin_describe,
                                            .prepare = spin_prepare,
                                            .run = spin_run,
                                            .finish = spin_finish,
                                            .close = spin_close};

tare_status subject_open_spin(struct subject **out, uint64_t steps, tare_error *err)
{
    struct spin_subject *s = mem_new(1, sizeof *s);
    if (!s) return error_nomem(err, "a subject");
    s->base.ops = &spin_ops;
    s->steps = steps;
    *out = &s->base;
    return TARE_OK;
}
