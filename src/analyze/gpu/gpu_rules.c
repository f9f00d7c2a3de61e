/* SPDX-License-Identifier: MIT
 * gpu_rules.c - what is worth knowing about a GPU in steady state: one row and one small function a rule. A rule says
 * what was found with its numbers, what can be won at most (the exposed time that would go away), on what it rests and
 * what would disprove it. Where what it needs was not recorded it is silent. Advice on the program's side is left out
 * where the queue is deep: then the GPU is what everything waits for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_facts.h"
#include "analyze/judge/finding.h"

#define GAIN_LEAST 0.01 /* of the time: what can win less is not worth a finding */
#define MEASURED "measured"
#define BY_NAME "estimated from the names of kernels"
#define BY_SHAPE "estimated from launch shapes"

struct gpu_judging {
    struct judging base;
    const struct gpu_facts *f;
    const struct gpu_job *job;      /* of several ranks */
    bool launch_bound, underfilled; /* rules that others build on have spoken */
};

typedef void gpu_rule_fn(struct gpu_judging *j);
struct gpu_rule {
    struct finding_rule base;
    gpu_rule_fn *judge;
    const char *basis, *disproof;
    bool host_side;  /* silent while the GPU is what everything waits for */
    bool needs_gaps; /* silent where records are missing: a gap may be a hole in the record */
};

#define START(j, gain_, ...) start(j, gain_, finding_start(&(j)->base, NULL, __VA_ARGS__))

static const struct gpu_rule *rule_of(const struct gpu_judging *j)
{
    return (const struct gpu_rule *)((const char *)j->base.rule - offsetof(struct gpu_rule, base));
}

static struct run_finding *start(struct gpu_judging *j, double gain, struct run_finding *f)
{
    if (!f) return NULL;
    f->basis = rule_of(j)->basis;
    f->disproof = rule_of(j)->disproof;
    finding_gain(f, gain);
    return f;
}
#define EVIDENCE(j, f, ...) finding_numbers(&(j)->base, f, __VA_ARGS__)

/* ---- what several need ---- */

static double per_step(const struct gpu_facts *f, double v)
{
    return f->steps > 0 ? v / f->steps : NAN;
}

static double of_wall(const struct gpu_facts *f, double ns)
{
    return ns / f->wall;
}

static double of_kernels(const struct gpu_facts *f, double ns)
{
    return f->kernels.ns > 0 ? ns / f->kernels.ns : NAN;
}

static double busy(const struct gpu_facts *f)
{
    return OR_NAN(f->steady.busy);
}

static double host_idle(const struct gpu_facts *f)
{
    return gpu_facts_idle(f, "launch") + gpu_facts_idle(f, "host") + gpu_facts_idle(f, "host-running");
}

static const char *severity(double share, double warn)
{
    return share >= warn ? "warn" : "info";
}

/* ---- 1: busy at all ---- */

static const struct {
    const char *cause, *action;
} causes[] = {
    {"sync", "see the finding on waiting for results"},
    {"copy", "see the findings on copies"},
    {"communication", "see the findings on communication"},
    {"launch", "see the finding on launching"},
    {"allocation", "see the finding on allocation"},
    {"loading", "see the finding on loading"},
    {"host-running",
     "look for what runs between launches (`tare functions`): move it off this thread, or after the next launches"},
    {"host-waiting", "see the finding on waiting for data"},
    {"host-sleeping", "remove the sleep, or let it wait for what it waits for"},
    {"host",
     "look for what runs between launches: a longer recording tells running, waiting and sleeping apart"},
    {"unknown", "record calls too (without --no-gpu-calls), and see what is lost below"},
};

static void mostly_idle(struct gpu_judging *j)
{
    const struct gpu_facts *f = j->f;
    size_t most = 0;
    if (!(busy(f) < 0.8)) return;
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (gpu_facts_idle(f, causes[i].cause) > gpu_facts_idle(f, causes[most].cause)) most = i;
    double share = gpu_facts_idle(f, causes[most].cause);
    struct run_finding *x =
        START(j, 1 - busy(f), "the GPU was busy %s of the time; %s it was idle: %s", show_percent(busy(f)).s,
              show_percent(share).s, gpu_cause_words(causes[most].cause));
    if (x && busy(f) < 0.5) x->severity = "warn";
    finding_action(&j->base, x, "%s", causes[most].action);
    EVIDENCE(j, x, {"busy", busy(f)}, {"idle_by_it", share}, {"looked_at_ms", f->wall / 1e6});
    finding_text(&j->base, x, "cause", causes[most].cause);
}

