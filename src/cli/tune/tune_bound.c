/* SPDX-License-Identifier: MIT
 * tune_bound.c - what is used today, measured with its layers, and from that the most that any setting could gain:
 * what the arithmetic and the memory traffic of the layers would take at the roof of this machine. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench/bench_args.h"
#include "cli/tune/tune_args.h"
#include "core/fmt.h"
#include "core/mem.h"

/* ---- looking ---- */

tare_status tune_add_word(struct opt_list *words, const char *option, const char *value, tare_error *err)
{
    const struct opt row = {.type = OPT_TYPE_LIST, .to.list = words};
    tare_status s = opt_set(&row, option, err);
    return s == TARE_OK && value ? opt_set(&row, value, err) : s;
}

/* The first value of a list. */
static tare_status add_first(struct opt_list *words, const char *option, const char *list, tare_error *err)
{
    char first[64];
    if (!list) return TARE_OK;
    size_t n = strcspn(list, ",");
    snprintf(first, sizeof first, "%.*s", (int)(n < 63 ? n : 63), list);
    return tune_add_word(words, option, first, err);
}

static tare_status add_lists(struct opt_list *words, const struct model_args *m, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < m->dims.n; i++)
        s = tune_add_word(words, "--dim", m->dims.items[i], err);
    for (size_t i = 0; s == TARE_OK && i < m->runtimes.n; i++)
        s = tune_add_word(words, "--ort", m->runtimes.items[i], err);
    for (size_t i = 0; s == TARE_OK && i < m->session_config.n; i++)
        s = tune_add_word(words, "--session-config", m->session_config.items[i], err);
    return s;
}

/* What is used today: of each list the first. */
tare_status tune_add_setup(struct opt_list *words, const struct model_args *m, tare_error *err)
{
    char level[16];
    snprintf(level, sizeof level, "%d", (int)m->optimization);
    tare_status s = add_first(words, "--batch", m->batch, err);
    if (s == TARE_OK) s = add_first(words, "--threads", m->threads, err);
    if (s == TARE_OK) s = add_first(words, "--provider", m->provider, err);
    if (s == TARE_OK) s = add_first(words, "--io", m->io, err);
    if (s == TARE_OK) s = add_first(words, "--seq", m->seq, err);
    if (s == TARE_OK && m->inputs) s = tune_add_word(words, "--inputs", m->inputs, err);
    if (s == TARE_OK && m->optimization >= 0) s = tune_add_word(words, "--optimization", level, err);
    if (s == TARE_OK && m->no_arena) s = tune_add_word(words, "--no-arena", NULL, err);
    if (s == TARE_OK && m->no_pattern) s = tune_add_word(words, "--no-memory-pattern", NULL, err);
    if (s == TARE_OK && m->parallel) s = tune_add_word(words, "--parallel", NULL, err);
    return s == TARE_OK ? add_lists(words, m, err) : s;
}

static tare_status look_words(const struct tune_args *a, struct opt_list *words, tare_error *err)
{
    char budget[32];
    int64_t ns = a->budget.ns / 20 > 500000000 ? a->budget.ns / 20 : 500000000;
    snprintf(budget, sizeof budget, "%" PRId64 "ms", (ns < 3000000000 ? ns : 3000000000) / 1000000);
    tare_status s = tune_add_word(words, a->model, NULL, err);
    if (s == TARE_OK) s = tune_add_word(words, "--layers", NULL, err);
    if (s == TARE_OK) s = tune_add_word(words, "--budget", budget, err);
    return s == TARE_OK ? tune_add_setup(words, &a->setup, err) : s;
}

int tune_look(struct cli *cli, const struct tune_args *a, struct run *out)
{
    struct opt_list words = OPT_LIST_INIT;
    tare_status s = look_words(a, &words, &cli->error);
    int rc = s == TARE_OK ? bench_child(cli, &words, out) : cli_fail(cli);
    opt_list_release(&words);
    if (rc) return rc;
    const struct run_case *c = out->cases.n ? out->cases.at[0] : NULL;
    if (c && !c->failure && c->latency_ns.p50.known) return 0;
    error_set(&cli->error, TARE_DENIED, "%s: what is used today cannot be measured: %s", a->model,
              c && c->failure ? c->failure : "it was interrupted");
    return cli_fail(cli);
}

/* ---- the bound ---- */

