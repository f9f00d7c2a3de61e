/* SPDX-License-Identifier: MIT
 * roofline.c - roofline_apply(), see layers.h. Divisions and exponentials are not in `flops`, so layers full of them
 * (Softmax, Erf) cannot reach the roof; docs/method.md says so. Nothing is guessed: a layer without time or cost stays
 * as it is. */
#include "analyze/layers/layers.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "analyze/judge/sweep.h"

#define NS 1e9

/* Providers that run on the processors the roof was measured on. */
static bool is_on_cpu(const char *provider)
{
    static const char *const names[] = {"CPU", "Dnnl", "Xnnpack", "ACL", "ArmNN"};
    if (!provider) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncasecmp(provider, names[i], strlen(names[i])) == 0) return true;
    return false;
}

struct work {
    double ops, bytes; /* NAN: unknown */
    double peak;       /* of such operations per second; NAN: unknown */
};

static double known_or_nan(struct known_f64 v)
{
    return v.known && v.v > 0 ? v.v : NAN;
}

static struct work work_of(const struct run_layer *l, const struct run_roof *roof)
{
    bool ints = l->int_macs.known && l->int_macs.v > 0;
    struct work w = {NAN, l->bytes.known ? (double)l->bytes.v : NAN, NAN};
    if (ints)
        w.ops = 2 * (double)l->int_macs.v;
    else if (l->flops.known)
        w.ops = (double)l->flops.v;
    w.peak = known_or_nan(ints ? roof->int_ops : roof->flops);
    return w;
}

static void apply_rates(struct run_layer *l, const struct work *w)
{
    double seconds = l->time_ns.known && l->time_ns.v > 0 ? l->time_ns.v / NS : NAN;
    l->intensity = known_if_finite(w->ops / w->bytes);
    l->rate = known_if_finite(w->ops / seconds);
    l->bandwidth = known_if_finite(w->bytes / seconds);
}

static void apply_bound(struct run_layer *l, const struct work *w, double bandwidth)
{
    double compute =
        w->ops > 0 ? w->ops / w->peak : w->ops; /* seconds that the roof allows; nothing takes 0 */
    double memory = w->bytes / bandwidth;
    if (!(compute >= 0) || !(memory >= 0) || !(compute + memory > 0)) return;
    l->bound = compute > memory ? "compute" : "memory";
    if (l->time_ns.known && l->time_ns.v > 0)
        l->roof_share = known_if_finite(fmax(compute, memory) * NS / l->time_ns.v);
}

/* ---- on a GPU ---- */

static double rate_or_nan(struct run_estimate e)
{
    return e.known && e.value > 0 ? e.value : NAN;
}

static bool starts_with(const char *text, const char *part)
{
    return text && strncmp(text, part, strlen(part)) == 0;
}

/* By what the layer makes: float32 may go through the tensor cores as TF32, which runtimes allow unless told otherwise,
 * so the better of the two is its roof. */
static double gpu_peak(const struct run_layer *l, const struct run_gpu_roof *roof)
{
    if (l->int_macs.known && l->int_macs.v > 0) return rate_or_nan(roof->int8);
    if (starts_with(l->output, "float16[")) return rate_or_nan(roof->fp16);
    if (starts_with(l->output, "bfloat16[")) return rate_or_nan(roof->bf16);
    return fmax(rate_or_nan(roof->fp32), rate_or_nan(roof->tf32)); /* NAN only if both are */
}

static bool is_on_gpu(const struct run_layer *l)
{
    return l->gpu_ns.known && l->operations.known && l->operations.v > 0 && !is_on_cpu(l->provider);
}

static void apply_gpu(struct run_layer *l, struct work *w, const struct run_gpu_roof *roof)
{
    w->peak = gpu_peak(l, roof);
    apply_bound(l, w, rate_or_nan(roof->bandwidth));
}

/* The roof holds for the number of threads it was measured with. */
static bool same_threads(const struct run *run, const struct run_case *c)
{
    double threads;
    if (!run->roof.threads.known || !param_number(c, "threads", &threads) || threads < 1) return true;
    return threads == (double)run->roof.threads.v;
}

void roofline_apply(struct run *run, struct run_case *c)
{
    bool fits = run->roof.known && same_threads(run, c);
    if (run->roof.known && !fits)
        run_unknown(run, &c->unknown, "layers.roof_share",
                    "the roof was measured with another number of threads");
    for (size_t i = 0; i < c->layers.n; i++) {
        struct run_layer *l = c->layers.at[i];
        struct work w = work_of(l, &run->roof);
        apply_rates(l, &w);
        if (fits && is_on_cpu(l->provider)) apply_bound(l, &w, known_or_nan(run->roof.bandwidth));
        if (run->gpu_roof.known && is_on_gpu(l)) apply_gpu(l, &w, &run->gpu_roof);
        if (l->share.known && l->share.v < 1) l->speedup_if_free = known_f64(1 / (1 - l->share.v));
    }
}
