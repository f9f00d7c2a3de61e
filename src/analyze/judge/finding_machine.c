/* SPDX-License-Identifier: MIT
 * finding_machine.c - rules about the machine: was it fit to measure on, and what disturbed it. Each
 * tells of the worst case and how many there are, so that a noisy machine gives one finding, not one per
 * case. */
#include <math.h>
#include <string.h>

#include "analyze/judge/finding.h"
#include "core/mem.h"
#include "core/stats.h"

static void add_worst(struct judging *j, struct run_finding *f, const struct worst *w, const char *key)
{
    if (key) finding_number(j, f, key, w->figure);
    finding_numbers(j, f, {"cases_affected", (double)w->above}, {"cases", (double)w->of});
}

/* ---- the figures ---- */

#define SWITCHES_PER_S 100.0 /* a competitor for the processor takes a few hundred turns a second */

static double half_width(const struct run *run, const struct run_case *c)
{
    struct run_estimate e;
    (void)run;
    if (!measure_named(c, "latency.p50", &e) || !e.lo.known || !e.hi.known || !(e.value > 0)) return NAN;
    return fmax(e.hi.v - e.value, e.value - e.lo.v) / e.value;
}

static double measured_ns(const struct run_case *c)
{
    return OR_NAN(c->samples) * OR_NAN(c->latency_ns.mean);
}

static double steal_share(const struct run *run, const struct run_case *c)
{
    (void)run;
    return OR_NAN(c->cpu.steal);
}

static double throttled_share(const struct run *run, const struct run_case *c)
{
    (void)run;
    return OR_NAN(c->cpu.throttled_ns) / measured_ns(c);
}

static double switches_per_run(const struct run *run, const struct run_case *c)
{
    (void)run;
    if (!c->cpu.involuntary_switches.known || !c->samples.known || c->samples.v < 20) return NAN;
    double switches = (double)c->cpu.involuntary_switches.v;
    if (switches * 1e9 < SWITCHES_PER_S * measured_ns(c))
        return NAN; /* what an idle machine does to a long run */
    return switches / run_case_runs(c);
}

static double self_share(const struct run *run, const struct run_case *c)
{
    (void)run;
    return OR_NAN(c->self.share);
}

static double spare_threads(const struct run *run, const struct run_case *c)
{
    double threads, workers = 1;
    if (!run->host.cpu.usable.known || !param_number(c, "threads", &threads)) return NAN;
    config_number(run, "concurrency", &workers);
    return threads * workers - ceil(run->host.cpu.usable.v);
}

/* ---- rules that are a figure with a limit ---- */

static const struct worst_rule {
    const char *id; /* in FINDING_MAP */
    figure_fn *figure;
    double limit, mild;         /* the limit above which it is told; below `mild` it is but an info */
    bool percent;               /* the figure is a share */
    const char *key;            /* of the evidence */
    const char *before, *after; /* the figure, in the title */
} worst_rules[] = {
    {"machine.throttled", throttled_share, 0.01, 0, true, "throttled_share",
     "the CPU quota stopped the process for ", " of the measured time"},
    {"machine.steal", steal_share, 0.02, 0, true, "steal", "the hypervisor took ", " of the processor time"},
    {"machine.preempted", switches_per_run, 0.25, 1, false, "switches_per_run",
     "other work interrupted the runs: ", " involuntary switches per run"},
    {"self.heavy", self_share, 0.01, 0, true, "self_share", "tare itself is ", " of a run"},
};

void find_worst(struct judging *j)
{
    const struct worst_rule *r = worst_rules;
    while (strcmp(r->id, j->rule->id) != 0) r++; /* a test goes through all */
    struct worst w = find_worst_case(j->run, r->figure, r->limit);
    if (!w.c) return;
    struct shown figure = r->percent ? show_percent(w.figure) : show_number(w.figure);
    struct run_finding *f =
        finding_start(j, w.c, "%s%s%s%s", r->before, figure.s, r->after, show_cases(w.above, w.of).s);
    add_worst(j, f, &w, r->key);
    if (r->figure == throttled_share)
        finding_number(j, f, "cpu_quota", OR_NAN(j->run->host.cgroup.cpu_quota));
    if (f && w.figure < r->mild) f->severity = "info";
}