/* ---- 2, 3, 7: the host is late ---- */

static void launch_bound(struct gpu_judging *j)
{
    const struct gpu_facts *f = j->f;
    double idle = host_idle(f), call = f->steady.call_ns.known ? (double)f->steady.call_ns.p50 : NAN;
    double launching = of_wall(f, f->launch_calls);
    if (!(idle >= 0.15) || !(f->kernel_p50 < 2 * call) || !(launching >= 0.1)) return;
    j->launch_bound = true;
    struct run_finding *x = START(
        j, idle,
        "kernels are too short for their launches: the median runs %s, its call takes %s; idle %s of the time",
        show_time(f->kernel_p50).s, show_time(call).s, show_percent(idle).s);
    EVIDENCE(j, x, {"kernel_p50_us", f->kernel_p50 / 1e3}, {"launch_call_p50_us", call / 1e3},
             {"idle_share", idle}, {"in_launch_calls", launching});
}

static void waits_for_results(struct gpu_judging *j)
{
    const struct gpu_facts *f = j->f;
    double idle = gpu_facts_idle(f, "sync"), waits = per_step(f, (double)f->syncs.count);
    if (!(idle >= 0.05) && !(waits > 2 && idle >= 0.01)) return;
    struct run_finding *x =
        isfinite(waits)
            ? START(j, idle, "the program waits for results %s times a step: idle %s of the time",
                    show_number(waits).s, show_percent(idle).s)
            : START(j, idle, "the program waits for results before it launches more: idle %s of the time",
                    show_percent(idle).s);
    if (x) x->severity = severity(idle, 0.05);
    EVIDENCE(j, x, {"idle_share", idle}, {"waits", (double)f->syncs.count}, {"waits_per_step", waits},
             {"in_waits", of_wall(f, f->syncs.ns)});
}

static void waits_for_data(struct gpu_judging *j)
{
    const struct gpu_facts *f = j->f;
    double idle = gpu_facts_idle(f, "host-waiting");
    if (!(idle >= 0.05)) return;
    struct run_finding *x =
        START(j, idle, "the launching thread waits for data, a lock or another process: idle %s of the time",
              show_percent(idle).s);
    EVIDENCE(j, x, {"idle_share", idle}, {"busy", busy(f)});
}

/* ---- 4, 5, 6, 21, 23: copies ---- */

static void pageable(struct gpu_judging *j)
{
    enum { SMALL = 16 << 10 };
    const struct gpu_facts *f = j->f;
    double bytes = per_step(f, f->pageable.bytes),
           time = of_wall(f, f->pageable.ns) + gpu_facts_idle(f, "copy");
    if (!f->pageable.count || f->pageable.bytes / (double)f->pageable.count < SMALL) return;
    if (!(bytes >= 1e6) && !(time >= 0.02)) return;
    struct run_finding *x =
        START(j, time, "copies from and to pageable memory: %s, %s of the time with what they hold up",
              show_bytes(f->pageable.bytes).s, show_percent(time).s);
    if (x) x->severity = severity(time, 0.05);
    EVIDENCE(j, x, {"copies", (double)f->pageable.count}, {"bytes_per_step", bytes},
             {"GB_per_s", f->pageable.bytes / f->pageable.ns}, {"time_share", time});
}

/* The time in which copies ran alone, as far as they are between host and card. */
static void exposed_copies(struct gpu_judging *j)
{
    const struct gpu_facts *f = j->f;
    double alone = OR_NAN(f->steady.exposed_copy_ns), all = OR_NAN(f->steady.copy_ns);
    double share = all > 0 ? of_wall(f, alone * fmin(1, f->host_copies.ns / all)) : NAN;
    if (!(share >= 0.05)) return;
    struct run_finding *x =
        START(j, share, "copies between host and GPU run while nothing computes: %s of the time",
              show_percent(share).s);
    EVIDENCE(j, x, {"exposed_share", share}, {"copies", (double)f->host_copies.count},
             {"MB", f->host_copies.bytes / 1e6});
}