/* A layer cannot be faster than its roof: its time is roof_share of it at best. What no roof is known for, and what
 * lies outside of layers, is taken to be free to gain all. */
static void sum_layers(struct tune_bound *b, const struct run_case *c)
{
    double all = 0, roof = 0, compute = 0, memory = 0;
    for (size_t i = 0; i < c->layers.n; i++) {
        const struct run_layer *l = c->layers.at[i];
        if (!l->time_ns.known) continue;
        all += l->time_ns.v;
        if (!l->roof_share.known || !l->bound) continue;
        roof += l->time_ns.v * fmin(l->roof_share.v, 1);
        if (strcmp(l->bound, "compute") == 0) compute += l->time_ns.v;
        if (strcmp(l->bound, "memory") == 0) memory += l->time_ns.v;
    }
    if (!(all > 0) || !(roof > 0)) {
        snprintf(b->why_not, sizeof b->why_not,
                 "no layer's time could be set against the roof of the machine");
        return;
    }
    double covered = c->profile.covered.known ? fmin(c->profile.covered.v, 1) : 1;
    b->known = true;
    b->outside = 1 - covered;
    b->compute = covered * compute / all;
    b->memory = covered * memory / all;
    b->roof_ns = b->run_ns * covered * roof / all;
    b->gain = b->run_ns / b->roof_ns;
}

void tune_bound_find(struct tune_bound *b, const struct run *today)
{
    const struct run_case *c = today->cases.at[0];
    *b = (struct tune_bound){.run_ns = c->latency_ns.p50.value, .any_batch = NAN};
    const struct run_value *why = run_map_get(&c->unknown, "layers");
    if (today->roof.flops.known && c->cost.flops.known &&
        c->cost.flops.v > 0) /* weights read for many at once */
        b->any_batch = b->run_ns / ((double)c->cost.flops.v / (double)today->roof.flops.v * 1e9);
    if (c->layers.n)
        sum_layers(b, c);
    else
        snprintf(b->why_not, sizeof b->why_not, "%.150s",
                 why && why->kind == RUN_TEXT ? why->s : "no layers were measured");
}

void tune_bound_text(struct buf *out, const struct tune_bound *b)
{
    if (!b->known) buf_printf(out, "bound      unknown: %s\n", b->why_not);
    if (b->loader) {
        if (b->known) buf_printf(out, "bound      %.2f x at most by settings of the loader\n", b->gain);
        buf_printf(out, "by what    %s\n", b->loader);
    }
    if (!b->known || b->loader) return;
    buf_printf(out, "bound      %.2f x at most at this batch and precision: a run takes %s, ", b->gain,
               show_time(b->run_ns).s);
    buf_printf(out, "at the roof of this machine %s", show_time(b->roof_ns).s);
    if (isfinite(b->any_batch)) buf_printf(out, "; %.2f x at any batch in this precision", b->any_batch);
    buf_add_char(out, '\n');
    buf_printf(out, "by what    %.0f %% of the run is held up by arithmetic (threads, provider, precision), ",
               100 * b->compute);
    buf_printf(
        out, "%.0f %% by memory (batch, precision), %.0f %% lies outside of layers (batch, graph, threads)\n",
        100 * b->memory, 100 * b->outside);
}

void tune_bound_record(const struct tune_bound *b, struct run *run)
{
    struct run_map m = {0};
    struct arena *a = &run->arena;
    if (b->loader) {
        if (b->known) run_map_real(a, &m, "gain_at_most", b->gain);
        if (!b->known) run_map_text(a, &m, "unknown", b->why_not);
        run_map_text(a, &m, "by_what", b->loader);
        run_map_set(a, &m, "stages_ms", (struct run_value){.kind = RUN_MAP, .items = b->stages_ms});
    } else if (b->known) {
        run_map_real(a, &m, "gain_at_most", b->gain);
        if (isfinite(b->any_batch)) run_map_real(a, &m, "gain_at_most_any_batch", b->any_batch);
        run_map_real(a, &m, "run_ns", b->run_ns);
        run_map_real(a, &m, "roof_ns", b->roof_ns);
        run_map_real(a, &m, "compute_share", b->compute);
        run_map_real(a, &m, "memory_share", b->memory);
        run_map_real(a, &m, "outside_share", b->outside);
    } else {
        run_map_text(a, &m, "unknown", b->why_not);
    }
    run_map_set(a, &run->config, "bound", (struct run_value){.kind = RUN_MAP, .items = m});
}