/* ---- other rules ---- */

/* Cases measured so seldom, or so unevenly, that their median has no interval. */
static double lacks_interval(const struct run *run, const struct run_case *c)
{
    struct run_estimate e;
    (void)run;
    return measure_named(c, "latency.p50", &e) && !(e.lo.known && e.hi.known);
}

void find_no_interval(struct judging *j)
{
    struct worst w = find_worst_case(j->run, lacks_interval, 0);
    if (!w.c) return;
    struct run_finding *f =
        finding_start(j, w.c, "the median has no interval: too few runs that are independent of each other%s",
                      show_cases(w.above, w.of).s);
    add_worst(j, f, &w, NULL);
}

void find_unstable(struct judging *j)
{
    double asked = 0.02;
    config_number(j->run, "precision", &asked);
    struct worst w = find_worst_case(j->run, half_width, asked * 1.05);
    if (!w.c) return;
    const struct run_estimate *p50 = &w.c->latency_ns.p50;
    struct run_finding *f =
        w.figure > 1
            ? finding_start(j, w.c, "the median is only known to be from %s to %s (requested: +/-%s)%s",
                            show_time(p50->lo.v).s, show_time(p50->hi.v).s, show_percent(asked).s,
                            show_cases(w.above, w.of).s)
            : finding_start(j, w.c, "the median is uncertain by +/-%s (requested: %s)%s",
                            show_percent(w.figure).s, show_percent(asked).s, show_cases(w.above, w.of).s);
    add_worst(j, f, &w, "half_width");
    finding_number(j, f, "asked", asked);
    finding_number(j, f, "variation", OR_NAN(w.c->latency_ns.stddev) / OR_NAN(w.c->latency_ns.mean));
    if (f && w.figure < 2 * asked) f->severity = "info";
}

void find_threads_many(struct judging *j)
{
    struct worst w = find_worst_case(j->run, spare_threads, 0);
    if (!w.c) return;
    double usable = ceil(j->run->host.cpu.usable.v);
    struct run_finding *f =
        finding_start(j, w.c, "%s run on %s%s", show_count(w.figure + usable, "thread").s,
                      show_count(usable, "usable processor").s, show_cases(w.above, w.of).s);
    finding_numbers(j, f, {"threads", w.figure + usable}, {"usable", j->run->host.cpu.usable.v},
                    {"cases_affected", (double)w.above});
    finding_action(j, f, "use at most %s in all", show_count(usable, "thread").s);
}

void find_virtual_machine(struct judging *j)
{
    if (!j->run->host.is_virtual.known || !j->run->host.is_virtual.v) return;
    struct run_finding *f =
        finding_start(j, NULL, "this is a virtual machine: neighbours may change these numbers");
    finding_number(j, f, "virtual", 1);
}

/* ---- outliers ---- */

struct outliers {
    const struct run_case *c;
    double count, limit_ns, of, explained; /* explained NAN: unknown */
};

/* Counted here when the harness did not: more than 5 robust deviations and half the median above the median. */
static bool count_outliers(const struct run_case *c, struct outliers *out)
{
    const struct run_samples *s = &c->samples_raw;
    double median, mad;
    if (!s->known || s->n < 100) return true;
    double *x = stats_doubles(s->ns, s->n, NULL);
    bool good =
        x && stats_median(x, s->n, &median, NULL) == TARE_OK && stats_mad(x, s->n, &mad, NULL) == TARE_OK;
    if (good) out->limit_ns = median + fmax(5 * 1.4826 * mad, 0.5 * median);
    for (size_t i = 0; good && i < s->n; i++) out->count += x[i] > out->limit_ns;
    out->of = (double)s->n;
    mem_free(x);
    return good;
}

static struct outliers outliers_of(struct judging *j, const struct run_case *c)
{
    const struct run_outliers *o = &c->outliers;
    struct outliers out = {.c = c, .of = 1, .explained = NAN};
    if (!o->known || !o->count.known || !c->samples.known)
        j->failed |= !count_outliers(c, &out);
    else
        out = (struct outliers){c, (double)o->count.v, OR_NAN(o->limit_ns), (double)c->samples.v,
                                OR_NAN(o->explained)};
    return out;
}