static void small_copies(struct gpu_judging *j)
{
    const struct gpu_facts *f = j->f;
    double count = per_step(f, (double)f->host_copies.count);
    double mean = f->host_copies.count ? f->host_copies.bytes / (double)f->host_copies.count : NAN;
    if (!(count > 50) || !(mean < 65536)) return;
    double time = of_wall(f, f->host_copies.ns) + gpu_facts_idle(f, "copy");
    struct run_finding *x =
        START(j, time, "%s small copies a step, of %s on average", show_number(count).s, show_bytes(mean).s);
    EVIDENCE(j, x, {"copies_per_step", count}, {"mean_bytes", mean}, {"time_share", time});
}

static void layout(struct gpu_judging *j)
{
    const struct gpu_facts *f = j->f;
    double work = f->kernels.ns + f->on_device.ns, moved = f->layout.ns + f->on_device.ns;
    double share = work > 0 ? moved / work : NAN;
    if (!(share >= 0.1)) return;
    struct run_finding *x = START(
        j, of_wall(f, moved), "copies on the card and transposes take %s of its work", show_percent(share).s);
    EVIDENCE(j, x, {"share", share}, {"copies", (double)f->on_device.count},
             {"transposes", (double)f->layout.count});
}

static void copies_each_run(struct gpu_judging *j)
{
    const struct gpu_facts *f = j->f;
    double in = per_step(f, (double)f->to_device), out = per_step(f, (double)f->to_host);
    if (!f->onnxruntime || !(in >= 0.9 || out >= 0.9)) return;
    double time = of_wall(f, f->host_copies.ns) + gpu_facts_idle(f, "copy");
    struct run_finding *x = START(j, time, "every run of ONNX Runtime copies: %s in, %s out, %s of the time",
                                  show_number(in).s, show_number(out).s, show_percent(time).s);
    EVIDENCE(j, x, {"to_device_per_run", in}, {"to_host_per_run", out}, {"time_share", time});
}

/* ---- 8: communication ---- */

static void exposed_communication(struct gpu_judging *j)
{
    const struct gpu_facts *f = j->f;
    double share = of_wall(f, OR_NAN(f->steady.exposed_communication_ns));
    if (!(share >= 0.1)) return;
    struct run_finding *x =
        START(j, share, "communication runs while nothing computes: %s of the time", show_percent(share).s);
    EVIDENCE(j, x, {"exposed_share", share});
}

/* ---- 9: ranks ---- */

/* A collective lasts until the last rank has come: what the others wait in it is not transfer. */
static void rank_skew(struct gpu_judging *j)
{
    const struct gpu_job *job = j->job;
    double waiting = 0, talking = 0, wall = 0, skew = OR_NAN(job->compute_skew);
    for (size_t i = 0; i < job->ranks.n; i++) {
        const struct gpu_rank *r = job->ranks.at[i];
        if (!r->waiting_ns.known || !r->communication_ns.known || !r->wall_ns.known) continue;
        waiting += (double)r->waiting_ns.v;
        talking += (double)r->communication_ns.v;
        wall += (double)r->wall_ns.v;
    }
    double share = talking > 0 ? waiting / talking : NAN;
    if (!(skew > 1.1) && !(share > 0.5)) return;
    const double gain = wall > 0 ? waiting / wall : NAN;
    struct run_finding *x =
        isfinite(skew)
            ? START(j, gain,
                    "ranks wait for one another: the longest computing time is %s times the shortest",
                    show_number(skew).s)
            : START(j, gain, "ranks wait for one another: %s of the time in which they communicate",
                    show_percent(share).s);
    EVIDENCE(j, x, {"compute_skew", skew}, {"waiting_of_communication", share},
             {"ranks", (double)job->ranks.n});
    const struct gpu_rank *slowest =
        job->slowest.known && job->slowest.v < job->ranks.n ? job->ranks.at[job->slowest.v] : NULL;
    if (slowest && slowest->rank.known) finding_number(&j->base, x, "slowest_rank", (double)slowest->rank.v);
}

