/* SPDX-License-Identifier: MIT
 * cmd_doctor.c - `tare doctor`: what can be measured here, what cannot and why, and how quiet the machine is.
 * Always exits 0: a machine that cannot do something is an answer, not a failure. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "cli/compare/doctor_aa.h"
#include "cli/doctor/doctor_probes.h"
#include "cli/progress.h"
#include "core/json.h"
#include "probe/ability.h"
#include "probe/host.h"
#include "probe/noise.h"
#include "probe/roof.h"

enum { MAX_ABILITIES = 64 };

struct examination {
    struct run run; /* only its host is filled */
    struct clock_source source;
    struct clock_cost cost;
    double tick_ns; /* 0: not known */
    struct noise noise;
    size_t n;
    struct ability_result result[MAX_ABILITIES]; /* of the rows of ability_table, in their order */
    bool has_roof;
    struct doctor_probes probes;
    struct roof roof; /* measured now, or what an earlier measurement left */
    bool has_selftest, fresh_selftest;
    struct selftest selftest; /* likewise */
};

/* ---- examining ------------------------------------------------------------------------------- */

static void on_tick(void *ctx, double share)
{
    progress_at(ctx, share < 0 ? 0 : (uint64_t)(share * 1000));
}

/* The roof of as many threads as there are processors to use: measured when asked for, else only recalled. */
static void examine_roof(struct examination *e, bool measure, struct cli *cli)
{
    const struct run_host *h = &e->run.host;
    char dir[PATH_MAX];
    double usable = h->cpu.usable.known ? h->cpu.usable.v : h->cpu.cores.known ? (double)h->cpu.cores.v : 1;
    struct roof_options o = {.fingerprint = h->fingerprint, .fresh = true};
    o.threads = usable < 1 ? 1 : usable > ROOF_THREADS_MAX ? ROOF_THREADS_MAX : (unsigned)usable;
    if (cli_cache_dir(dir, sizeof dir)) o.cache_dir = dir;
    e->has_roof = measure ? roof_measure(&e->roof, &o, &cli->error) == TARE_OK : roof_recall(&e->roof, &o);
    if (measure && !e->has_roof) cli_warn(cli, "no roof: %s", cli->error.text);
}

/* The self-test: measured when asked for, else the one that was kept. */
static tare_status examine_self(struct examination *e, struct duration asked, struct cli *cli)
{
    const char *host = e->run.host.fingerprint;
    e->fresh_selftest = asked.ns > 0;
    if (!e->fresh_selftest) {
        e->has_selftest = doctor_aa_recall(host, &e->selftest);
        return TARE_OK;
    }
    tare_status s = doctor_aa_measure(cli, (uint64_t)asked.ns, &e->selftest);
    e->has_selftest = s == TARE_OK;
    if (e->has_selftest) doctor_aa_keep(host, &e->selftest);
    return s;
}