/* Short runs are timed in groups: what was far off is the mean of one, not a run. */
static struct run_finding *start_outliers(struct judging *j, const struct outliers *o)
{
    double together = o->c->calls_per_sample.known ? (double)o->c->calls_per_sample.v : 1;
    struct shown count = show_number(o->count), share = show_percent(o->count / o->of),
                 limit = show_time(o->limit_ns);
    if (!(together > 1))
        return finding_start(j, o->c, "%s of %s (%s) took longer than %s", count.s,
                             show_count(o->of, "run").s, share.s, limit.s);
    return finding_start(j, o->c, "%s of %s of %s runs each (%s) took longer than %s a run", count.s,
                         show_count(o->of, "sample").s, show_number(together).s, share.s, limit.s);
}

/* Only the worst case is told, since one disturbance hits several. Fewer than 3, or 0.5 %, are nothing unusual. Those
 * that coincide with interruptions are the machine's, so only the others make it a warning. */
void find_outliers(struct judging *j)
{
    struct outliers worst = {.of = 1};
    for (size_t i = 0; i < j->run->cases.n; i++) {
        struct outliers now = outliers_of(j, j->run->cases.at[i]);
        if (now.count >= 3 && now.count / now.of > fmax(worst.count / worst.of, 0.005)) worst = now;
    }
    if (!worst.c) return;
    struct run_finding *f = start_outliers(j, &worst);
    finding_numbers(j, f, {"outliers", worst.count}, {"samples", worst.of},
                    {"limit_ns", round(worst.limit_ns)});
    if (isnan(worst.explained)) return;
    finding_number(j, f, "explained", worst.explained);
    double unexplained = worst.count - worst.explained;
    if (unexplained / worst.of > 0.01 && f) f->severity = "warn";
    finding_action(j, f, "%s of them coincide with interruptions by the machine; %s do not: %s",
                   show_number(worst.explained).s, show_number(unexplained).s,
                   unexplained > 0
                       ? "look at the subject, and at what it waits for (a late wake-up is no interruption)"
                       : "a quieter machine removes them");
}

/* ---- GPUs ---- */

static bool is_on_gpu(const char *provider)
{
    static const char *const names[] = {"cuda", "tensorrt", "rocm", "migraphx", "dml", "webgpu"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasestr(provider, names[i])) return true;
    return false;
}

/* The provider of a model says that it ran on one; of other subjects only that this machine has one. */
void find_gpu_unwatched(struct judging *j)
{
    const struct run *run = j->run;
    const struct run_value *seen = run_map_get(&run->config, "gpu_present");
    const char *provider = NULL;
    bool measured = false; /* its memory */
    for (size_t i = 0; i < run->cases.n && !provider; i++) {
        const char *p = param_text(run->cases.at[i], "provider");
        const struct run_gpu *gpu = &run->cases.at[i]->gpu;
        if ((gpu->known && gpu->kernel_ns.known) || !is_on_gpu(p)) continue;
        provider = p;
        measured = run->cases.at[i]->memory.gpu_peak.known || (gpu->known && gpu->devices.n);
    }
    bool is_model = run->subject.type && strcmp(run->subject.type, "onnx") == 0;
    struct run_finding *f = NULL;
    if (provider && measured)
        f = finding_start(j, NULL, "it ran on %.60s: how busy the GPU was, and its energy, were not measured",
                          provider);
    else if (provider)
        f = finding_start(
            j, NULL,
            "it ran on %.60s: memory is that of the process on the host; GPU memory, load and energy "
            "were not measured",
            provider);
    else if (!is_model && seen && seen->kind == RUN_BOOL && seen->yes)
        f = finding_start(j, NULL,
                          "this machine has a GPU: what a run did on it, memory included, was not measured");
    finding_text(j, f, "provider", provider ? provider : "unknown");
    if (provider && measured) {
        finding_action(j, f, "--layers tells how busy the GPU is, and the time of every layer on it");
        if (f) f->severity = "info";
    }
}