/* ---- 10, 11, 12, 20: kernels ---- */

/* By name where the card has no counters for it; where it has, they must agree. */
static void no_tensor_cores(struct gpu_judging *j)
{
    const struct gpu_facts *f = j->f;
    double plain = of_kernels(f, f->plain_matmul.ns), tensor = f->meter.tensor / fmax(busy(f), 1e-3);
    if (!(plain >= 0.1) || f->seen->capability < 0x700 || tensor >= 0.05) return;
    struct run_finding *x =
        isfinite(tensor)
            ? START(
                  j, NAN,
                  "%s of kernel time multiplies without tensor cores, which were at work %s of the busy time",
                  show_percent(plain).s, show_percent(tensor).s)
            : START(j, NAN, "%s of kernel time multiplies without tensor cores, by the names of kernels",
                    show_percent(plain).s);
    if (x && isfinite(tensor)) x->basis = "kernels by name, tensor cores measured by the card";
    if (x) x->severity = severity(plain, 0.3);
    finding_gain(x, of_wall(f, f->plain_matmul.ns));
    EVIDENCE(j, x, {"plain_matmul_share", plain}, {"tensor_while_busy", tensor});
}

static void unfused(struct gpu_judging *j)
{
    const struct gpu_facts *f = j->f;
    double share = of_kernels(f, f->glue.ns), mean = f->glue.count ? f->glue.ns / (double)f->glue.count : NAN;
    if (!(share >= 0.3) || !(mean < 50e3)) return;
    struct run_finding *x =
        START(j, of_wall(f, f->glue.ns),
              "element-wise kernels, reductions and copies take %s of kernel time, %s each",
              show_percent(share).s, show_time(mean).s);
    EVIDENCE(j, x, {"share", share}, {"kernels", (double)f->glue.count}, {"mean_us", mean / 1e3},
             {"memory_bandwidth_used", f->meter.dram});
}

static void underfilled(struct gpu_judging *j)
{
    const struct gpu_facts *f = j->f;
    double share = of_kernels(f, f->under.ns);
    if (!(share >= 0.2)) return;
    j->underfilled = of_wall(f, f->empty_ns) >= GAIN_LEAST;
    struct run_finding *x =
        START(j, of_wall(f, f->empty_ns),
              "kernels with fewer blocks than the GPU has multiprocessors take %s of kernel time",
              show_percent(share).s);
    EVIDENCE(j, x, {"share", share}, {"kernels", (double)f->under.count},
             {"multiprocessors", OR_NAN(f->seen->out.multiprocessors)}, {"sm_active", f->meter.sm_active});
}

static void one_stream(struct gpu_judging *j)
{
    const struct gpu_facts *f = j->f;
    if (!j->underfilled || f->seen->streams != 1) return;
    struct run_finding *x = START(j, of_wall(f, f->empty_ns),
                                  "all kernels run on one stream, and %s of their time leaves "
                                  "multiprocessors empty",
                                  show_percent(of_kernels(f, f->under.ns)).s);
    EVIDENCE(j, x, {"streams", 1});
}

/* ---- 13, 14, 15: memory ---- */

static void allocation(struct gpu_judging *j)
{
    const struct gpu_facts *f = j->f;
    double time = of_wall(f, f->allocations.ns), idle = gpu_facts_idle(f, "allocation");
    if (f->allocations.count < 2 && !(time >= 0.01)) return;
    struct run_finding *x = START(j, fmax(idle, time),
                                  "memory is taken from the driver or given back after the start: %s, %s "
                                  "of the time",
                                  show_count((double)f->allocations.count, "call").s, show_percent(time).s);
    if (x) x->severity = severity(time, 0.01);
    EVIDENCE(j, x, {"calls", (double)f->allocations.count},
             {"per_step", per_step(f, (double)f->allocations.count)}, {"time_share", time},
             {"idle_share", idle});
}

/* Of the card as a whole where it was sampled, else what this process took. */
static double memory_share(const struct gpu_facts *f)
{
    double own = OR_NAN(f->seen->out.memory_peak_bytes) / OR_NAN(f->seen->out.memory_bytes);
    return fmax(f->meter.memory_share, own);
}

