/* SPDX-License-Identifier: MIT
 * subject.c - what all kinds of subject share. */
#include "subject/subject.h"

#include <string.h>

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
    for (size_t i = 0; i < p->n_dims; i++) run_map_int(a, to->params, p->dims[i].name, p->dims[i].value);
}

tare_status case_say_calls(struct run *run, const struct run_case *c, uint64_t calls, tare_error *err)
{
    struct run_value v = {.kind = RUN_INT, .i = (int64_t)calls};
    if (calls > 1) run_map_set_in(&run->arena, &run->config, "calls_per_sample", c->name, v);
    return run->arena.failed ? error_set(err, TARE_NOMEM, "out of memory for a case") : TARE_OK;
}

void subject_close(struct subject *s)
{
    if (s) s->ops->close(s);
}
