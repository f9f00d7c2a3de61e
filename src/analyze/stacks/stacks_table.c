/* SPDX-License-Identifier: MIT
 * stacks_table.c - see stacks_table.h: the sums of each time, joined by function. */
#include "analyze/stacks/stacks_table.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/map.h"
#include "core/vec.h"

struct joining {
    struct stacks_table *out;
    struct map_str by_name;
    VEC(struct stacks_row) rows;
    tare_error *err;
};

static tare_status row_of(struct joining *j, const struct stacks_function *f, struct stacks_row **out)
{
    struct buf key = BUF_INIT;
    uint64_t *place;
    buf_printf(&key, "%s%c%s", f->name, 0, f->file);
    tare_status st = buf_status(&key, j->err);
    if (st == TARE_OK) st = map_str_ref(&j->by_name, key.data, key.len, &place, j->err);
    buf_release(&key);
    if (st == TARE_OK && !*place) {
        struct stacks_row one = {.name = arena_str(&j->out->arena, f->name),
                                 .file = arena_str(&j->out->arena, f->file)};
        if (!one.name || !one.file) return error_nomem(j->err, "functions");
        st = vec_push(&j->rows, one, j->err);
        *place = j->rows.n;
    }
    if (st == TARE_OK) *out = &j->rows.items[*place - 1];
    return st;
}

static void add_time(struct stacks_row *row, const struct stacks_function *f, enum stacks_time time)
{
    if (time == STACKS_CPU) {
        row->own_cpu += f->own_ns;
        row->total_cpu += f->total_ns;
    } else if (time == STACKS_GIL) {
        row->gil += f->own_ns;
    } else {
        row->waits += f->own_ns;
    }
}

static tare_status join(struct joining *j, struct trace *t, enum stacks_time time)
{
    struct stacks_profile p;
    tare_status st = stacks_sum(t, &(struct stacks_wish){.time = time}, &p, j->err);
    for (size_t i = 0; st == TARE_OK && i < p.n; i++) {
        struct stacks_row *row = NULL;
        st = row_of(j, &p.functions[i], &row);
        if (row) add_time(row, &p.functions[i], time);
    }
    j->out->threads = p.threads;
    j->out->looks = p.noted;
    if (time == STACKS_CPU) j->out->cpu_ns = p.sum_ns;
    if (time == STACKS_GIL) j->out->gil_ns = p.sum_ns;
    stacks_profile_release(&p);
    return st;
}

static int by_time(const void *a, const void *b)
{
    const struct stacks_row *x = a, *y = b;
    if (x->own_cpu != y->own_cpu) return x->own_cpu < y->own_cpu ? 1 : -1;
    if (x->total_cpu != y->total_cpu) return x->total_cpu < y->total_cpu ? 1 : -1;
    if (x->waits != y->waits) return x->waits < y->waits ? 1 : -1;
    return strcmp(x->name, y->name);
}

tare_status stacks_table(struct trace *t, struct stacks_table *out, tare_error *err)
{
    static const enum stacks_time times[] = {STACKS_CPU, STACKS_GIL, STACKS_IDLE};
    struct joining j = {.out = out, .by_name = MAP_STR_INIT, .rows = VEC_INIT, .err = err};
    tare_status st = TARE_OK;
    *out = (struct stacks_table){.arena = ARENA_INIT};
    for (size_t i = 0; st == TARE_OK && i < sizeof times / sizeof *times; i++) st = join(&j, t, times[i]);
    if (st == TARE_OK && j.rows.n) {
        qsort(j.rows.items, j.rows.n, sizeof *j.rows.items, by_time);
        out->rows = arena_new(&out->arena, j.rows.n, sizeof *out->rows);
        if (!out->rows) st = error_nomem(err, "%zu functions", j.rows.n);
    }
    if (out->rows) {
        for (; out->n < j.rows.n; out->n++) out->rows[out->n] = j.rows.items[out->n];
    }
    map_str_release(&j.by_name);
    vec_release(&j.rows);
    return st;
}

void stacks_table_release(struct stacks_table *s)
{
    arena_release(&s->arena);
}