static void memory_full(struct gpu_judging *j)
{
    double share = memory_share(j->f);
    if (!(share > 0.9)) return;
    struct run_finding *x = START(j, NAN, "memory of the GPU was %s full at its peak", show_percent(share).s);
    EVIDENCE(j, x, {"peak_share", share}, {"peak_bytes", OR_NAN(j->f->seen->out.memory_peak_bytes)});
}

static void memory_free(struct gpu_judging *j)
{
    double share = memory_share(j->f);
    if (!(share < 0.5) || (!j->launch_bound && !j->underfilled)) return;
    struct run_finding *x =
        START(j, NAN, "only %s of the GPU's memory is in use, and its work is in small pieces",
              show_percent(share).s);
    EVIDENCE(j, x, {"peak_share", share});
}

/* ---- 16, 17, 22: the card ---- */

static void clock_low(struct gpu_judging *j)
{
    const struct gpu_metered *m = &j->f->meter;
    struct run_finding *x = NULL;
    if (m->throttled >= 0.05)
        x = START(j, NAN, "the clock was held down by heat or by the hardware in %s of the samples",
                  show_percent(m->throttled).s);
    else if (m->clock < 0.9)
        x = START(j, NAN, "the clock ran at %s of its highest", show_percent(m->clock).s);
    else if (m->power_capped >= 0.05)
        x = START(j, NAN, "the power limit held the clock down in %s of the samples",
                  show_percent(m->power_capped).s);
    if (x && !(m->throttled >= 0.05)) {
        x->severity = "info";
        finding_action(
            &j->base, x,
            "the power limit alone is normal under dense matrix products; else see cooling and the limit");
    }
    EVIDENCE(j, x, {"throttled", m->throttled}, {"power_capped", m->power_capped},
             {"clock_of_highest", m->clock});
}

static void slow_link(struct gpu_judging *j)
{
    double link = j->f->meter.pcie_link;
    if (!(link < 0.99)) return;
    struct run_finding *x =
        START(j, NAN, "the PCIe link ran at %s of its speed under load", show_percent(link).s);
    EVIDENCE(j, x, {"link_of_fastest", link});
}

static void idle_energy(struct gpu_judging *j)
{
    const struct gpu_metered *m = &j->f->meter;
    double share = m->joules_idle / m->joules;
    if (!(share >= 0.15)) return;
    struct run_finding *x = START(
        j, NAN, "%s of the GPU's energy went into time in which nothing ran (%s W, %s)",
        show_percent(share).s, show_number(m->idle_watts).s, show_time(j->f->wall * (1 - busy(j->f))).s);
    EVIDENCE(j, x, {"idle_energy_share", share}, {"idle_watts", m->idle_watts}, {"joules", m->joules},
             {"window_s", m->window_ns / 1e9});
}

/* ---- 18, 19, 24 ---- */

static void loading(struct gpu_judging *j)
{
    double share = of_wall(j->f, j->f->loading_ns);
    if (!(share >= 0.01)) return;
    struct run_finding *x = START(
        j, share, "code is still loaded or compiled after the start: %s of the time", show_percent(share).s);
    EVIDENCE(j, x, {"time_share", share});
}

static void uneven_steps(struct gpu_judging *j)
{
    enum { STEPS_LEAST = 20 };
    const struct gpu_facts *f = j->f;
    double ratio = f->step_ns.known ? (double)f->step_ns.p95 / (double)f->step_ns.p50 : NAN;
    if (!(ratio > 1.2) || f->steps < STEPS_LEAST) return;
    struct run_finding *x = START(j, NAN, "steps are uneven: p50 %s, p95 %s",
                                  show_time((double)f->step_ns.p50).s, show_time((double)f->step_ns.p95).s);
    EVIDENCE(j, x, {"p95_over_p50", ratio}, {"steps", f->steps});
}

static void own_cost(struct gpu_judging *j)
{
    double share = of_wall(j->f, j->f->own_ns);
    if (!(share >= 0.05)) return;
    struct run_finding *x = START(j, share, "recording itself took %s of the time on a thread of the program",
                                  show_percent(share).s);
    EVIDENCE(j, x, {"time_share", share});
}

/* ---- the table ---- */

