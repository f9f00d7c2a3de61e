/* SPDX-License-Identifier: MIT
 * compare_memories.c - `tare compare --memory BASE NEW`: who held memory in two traces, or in several of each side. */
#include <math.h>
#include <stdlib.h>

#include "analyze/compare/compare_memory.h"
#include "analyze/judge/launches.h"
#include "cli/compare/compare_args.h"
#include "cli/input.h"
#include "core/mem.h"
#include "report/memory/memory_words.h"

static int read_run(struct cli *cli, const char *path, struct compare_memory_run *out)
{
    struct trace *t;
    int rc = input_trace(cli, path, &t);
    if (rc) return rc;
    out->path = path;
    if (trace_n_processes(t)) out->begun_ms = (int64_t)(trace_process(t, 0)->start_unix_ns / 1000000);
    tare_status s = memory_sum(t, &out->profile, &cli->error);
    if (s == TARE_OK) s = memory_profile_symbols(&out->profile, &cli->error);
    trace_close(t);
    return s == TARE_OK ? 0 : cli_fail_input(cli);
}

static int by_time(const void *a, const void *b)
{
    const struct compare_memory_run *x = a, *y = b;
    return (x->begun_ms > y->begun_ms) - (x->begun_ms < y->begun_ms);
}

static int read_side(struct cli *cli, const struct opt_list *names, struct compare_memory_side *out)
{
    out->runs = mem_new(names->n, sizeof *out->runs);
    if (!out->runs) {
        error_nomem(&cli->error, "%zu traces", names->n);
        return cli_fail(cli);
    }
    for (size_t i = 0; i < names->n; i++) {
        out->n++; /* also one that was read in part is released */
        int rc = read_run(cli, names->items[i], &out->runs[i]);
        if (rc) return rc;
    }
    qsort(out->runs, out->n, sizeof *out->runs, by_time);
    return 0;
}

static void release_side(struct compare_memory_side *s)
{
    for (size_t i = 0; i < s->n; i++) memory_profile_release(&s->runs[i].profile);
    mem_free(s->runs);
}

static int judge(struct cli *cli, const struct compare_args *a, struct compare_memory *in)
{
    struct comparison c;
    struct compare_limits limits = VEC_INIT;
    struct compare_saved_sides none = {0};
    if (a->min_effect >= 0) in->rule.min_effect = a->min_effect;
    in->rule.detect = fmax(in->rule.detect, 2.5 * in->rule.min_effect);
    if (comparison_init(&c, "memory", &cli->error) < 0) return cli_fail(cli);
    tare_status s = compare_limits_read(&a->fail_on, memory_measures, &limits, &cli->error);
    in->limits = limits.items;
    in->n_limits = limits.n;
    if (s == TARE_OK) s = compare_memory(&c, in, &cli->error);
    if (s == TARE_OK) compare_tell_again(a, &c);
    int rc = s == TARE_OK ? compare_answer(cli, a, &c, &none) : cli_fail(cli);
    vec_release(&limits);
    comparison_release(&c);
    return rc;
}

int compare_memories(struct cli *cli, const struct compare_args *a)
{
    const struct opt_list *names[PAIR_SIDES] = {&a->base, &a->new_};
    struct compare_memory in = {.by = (enum memory_by)a->by,
                                .name = memory_add_group,
                                .apart_ms = a->close_runs ? 0 : LAUNCHES_APART_MS,
                                .rule = BETWEEN_RULE_INIT};
    int rc = 0;
    for (int i = 0; i < PAIR_SIDES && !rc; i++) rc = read_side(cli, names[i], &in.side[i]);
    if (!rc) rc = judge(cli, a, &in);
    for (int i = 0; i < PAIR_SIDES; i++) release_side(&in.side[i]);
    return rc;
}