static tare_status examine(struct examination *e, bool quick, struct cli *cli)
{
    struct progress bar;
    struct clock_pair first, last;
    struct noise_options opts = {.budget = {quick ? 300000000 : 2000000000}, .tick = on_tick, .ctx = &bar};
    struct ability_where here = {.root = "", .dir = "."};
    const char *fallback = getenv("TARE_CLOCK_FALLBACK");
    here.clock_fallback = fallback && fallback[0] == '1'; /* as the recorder reads it */
    opts.memory_bytes = (size_t)64 << 20; /* more than most last-level caches hold for one core */
    tare_status s = run_init(&e->run, "doctor", &cli->error);
    if (s < 0 || (s = host_read(&e->run, "", &cli->error)) < 0) return s;
    clock_detect(&e->source, here.clock_fallback);
    clock_pair_take(&first, &e->source);
    clock_measure(&e->cost, &e->source);
    for (e->n = 0; ability_table[e->n].name && e->n < MAX_ABILITIES; e->n++)
        ability_check(&ability_table[e->n], &here, &e->result[e->n]);
    if ((s = doctor_probes_try(&e->probes, &cli->error)) < 0) return s;
    progress_begin(&bar, cli->err, &cli->err_term, "measuring noise", 1000);
    s = noise_measure(&e->noise, &opts, &cli->error);
    progress_end(&bar);
    clock_pair_take(&last, &e->source);
    e->tick_ns = e->source.tsc ? clock_tick_ns(&first, &last) : 1;
    return s;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void heading(struct buf *out, const struct term *t, const char *text)
{
    buf_printf(out, "\n%s%s%s", term_style(t, TERM_BOLD), text, term_style(t, TERM_PLAIN));
}

static void text_clock(struct buf *out, const struct term *t, const struct examination *e)
{
    const struct clock_source *s = &e->source;
    heading(out, t, "clock\n");
    if (s->tsc)
        buf_printf(out, "  source       cycle counter%s\n", s->tscp ? "" : ", no ordered read");
    else
        buf_printf(out, "  source       system clock (CLOCK_MONOTONIC_RAW): %s\n", s->why_not);
    if (s->tsc) buf_printf(out, "  tick         %.4g ns\n", e->tick_ns);
    buf_printf(out, "  per read     %.1f ns fast, %.1f ns ordered, %.1f ns system clock\n", e->cost.fast_ns,
               e->cost.ordered_ns, e->cost.raw_ns);
    buf_printf(out, "  resolution   %.1f ns\n", e->cost.resolution_ns);
}

/* "236 G", or "unknown": no such instructions, too little memory. */
static void giga(char *out, size_t size, double rate)
{
    if (isnan(rate))
        snprintf(out, size, "unknown");
    else
        snprintf(out, size, "%.3g G", rate / 1e9);
}

static void text_roof(struct buf *out, const struct term *t, const struct examination *e)
{
    const struct roof *r = &e->roof;
    char flops[32], ints[32], memory[32], read[32], triad[32];
    if (!e->has_roof) return;
    heading(out, t, "roof");
    buf_printf(out, "   the most that %u thread%s can do%s%s%s\n", r->threads, r->threads == 1 ? "" : "s",
               r->cached ? ", measured " : "", r->cached ? r->measured : "",
               r->busy ? "; too low, and not kept: others use the processors" : "");
    giga(flops, sizeof flops, r->flops);
    giga(ints, sizeof ints, r->int_ops);
    giga(memory, sizeof memory, r->bandwidth);
    giga(read, sizeof read, r->read);
    giga(triad, sizeof triad, r->triad);
    buf_printf(out, "  fp32         %sFLOP/s (%s)\n", flops, r->kernel);
    buf_printf(out, "  int8         %s%s (%s)\n", ints, isnan(r->int_ops) ? "" : "OP/s",
               r->int_kernel ? r->int_kernel : "no instructions for it");
    if (isnan(r->bandwidth)) {
        buf_add_str(out, "  memory       unknown (too little memory to tell it from the caches)\n");
    } else {
        buf_printf(out, "  memory       %sB/s (reading %sB/s, triad %sB/s)\n", memory, read, triad);
        buf_printf(out, "  balance      %.3g FLOP per byte: layers with less are bound by memory\n",
                   r->flops / r->bandwidth);
    }
}

static void text_selftest(struct buf *out, const struct term *t, const struct examination *e)
{
    if (!e->has_selftest) return;
    heading(out, t, "self-test");
    buf_printf(out, "   the same work compared with itself for %.0f s%s%s\n", e->selftest.spent_s,
               e->fresh_selftest ? "" : ", measured ", e->fresh_selftest ? "" : e->selftest.measured);
    doctor_aa_text(out, &e->selftest);
}

static void percent(char *out, size_t size, double share)
{
    if (isnan(share))
        snprintf(out, size, "unknown");
    else
        snprintf(out, size, share >= 0.0995 || share == 0 ? "%.0f %%" : "%.2g %%", share * 100);
}

static void text_noise(struct buf *out, const struct term *t, const struct noise *n)
{
    char a[32], b[32], c[32], d[32], steal[32];
    heading(out, t, "noise");
    buf_printf(out, "   the same work again and again for %.1f s\n", (double)n->took.ns / 1e9);
    buf_printf(out, "  %-8s %9s %9s %9s %9s %11s %11s\n", "", "one step", "spread", "p99/p50", "switched",
               "A/B from", "runs from");
    for (int i = 0; i < NOISE_KERNELS; i++) {
        const struct noise_kernel *k = &n->kernel[i];
        percent(a, sizeof a, k->spread);
        percent(b, sizeof b, k->switched);
        percent(c, sizeof c, k->resolve_ab);
        percent(d, sizeof d, k->resolve_runs);
        buf_printf(out, "  %-8s %6.3g ns %9s %9.2f %9s %11s %11s\n", k->name, k->step_ns, a, k->tail, b, c,
                   d);
    }
    percent(steal, sizeof steal, n->steal);
    buf_printf(out, "  stolen by the hypervisor: %s; the thread had a CPU %.0f %% of the time\n", steal,
               n->cpu_share * 100);
}

static void text_abilities(struct buf *out, const struct term *t, const struct examination *e)
{
    static const struct {
        const char *mark;
        enum term_style style;
    } marks[] = {{"ok", TERM_GREEN}, {"partial", TERM_YELLOW}, {"no", TERM_RED}};
    heading(out, t, "abilities\n");
    for (size_t i = 0; i < e->n; i++) {
        const struct ability_result *r = &e->result[i];
        buf_add_str(out, "  ");
        term_cell(out, t, marks[r->answer].style, marks[r->answer].mark, 9);
        term_cell(out, t, TERM_PLAIN, ability_table[i].name, 19);
        term_clean(out, r->reason);
        buf_add_char(out, '\n');
        if (!r->remedy[0]) continue;
        buf_printf(out, "%30s", "");
        term_cell(out, t, TERM_DIM, "try: ", 0);
        term_cell(out, t, TERM_DIM, r->remedy, 0);
        buf_add_char(out, '\n');
    }
}

static void bullet(struct buf *out, const char *text)
{
    buf_add_str(out, "  - ");
    opt_wrap(out, text, 4, 4);
    buf_add_char(out, '\n');
}

/* The judgement of the noise, in a sentence. */
static void noise_sentence(char *out, size_t size, const struct noise *n)
{
    const struct noise_kernel *k = &n->kernel[NOISE_CPU];
    char ab[32], runs[32];
    bool crowded = n->cpu_share < 0.95 || k->switched > 0.25 || n->steal > 0.02;
    const char *advice = crowded ? " The machine is busy now: measure again when it is quiet." : "";
    percent(ab, sizeof ab, k->resolve_ab);
    percent(runs, sizeof runs, k->resolve_runs);
    snprintf(out, size,
             "Of CPU-bound work measured for %.1f s, variants that take turns can be told apart from %s on, "
             "separate runs from %s on at best: slower drifts did not show in this time.%s",
             (double)n->took.ns / 1e9, ab, runs, advice);
}

static void text_meaning(struct buf *out, const struct term *t, const struct examination *e)
{
    char text[400];
    heading(out, t, "what this means\n");
    noise_sentence(text, sizeof text, &e->noise);
    bullet(out, text);
    if (e->has_selftest) doctor_aa_meaning(&e->selftest, bullet, out);
    snprintf(text, sizeof text,
             "A scope needs two clock reads, %.0f ns here at least; tare weighs and subtracts that. What is "
             "shorter takes less time than its own measurement.",
             2 * e->cost.ordered_ns);
    bullet(out, text);
    for (size_t i = 0; i < e->n; i++) {
        if (e->result[i].answer == ABILITY_YES) continue;
        snprintf(text, sizeof text, "%s: %s", ability_table[i].name, ability_table[i].without);
        bullet(out, text);
    }
}

static const char *or_unknown(const char *s)
{
    return s ? s : "unknown";
}

static void text_host(struct buf *out, const struct term *t, const struct run_host *h)
{
    buf_printf(out, "%shost%s\n  ", term_style(t, TERM_BOLD), term_style(t, TERM_PLAIN));
    term_clean(out, or_unknown(h->hostname));
    buf_printf(out, ", %s, %s, ", or_unknown(h->os), or_unknown(h->kernel));
    if (h->cpu.cores.known) buf_printf(out, "%" PRIu64 " x ", h->cpu.cores.v);
    term_clean(out, or_unknown(h->cpu.model));
    if (h->memory_bytes.known) buf_printf(out, ", %.1f GiB", (double)h->memory_bytes.v / (1 << 30));
    buf_add_char(out, '\n');
}

static void write_text(struct buf *out, const struct term *t, const struct examination *e)
{
    text_host(out, t, &e->run.host);
    text_clock(out, t, e);
    text_noise(out, t, &e->noise);
    text_selftest(out, t, e);
    text_roof(out, t, e);
    text_abilities(out, t, e);
    heading(out, t, "probes");
    buf_add_str(out, "   what tare run and tare top can see, tried on this process\n");
    doctor_probes_text(out, t, &e->probes);
    text_meaning(out, t, e);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_host(struct json *j, const struct run_host *h)
{
    json_key(j, "host");
    json_object_begin(j);
    json_kv_string(j, "fingerprint", h->fingerprint);
    json_kv_string(j, "hostname", h->hostname);
    json_kv_string(j, "os", h->os);
    json_kv_string(j, "kernel", h->kernel);
    json_kv_string(j, "arch", h->arch);
    json_key(j, "cpu");
    json_object_begin(j);
    json_kv_string(j, "model", h->cpu.model);
    json_kv_double(j, "cores", h->cpu.cores.known ? (double)h->cpu.cores.v : NAN);
    json_kv_double(j, "usable", h->cpu.usable.known ? h->cpu.usable.v : NAN);
    json_object_end(j);
    json_kv_double(j, "memory_bytes", h->memory_bytes.known ? (double)h->memory_bytes.v : NAN);
    json_object_end(j);
}

static void json_clock(struct json *j, const struct examination *e)
{
    json_key(j, "clock");
    json_object_begin(j);
    json_kv_string(j, "source", e->source.tsc ? "cycle counter" : "system clock");
    json_kv_string(j, "why_not_counter", e->source.tsc ? NULL : e->source.why_not);
    json_kv_bool(j, "ordered_read", e->source.tscp);
    json_kv_double(j, "tick_ns", e->tick_ns > 0 ? e->tick_ns : NAN);
    json_kv_double(j, "read_fast_ns", e->cost.fast_ns);
    json_kv_double(j, "read_ordered_ns", e->cost.ordered_ns);
    json_kv_double(j, "read_system_ns", e->cost.raw_ns);
    json_kv_double(j, "resolution_ns", e->cost.resolution_ns);
    json_object_end(j);
}

static void json_noise(struct json *j, const struct noise *n)
{
    json_key(j, "noise");
    json_object_begin(j);
    json_kv_int(j, "took_ns", n->took.ns);
    json_kv_double(j, "steal", n->steal);
    json_kv_double(j, "cpu_share", n->cpu_share);
    json_key(j, "kernels");
    json_array_begin(j);
    for (int i = 0; i < NOISE_KERNELS; i++) {
        const struct noise_kernel *k = &n->kernel[i];
        json_object_begin(j);
        json_kv_string(j, "name", k->name);
        json_kv_uint(j, "batches", k->batches);
        json_kv_double(j, "batch_ns", k->batch_ns);
        json_kv_double(j, "step_ns", k->step_ns);
        json_kv_double(j, "spread", k->spread);
        json_kv_double(j, "p99_over_p50", k->tail);
        json_kv_double(j, "switched_share", k->switched);
        json_kv_double(j, "resolves_interleaved", k->resolve_ab);
        json_kv_double(j, "resolves_runs", k->resolve_runs);
        json_object_end(j);
    }
    json_array_end(j);
    json_object_end(j);
}

static void json_roof(struct json *j, const struct examination *e)
{
    const struct roof *r = &e->roof;
    json_key(j, "roof");
    if (!e->has_roof) {
        json_put_null(j);
        return;
    }
    json_object_begin(j);
    json_kv_uint(j, "threads", r->threads);
    json_kv_double(j, "flops", r->flops);
    json_kv_string(j, "kernel", r->kernel);
    json_kv_double(j, "int_ops", r->int_ops);
    json_kv_string(j, "int_kernel", r->int_kernel);
    json_kv_double(j, "bandwidth", r->bandwidth);
    json_kv_double(j, "read", r->read);
    json_kv_double(j, "triad", r->triad);
    json_kv_string(j, "measured", r->measured);
    json_kv_bool(j, "cached", r->cached);
    json_kv_bool(j, "busy", r->busy);
    json_object_end(j);
}

static void json_abilities(struct json *j, const struct examination *e)
{
    json_key(j, "abilities");
    json_array_begin(j);
    for (size_t i = 0; i < e->n; i++) {
        const struct ability_result *r = &e->result[i];
        json_object_begin(j);
        json_kv_string(j, "name", ability_table[i].name);
        json_kv_string(j, "for", ability_table[i].use);
        json_kv_string(j, "answer", ability_answer_name(r->answer));
        json_kv_string(j, "reason", r->reason);
        json_kv_string(j, "remedy", r->remedy[0] ? r->remedy : NULL);
        json_kv_string(j, "without", r->answer == ABILITY_YES ? NULL : ability_table[i].without);
        json_object_end(j);
    }
    json_array_end(j);
}

static void write_json(struct buf *out, const struct examination *e)
{
    struct json j;
    json_init(&j, out, JSON_STYLE_PRETTY);
    json_object_begin(&j);
    json_kv_string(&j, "schema", "tare.doctor/1");
    json_kv_string(&j, "version", TARE_VERSION);
    json_host(&j, &e->run.host);
    json_clock(&j, e);
    json_noise(&j, &e->noise);
    doctor_aa_json(&j, e->has_selftest ? &e->selftest : NULL);
    json_roof(&j, e);
    json_abilities(&j, e);
    doctor_probes_json(&j, &e->probes);
    json_object_end(&j);
    json_finish(&j, NULL);
}

int cmd_doctor(struct cli *cli, int argc, char **argv)
{
    static const struct opt_usage usage = {
        .synopsis = "tare doctor [options]",
        .about = "Say what can be measured on this machine, what cannot and why, and what would help: the "
                 "clock, its cost and resolution; how noisy the machine is, and so the smallest difference "
                 "that can be found on it; counters, sensors, limits and files. Takes about two seconds. "
                 "Always exits with 0.",
    };
    bool json = false, quick = false, roof = false;
    struct duration aa = {0};
    const struct opt rows[] = {
        OPT_JSON(&json),
        OPT_FLAG('q', "quick", &quick, "measure noise for 0.3 s instead of 2 s"),
        OPT_FLAG(0, "roof", &roof,
                 "measure what processors and memory can reach, for about 1 s, and keep it for rooflines"),
        OPT_WITH(OPT_NO_DEFAULT,
                 OPT_ROW_(DURATION, 0, "aa", duration, &aa,
                          "compare a thing with itself for so long: how often is that called a change, and how "
                          "small a change can be found here?"),
                 .lo = 1000000000, .hi = 86400000000000),
        OPT_END,
    };
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    struct examination e = {0};
    struct buf text = BUF_INIT;
    if (examine(&e, quick, cli) < 0) {
        doctor_probes_release(&e.probes);
        run_release(&e.run);
        return cli_fail(cli);
    }
    examine_roof(&e, roof, cli);
    if (examine_self(&e, aa, cli) < 0) cli_warn(cli, "no self-test: %s", cli->error.text);
    if (json)
        write_json(&text, &e);
    else
        write_text(&text, &cli->out_term, &e);
    rc = cli_put(cli, &text);
    buf_release(&text);
    doctor_probes_release(&e.probes);
    run_release(&e.run);
    return rc;
}