#define RULE(id_, severity_, action_) {.id = id_, .severity = severity_, .action = action_}
static const struct gpu_rule rules[] = {
    {RULE("gpu.own-cost", "warn",
          "record less: --no-gpu-calls, --gpu-graphs, or a part of the program (tare.gpu())"),
     own_cost, MEASURED,
     "the program takes as long without --gpu", false, false},
    {RULE("gpu.mostly-idle", "info",
          NULL),
     mostly_idle, MEASURED,
     "records are missing: see what is lost", false, true},
    {RULE("gpu.launch-bound", "warn",
          "CUDA graphs, torch.compile(mode=\"reduce-overhead\"), a larger batch, fused optimizers"),
     launch_bound, MEASURED,
     "a larger batch takes as much longer as it is larger", true, true},
    {RULE("gpu.waits-for-results", "warn",
          "remove .item(), .cpu() and print() of tensors from the loop, or do them every N steps"),
     waits_for_results, MEASURED,
     "the loop takes as long without them", true, true},
    {RULE("gpu.waits-for-data", "warn",
          "more or persistent loader workers, prefetching, faster storage"),
     waits_for_data, "measured: the thread was looked at every 10 ms",
     "the same batch again and again takes as long", true, true},
    {RULE("gpu.copy-pageable", "warn",
          "pin_memory=True in the loader and non_blocking=True; not .pin_memory() in the loop"),
     pageable, MEASURED,
     "pinned memory takes as long", true, false},
    {RULE("gpu.copy-exposed", "warn",
          "copy the next batch on another stream while this one computes; keep data on the GPU"),
     exposed_copies, MEASURED,
     "the copy needs what is computed just before it", false, false},
    {RULE("gpu.copies-small", "info",
          "copy many small tensors as one; keep indices and scalars on the GPU"),
     small_copies, MEASURED,
     "they run beside kernels and nothing waits for them", true, false},
    {RULE("gpu.copies-each-run", "info",
          "IoBinding; see which nodes fell back to the CPU; enable_cuda_graph"),
     copies_each_run, MEASURED,
     "inputs and results must cross the bus in every run anyway", false, false},
    {RULE("gpu.communication-exposed", "warn",
          "overlap gradient buckets, larger micro-batches, gradient accumulation; check the topology"),
     exposed_communication, MEASURED,
     "most of it is waiting for a slower rank: see the ranks", false, false},
    {RULE("gpu.no-tensor-cores", "info",
          "bf16 autocast, torch.set_float32_matmul_precision(\"high\"), sizes that are multiples of 8"),
     no_tensor_cores, BY_NAME,
     "the numbers need full fp32", false, false},
    {RULE("gpu.unfused", "info",
          "fuse them: torch.compile, fused norms and optimizers"),
     unfused, BY_NAME,
     "they already run at the full memory bandwidth", false, false},
    {RULE("gpu.underfilled", "info",
          "a larger batch or tile, split-K, several streams"),
     underfilled, BY_SHAPE,
     "several of them run at the same time", false, false},
    {RULE("gpu.one-stream", "info",
          "run independent work on several streams, or batch it"),
     one_stream, BY_SHAPE,
     "each kernel needs the one before it", false, false},
    {RULE("gpu.layout", "info",
          "channels_last, contiguous() once and not in every step"),
     layout, "copies measured, transposes " BY_NAME,
     "the copies are part of the algorithm", false, false},
    {RULE("gpu.allocation", "info",
          "keep shapes the same, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, reuse buffers, no "
          "empty_cache()"),
     allocation, MEASURED,
     "the calls happen beside a GPU that is busy", true, false},
    {RULE("gpu.memory-full", "warn",
          "activation checkpointing, a smaller batch, offloading"),
     memory_full, MEASURED,
     "a caching allocator holds memory that it does not need", false, false},
    {RULE("gpu.memory-free", "info",
          "a larger batch"),
     memory_free, MEASURED,
     "the batch is bound by latency", false, false},
    {RULE("gpu.clock-low", "warn",
          "see cooling and the power limit of the card"),
     clock_low, "measured by samples of the card",
     "the clock was set by hand", false, false},
    {RULE("gpu.slow-link", "info",
          "see the slot, the riser and the BIOS settings"),
     slow_link, "measured by samples of the card",
     "nothing is copied", false, false},
    {RULE("gpu.loading", "info",
          "warm up with every shape, keep a compile cache, CUDA_MODULE_LOADING=EAGER"),
     loading, MEASURED,
     "the recording is of the start only", false, false},
    {RULE("gpu.steps-uneven", "info",
          "look at what else happens in long steps: garbage collection, checkpoints, the loader, the "
          "clock"),
     uneven_steps, MEASURED,
     "steps are of different sizes", false, false},
    {RULE("gpu.idle-energy", "info",
          "batch the work, let others use the GPU, or lower its clocks while it waits"),
     idle_energy, "measured by the card's counter, idle power by samples",
     "other programs used the GPU", false, false},
    {{.id = NULL}, NULL, NULL, NULL, false, false},
};

