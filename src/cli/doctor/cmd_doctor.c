/* SPDX-License-Identifier: MIT
 * cmd_doctor.c - `tare doctor`: what can be measured here, what cannot and why, and how quiet the machine is.
 * Always exits 0: a machine that cannot do something is an answer, not a failure. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/compare/doctor_aa.h"
#include "cli/doctor/doctor_probes.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "core/fmt.h"
#include "probe/ability.h"
#include "probe/host.h"
#include "probe/noise.h"
#include "probe/gpu_roof.h"
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
    bool has_gpu_roof;
    struct gpu_roof gpu_roof; /* measured now */
    char no_gpu_roof[600];    /* why not; "": nobody asked */
    bool has_selftest, fresh_selftest;
    struct selftest selftest; /* likewise */
};

/* ---- examining ------------------------------------------------------------------------------- */

static void on_tick(void *ctx, double share)
{
    progress_at(ctx, "measuring noise", share < 0 ? 0 : (uint64_t)(share * 1000), 1000);
}

/* The roof of as many threads as there are processors to use: measured when asked for, else only recalled. */
static void examine_roof(struct examination *e, bool measure, struct cli *cli)
{
    const struct run_host *h = &e->run.host;
    char dir[PATH_MAX];
    struct roof_options o = {.fingerprint = h->fingerprint, .fresh = true};
    double usable = h->cpu.cores.known ? (double)h->cpu.cores.v : 1;
    if (h->cpu.usable.known) usable = h->cpu.usable.v;
    o.threads = (unsigned)fmin(fmax(usable, 1), ROOF_THREADS_MAX);
    if (cli_cache_dir(dir, sizeof dir)) o.cache_dir = dir;
    e->has_roof = measure ? roof_measure(&e->roof, &o, &cli->error) == TARE_OK : roof_recall(&e->roof, &o);
    if (measure && !e->has_roof) cli_warn(cli, "no roof: %s", cli->error.text);
}