static const struct gpu_rule job_rules[] = {
    {RULE("gpu.rank-skew", "warn",
          "see what the slowest rank does more: its data, its processor, its clock; share the work evenly"),
     rank_skew, MEASURED,
     "the same rank is not the last one in a second recording", false, false},
    {{.id = NULL}, NULL, NULL, NULL, false, false},
};

static struct run_finding *add_finding(void *to, const char *id, const char *of)
{
    struct gpu_profile *p = to;
    struct run_finding *f = RUN_LIST_ADD(&p->arena, &p->findings);
    if (!f) return NULL;
    f->id = id;
    f->severity = of;
    return f;
}

/* What is grave first, then what can win most; else in the order of the rules. */
static double weight(const struct run_finding *f)
{
    static const char *const order[] = {"info", "warn", "critical"};
    double w = f->gain.known ? f->gain.v : 0;
    for (size_t i = 0; i < 3; i++)
        if (strcmp(f->severity, order[i]) == 0) w += 2 * (double)i;
    return w;
}

static void sort_findings(struct gpu_profile *p)
{
    for (size_t i = 1; i < p->findings.n; i++) {
        struct run_finding *f = p->findings.at[i];
        size_t at = i;
        for (; at && weight(p->findings.at[at - 1]) < weight(f); at--)
            p->findings.at[at] = p->findings.at[at - 1];
        p->findings.at[at] = f;
    }
}

/* What can win next to nothing is left out, but for what the recording itself cost. */
static void drop_small(struct gpu_profile *p, size_t from)
{
    size_t kept = from;
    for (size_t i = from; i < p->findings.n; i++) {
        struct run_finding *f = p->findings.at[i];
        if (!f->gain.known || f->gain.v >= GAIN_LEAST) p->findings.at[kept++] = f;
    }
    p->findings.n = kept;
}

/* Which GPU it is about is said where there are several. */
static void name_card(struct gpu_profile *p, size_t from, const struct gpu_facts *f)
{
    for (size_t i = from; i < p->findings.n; i++)
        p->findings.at[i]->case_name =
            arena_printf(&p->arena, "gpu %llu", (unsigned long long)f->seen->out.number);
}

tare_status gpu_rules(struct gpu_profile *p, const struct gpu_facts *facts, size_t n, tare_error *err)
{
    bool failed = false;
    for (size_t i = 0; i < n; i++) {
        const struct gpu_facts *f = &facts[i];
        struct gpu_judging j = {.base = {.arena = &p->arena, .add = add_finding, .to = p}, .f = f};
        const size_t before = p->findings.n;
        for (const struct gpu_rule *r = rules; r->base.id && f->wall > 0; r++) {
            if ((r->host_side && f->deep > 0.9) || (r->needs_gaps && !f->complete)) continue;
            j.base.rule = &r->base;
            r->judge(&j);
        }
        drop_small(p, before);
        if (n > 1) name_card(p, before, f);
        failed |= j.base.failed;
    }
    struct gpu_judging j = {.base = {.arena = &p->arena, .add = add_finding, .to = p}, .job = &p->job};
    for (const struct gpu_rule *r = job_rules; r->base.id && p->job.known; r++) {
        j.base.rule = &r->base;
        r->judge(&j);
    }
    failed |= j.base.failed;
    sort_findings(p);
    return failed || p->arena.failed ? error_nomem(err, "the findings") : TARE_OK;
}