/* A GPU is only asked where somebody wants it: that loads the driver into this process. */
static void examine_gpu_roof(struct examination *e)
{
    char dir[PATH_MAX];
    tare_error why = TARE_ERROR_INIT;
    struct gpu_roof_options o = {.fingerprint = e->run.host.fingerprint, .fresh = true};
    if (cli_cache_dir(dir, sizeof dir)) o.cache_dir = dir;
    e->has_gpu_roof = gpu_roof_measure(&e->gpu_roof, &o, &why) == TARE_OK;
    if (!e->has_gpu_roof) snprintf(e->no_gpu_roof, sizeof e->no_gpu_roof, "%s", why.text);
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

/* The clock is read before and after all else, so that its rate is known from seconds, not from a moment. */
static tare_status examine(struct examination *e, bool quick, struct cli *cli)
{
    struct progress bar = PROGRESS_INIT(cli);
    struct clock_pair first, last;
    struct noise_options opts = {.budget = {quick ? 300000000 : 2000000000}, .tick = on_tick, .ctx = &bar};
    struct ability_where here = {.root = "", .dir = "."};
    const char *fallback = secure_getenv("TARE_CLOCK_FALLBACK");
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
    s = noise_measure(&e->noise, &opts, &cli->error);
    progress_end(&bar);
    clock_pair_take(&last, &e->source);
    e->tick_ns = e->source.tsc ? clock_tick_ns(&first, &last) : 1;
    return s;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Of a system clock there is no tick to be told, of a cycle counter no reason against it; JSON has both. */
static void say_clock(struct answer *a, const struct examination *e)
{
    const struct clock_source *s = &e->source;
    const struct clock_cost *c = &e->cost;
    answer_section(a, "clock", "clock\n");
    if (s->tsc) {
        answer_str(a, "source", "cycle counter", "  source       cycle counter");
        answer_null(a, "why_not_counter", NULL);
        answer_bool(a, "ordered_read", s->tscp, "%s\n", s->tscp ? "" : ", no ordered read");
        answer_f64(a, "tick_ns", e->tick_ns > 0 ? e->tick_ns : NAN, "  tick         %.4g ns\n", e->tick_ns);
    } else {
        answer_str(a, "source", "system clock", "  source       system clock (CLOCK_MONOTONIC_RAW)");
        answer_str(a, "why_not_counter", s->why_not, ": %s\n", s->why_not);
        answer_bool(a, "ordered_read", s->tscp, NULL);
        answer_f64(a, "tick_ns", e->tick_ns, NULL);
    }
    answer_f64(a, "read_fast_ns", c->fast_ns, "  per read     %.1f ns fast", c->fast_ns);
    answer_f64(a, "read_ordered_ns", c->ordered_ns, ", %.1f ns ordered", c->ordered_ns);
    answer_f64(a, "read_system_ns", c->raw_ns, ", %.1f ns system clock\n", c->raw_ns);
    answer_f64(a, "resolution_ns", c->resolution_ns, "  resolution   %.1f ns\n", c->resolution_ns);
    answer_object_end(a);
}

/* "236 G", or "unknown": no such instructions, too little memory. */
static struct shown giga(double rate)
{
    struct shown out = {"unknown"};
    if (!isnan(rate)) snprintf(out.s, sizeof out.s, "%.3g G", rate / 1e9);
    return out;
}

static void say_memory_roof(struct answer *a, const struct roof *r)
{
    if (isnan(r->bandwidth))
        answer_say(a, "  memory       unknown (too little memory to tell it from the caches)\n");
    else
        answer_say(a,
                   "  memory       %sB/s (reading %sB/s, triad %sB/s)\n"
                   "  balance      %.3g FLOP per byte: layers with less are bound by memory\n",
                   giga(r->bandwidth).s, giga(r->read).s, giga(r->triad).s, r->flops / r->bandwidth);
    answer_f64(a, "bandwidth", r->bandwidth, NULL);
    answer_f64(a, "read", r->read, NULL);
    answer_f64(a, "triad", r->triad, NULL);
}

/* A roof that was recalled says when it was measured; one measured among others is too low, and says so. */
static void say_roof(struct answer *a, const struct examination *e)
{
    const struct roof *r = &e->roof;
    if (!e->has_roof) {
        answer_null(a, "roof", NULL);
        return;
    }
    answer_section(a, "roof", "roof");
    answer_uint(a, "threads", r->threads, "   the most that %u thread%s can do%s%s%s\n", r->threads,
                r->threads == 1 ? "" : "s", r->cached ? ", measured " : "", r->cached ? r->measured : "",
                r->busy ? "; too low, and not kept: others use the processors" : "");
    answer_f64(a, "flops", r->flops, "  fp32         %sFLOP/s", giga(r->flops).s);
    answer_str(a, "kernel", r->kernel, " (%s)\n", r->kernel);
    answer_f64(a, "int_ops", r->int_ops, "  int8         %s%s", giga(r->int_ops).s,
               isnan(r->int_ops) ? "" : "OP/s");
    answer_str(a, "int_kernel", r->int_kernel, " (%s)\n",
               r->int_kernel ? r->int_kernel : "no instructions for it");
    say_memory_roof(a, r);
    answer_str(a, "measured", r->measured, NULL);
    answer_bool(a, "cached", r->cached, NULL);
    answer_bool(a, "busy", r->busy, NULL);
    answer_object_end(a);
}

/* "51 T" */
static struct shown tera(double rate)
{
    struct shown out;
    if (rate < 1e12) return giga(rate);
    snprintf(out.s, sizeof out.s, rate < 1e15 ? "%.3g T" : "%.0f T", rate / 1e12);
    return out;
}

static void say_gpu_rate(struct answer *a, const struct gpu_roof *r, enum gpu_roof_kind k)
{
    const struct gpu_roof_rate *v = &r->of[k];
    const char *unit = k >= GPU_ROOF_MEMORY ? "B/s" : "OP/s";
    const char *key = gpu_roof_key(k);
    if (isnan(v->per_s.value)) {
        answer_say(a, "  %-12s unknown (%s)\n", key, v->why);
        answer_null(a, key, NULL);
        return;
    }
    answer_say(a, "  %-12s %s%s (from %s%s)\n", key, tera(v->per_s.value).s, unit, tera(v->per_s.lo).s, unit);
    answer_f64(a, key, v->per_s.value, NULL);
}

/* The best of several repetitions, and from where the median of them is sure to be. */
static void say_gpu_roof(struct answer *a, const struct examination *e)
{
    const struct gpu_roof *r = &e->gpu_roof;
    if (!e->has_gpu_roof) {
        answer_null(a, "gpu_roof", e->no_gpu_roof[0] ? "\nGPU roof\n  unknown (%s)\n" : NULL, e->no_gpu_roof);
        return;
    }
    answer_section(a, "gpu_roof", "GPU roof");
    answer_str(a, "device", r->device, "   the most that %s can do\n", r->device);
    for (int k = 0; k < GPU_ROOF_KINDS; k++) say_gpu_rate(a, r, (enum gpu_roof_kind)k);
    answer_str(a, "library", r->library[0] ? r->library : NULL, NULL);
    answer_str(a, "measured", r->measured, NULL);
    answer_object_end(a);
}

static void say_selftest(struct answer *a, const struct examination *e)
{
    const struct selftest *s = &e->selftest;
    if (!e->has_selftest) {
        answer_null(a, "selftest", NULL);
        return;
    }
    answer_section(a, "selftest", "self-test");
    answer_say(a, "   the same work compared with itself for %.0f s%s%s\n", s->spent_s,
               e->fresh_selftest ? "" : ", measured ", e->fresh_selftest ? "" : s->measured);
    doctor_aa_say(a, s);
    answer_object_end(a);
}

static struct shown percent(double share)
{
    struct shown out = {"unknown"};
    bool whole = share >= 0.0995 || share == 0;
    if (!isnan(share)) snprintf(out.s, sizeof out.s, whole ? "%.0f %%" : "%.2g %%", share * 100);
    return out;
}

static void say_noise_kernel(struct answer *a, const struct noise_kernel *k)
{
    answer_object(a, NULL);
    answer_str(a, "name", k->name, "  %-8s", k->name);
    answer_uint(a, "batches", k->batches, NULL);
    answer_f64(a, "batch_ns", k->batch_ns, NULL);
    answer_f64(a, "step_ns", k->step_ns, " %6.3g ns", k->step_ns);
    answer_f64(a, "spread", k->spread, " %9s", percent(k->spread).s);
    answer_f64(a, "p99_over_p50", k->tail, " %9.2f", k->tail);
    answer_f64(a, "switched_share", k->switched, " %9s", percent(k->switched).s);
    answer_f64(a, "resolves_interleaved", k->resolve_ab, " %11s", percent(k->resolve_ab).s);
    answer_f64(a, "resolves_runs", k->resolve_runs, " %11s\n", percent(k->resolve_runs).s);
    answer_object_end(a);
}

static void say_noise(struct answer *a, const struct noise *n)
{
    answer_section(a, "noise", "noise");
    answer_int(a, "took_ns", n->took.ns, "   the same work again and again for %.1f s\n",
               (double)n->took.ns / 1e9);
    answer_f64(a, "steal", n->steal, NULL);
    answer_f64(a, "cpu_share", n->cpu_share, NULL);
    answer_say(a, "  %-8s %9s %9s %9s %9s %11s %11s\n", "", "one step", "spread", "p99/p50", "switched",
               "A/B from", "runs from");
    answer_list(a, "kernels");
    for (int i = 0; i < NOISE_KERNELS; i++) say_noise_kernel(a, &n->kernel[i]);
    answer_list_end(a);
    answer_say(a, "  stolen by the hypervisor: %s; the thread had a CPU %.0f %% of the time\n",
               percent(n->steal).s, n->cpu_share * 100);
    answer_object_end(a);
}

/* People see what works and what would help; what is lost without it is for the end, where all of it is summed up. */
static void say_abilities(struct answer *a, const struct term *t, const struct examination *e)
{
    answer_say(a, "\n%sabilities\n%s", a->stream.style.bold, a->stream.style.plain);
    answer_list(a, "abilities");
    for (size_t i = 0; i < e->n; i++) {
        const struct ability *what = &ability_table[i];
        const struct ability_result *r = &e->result[i];
        bool able = r->answer == ABILITY_YES;
        answer_object(a, NULL);
        answer_str(a, "name", what->name, NULL);
        answer_str(a, "for", what->use, NULL);
        answer_str(a, "answer", ability_answer_name(r->answer), NULL);
        answer_str(a, "reason", r->reason, NULL);
        answer_str(a, "remedy", r->remedy[0] ? r->remedy : NULL, NULL);
        answer_str(a, "without", able ? NULL : what->without, NULL);
        answer_object_end(a);
        doctor_row_text(answer_text(a), t, (enum doctor_mark)r->answer, what->name, r->reason);
        if (r->remedy[0]) doctor_note_text(answer_text(a), t, "try: ", r->remedy);
    }
    answer_list_end(a);
}

static void say_point(struct answer *a, const char *text)
{
    struct buf *out = answer_text(a);
    buf_add_str(out, "  - ");
    opt_wrap(out, text, 4, 4);
    buf_add_char(out, '\n');
}

/* The judgement of the noise, in a sentence. */
static void noise_sentence(char *out, size_t size, const struct noise *n)
{
    const struct noise_kernel *k = &n->kernel[NOISE_CPU];
    bool crowded = n->cpu_share < 0.95 || k->switched > 0.25 || n->steal > 0.02;
    const char *advice = crowded ? " The machine is busy now: measure again when it is quiet." : "";
    snprintf(out, size,
             "Of CPU-bound work measured for %.1f s, variants that take turns can be told apart from %s on, "
             "separate runs from %s on at best: slower drifts did not show in this time.%s",
             (double)n->took.ns / 1e9, percent(k->resolve_ab).s, percent(k->resolve_runs).s, advice);
}

/* What all of it means: words alone. */
static void say_meaning(struct answer *a, const struct examination *e)
{
    char text[400];
    answer_say(a, "\n%swhat this means\n%s", a->stream.style.bold, a->stream.style.plain);
    noise_sentence(text, sizeof text, &e->noise);
    say_point(a, text);
    if (e->has_selftest) doctor_aa_meaning(&e->selftest, say_point, a);
    snprintf(
        text, sizeof text,
        "A scope needs two clock reads, %.0f ns here at least; tare measures and subtracts that. What is "
        "shorter takes less time than its own measurement.",
        2 * e->cost.ordered_ns);
    say_point(a, text);
    for (size_t i = 0; i < e->n; i++) {
        if (e->result[i].answer == ABILITY_YES) continue;
        snprintf(text, sizeof text, "%s: %s", ability_table[i].name, ability_table[i].without);
        say_point(a, text);
    }
}

static const char *or_unknown(const char *s)
{
    return s ? s : "unknown";
}

/* One line for people: names from outside are cleaned on their way. */
static void say_host(struct answer *a, const struct run_host *h)
{
    const struct run_host_cpu *c = &h->cpu;
    answer_section(a, "host", "host");
    answer_say(a, "\n  ");
    answer_str(a, "fingerprint", h->fingerprint, NULL);
    term_clean(answer_text(a), or_unknown(h->hostname));
    answer_str(a, "hostname", h->hostname, NULL);
    answer_str(a, "os", h->os, ", %s", or_unknown(h->os));
    answer_str(a, "kernel", h->kernel, ", %s, ", or_unknown(h->kernel));
    answer_str(a, "arch", h->arch, NULL);
    if (c->cores.known) answer_say(a, "%" PRIu64 " x ", c->cores.v);
    term_clean(answer_text(a), or_unknown(c->model));
    answer_object(a, "cpu");
    answer_str(a, "model", c->model, NULL);
    answer_f64(a, "cores", c->cores.known ? (double)c->cores.v : NAN, NULL);
    answer_f64(a, "usable", c->usable.known ? c->usable.v : NAN, NULL);
    answer_object_end(a);
    double bytes = h->memory_bytes.known ? (double)h->memory_bytes.v : NAN;
    answer_f64(a, "memory_bytes", bytes, isnan(bytes) ? NULL : ", %.1f GiB", bytes / (1 << 30));
    answer_say(a, "\n");
    answer_object_end(a);
}

static int answer_doctor(struct cli *cli, const struct examination *e, bool json)
{
    struct answer a;
    cli_answer_begin(cli, &a, json);
    answer_str(&a, "schema", "tare.doctor/1", NULL);
    answer_str(&a, "version", TARE_VERSION, NULL);
    say_host(&a, &e->run.host);
    say_clock(&a, e);
    say_noise(&a, &e->noise);
    say_selftest(&a, e);
    say_roof(&a, e);
    say_gpu_roof(&a, e);
    say_abilities(&a, &cli->out_term, e);
    answer_say(&a, "\n%sprobes%s   what tare run and tare top can see, tried on this process\n",
               a.stream.style.bold, a.stream.style.plain);
    doctor_probes_say(&a, &cli->out_term, &e->probes);
    say_meaning(&a, e);
    return cli_answer_end(cli, &a);
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
                 "measure what processors and memory can reach, for about 1 s, and what a GPU can, and keep it "
                 "for rooflines"),
        OPT_TIME_IN(0, "aa", &aa, 1000000000, 86400000000000,
                 "compare a thing with itself for so long: how often is that called a change, and how "
                 "small a change can be found here?", .flags = OPT_NO_DEFAULT),
        OPT_END,
    };
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    struct examination e = {0};
    if (examine(&e, quick, cli) < 0) {
        rc = cli_fail(cli);
        goto out;
    }
    examine_roof(&e, roof, cli);
    if (roof) examine_gpu_roof(&e);
    if (examine_self(&e, aa, cli) < 0) cli_warn(cli, "no self-test: %s", cli->error.text);
    rc = answer_doctor(cli, &e, json);
out:
    doctor_probes_release(&e.probes);
    run_release(&e.run);
    return rc;
}
