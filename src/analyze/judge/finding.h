/* SPDX-License-Identifier: MIT
 * finding.h - how findings are made. To add one:
 *   1. a line in FINDING_MAP, where it stands in the report,
 *   2. the function it names, in one of finding_*.c (a plain figure of a case: a row in finding_machine.c instead),
 *   3. a line in docs/judgement.md (a test holds it) and a test.
 * A function adds findings through finding_start() and stays silent when what it needs is unknown. Private to
 * src/analyze. */
#ifndef ANALYZE_FINDING_H
#define ANALYZE_FINDING_H

#include "analyze/judge/judge.h"
#include "core/fmt.h"
#include "analyze/judge/sweep.h"

/* In the order of the report: what spoils the numbers first, then what to do about the workload. Severity and action
 * are what findings get unless the function says otherwise; action NULL: it always does. By what find_NAME() is
 * called with:
 *   RUN    the run;                  CASE   each of its cases;
 *   SWEEP  each sweep over a parameter, not under open-loop load: throughput is what was offered there;
 *   SWEEP_ANY_LOAD  under open-loop load too;
 *   WORST  there is no function: a row of finding_machine.c has the figure and its limit;
 *   OTHER  nothing: another one tells it, or accuracy.c. */
#define FINDING_MAP(RUN, CASE, SWEEP, SWEEP_ANY_LOAD, WORST, OTHER)                                                    \
    CASE("outputs.not-finite", "critical", not_finite,                                                                 \
         "check the inputs (token ids, masks) and the precision: overflow is common in fp16")                          \
    CASE("runs.failed", "critical", failed,                                                                            \
         "mend the cause, or leave the case out; its numbers, if any, are of the others")                              \
    CASE("client.limited", "critical", client_limited,                                                                 \
         "offer less, or measure from a machine with a free processor and more ports; the numbers are of this client") \
    CASE("client.late", "warn", client_late,                                                                           \
         "stop other work on this machine: latencies hold this client's delay; http.service_ns does not")              \
    CASE("load.overloaded", "critical", overloaded,                                                                    \
         "latencies of this case say how long it was measured, not how fast it is; offer less, or see `tare plan` "    \
         "for the replicas it needs")                                                                                  \
    CASE("service.delayed-ack", "warn", delayed_ack,                                                                   \
         "let the service write head and body in one piece, or set TCP_NODELAY on its connections")                    \
    CASE("answers.surplus", "warn", surplus,                                                                           \
         "compare the Content-Length of an answer with its body: whoever asks gets it cut off")                        \
    CASE("answers.distinct", "info", distinct_answers, NULL)                                                           \
    CASE("service.limit", "info", service_limit, NULL)                                                                 \
    RUN("rate.found", "info", rate_found, NULL)                                                                        \
    CASE("stream.coalesced", "warn", coalesced,                                                                        \
         "look for buffering between here and the server (nginx: proxy_buffering off) and for compression; "           \
         "gaps say how events arrive, tpot how fast tokens are made")                                                  \
    CASE("stream.cached", "warn", cached,                                                                              \
         "with --cold each prompt begins with words of its own; leave it out only if users repeat prompts like "       \
         "this")                                                                                                       \
    RUN("stream.lengths", "warn", lengths,                                                                             \
         "give --output-tokens N --exact-output, where the server knows ignore_eos: longer answers take longer")       \
    CASE("stream.many-tokens", "info", many_tokens,                                                                    \
         "judge the speed of tokens by tpot; gap is what a reader sees")                                               \
    CASE("stream.uncounted", "info", uncounted,                                                                        \
         "tokens/s and tpot are of events; servers count where they know stream_options.include_usage")                \
    CASE("memory.leak", "critical", leak,                                                                              \
         "measure with more runs (--budget): a cache fills up and stops, a leak does not")                             \
    RUN("memory.limit", "warn", memory_limit,                                                                          \
        "use a smaller batch or variant, or a larger memory limit, before the kernel ends the process")                \
    CASE("accuracy.changed", "warn", accuracy, NULL)                                                                   \
    OTHER("answers.wrong", "warn", "look at these answers beside what was sent; `accuracy` has the score of all") \
    OTHER("accuracy.dropped", "critical", "do not use this configuration before its answers were looked at")           \
    RUN("gpu.unwatched", "warn", gpu_unwatched,                                                                        \
        "judge by the times; watch the card with `tare top` or `tare run` beside it")                                  \
    CASE("gpu.launch-bound", "warn", gpu_launch_bound,                                                                 \
         "use CUDA graphs or a larger batch, so that the GPU need not wait for each launch")                           \
    CASE("gpu.copies", "warn", gpu_copies,                                                                             \
         "keep inputs and outputs on the GPU (IoBinding): `--io host,gpu` measures what that brings")                  \
    CASE("provider.fallback", "warn", placement,                                                                       \
         "see which operators the provider lacks: each change of place copies tensors")                                \
    CASE("provider.fallback", "warn", layer_provider,                                                                  \
         "see which operators the provider lacks: each change of place copies tensors")                                \
    RUN("provider.copies", "info", copies,                                                                             \
        "keep neighbouring operators on one provider; bind inputs and outputs to its memory")                          \
    CASE("warmup.never-steady", "warn", never_steady,                                                                  \
         "measure longer (--budget), or look for what changes over time: caches, clocks, memory")                      \
    CASE("launches.spread", "info", launch_spread,                                                                     \
         "the numbers above are medians over launches, and so are their intervals")                                    \
    OTHER("latency.limit", "warn", "measure longer (--budget) where it is not known; else a smaller batch or model")   \
    RUN("launches.close", "info", launch_close, NULL)                                                                  \
    RUN("machine.unstable", "warn", unstable,                                                                          \
        "measure longer (--budget), or stop other work on this machine; `tare doctor` shows its noise")                \
    RUN("machine.no-interval", "warn", no_interval,                                                                    \
        "measure longer (--budget): until then their differences mean nothing")                                        \
    WORST("machine.throttled", "warn",                                                                                 \
          "raise the CPU limit of the container, or use no more threads than the quota has processors")                \
    WORST("machine.steal", "warn", "measure on a machine with processors of its own, or judge by CPU time")            \
    WORST("machine.preempted", "warn",                                                                                 \
          "stop other work, use fewer threads, or pin the process to processors of its own")                           \
    RUN("latency.outliers", "info", outliers,                                                                          \
        "look for what else ran at that time; whether the machine interrupted these runs is not known")                \
    RUN("threads.oversubscribed", "warn", threads_many, NULL)                                                          \
    SWEEP("threads.slower", "warn", threads_slower, "threads", NULL)                                                   \
    SWEEP("threads.no-gain", "info", threads_idle, "threads", NULL)                                                    \
    SWEEP("batch.too-small", "warn", batch_small, "batch", NULL)                                                       \
    SWEEP("batch.diminishing-returns", "info", batch_knee, "batch", NULL)                                              \
    SWEEP_ANY_LOAD("memory.per-batch", "info", batch_memory, "batch",                                                  \
                   "multiply by the largest batch you will allow before choosing it")                                  \
    SWEEP("input.long", "info", long_input, "seq", NULL)                                                               \
    SWEEP("variant.same", "info", variants, "variant", "choose by memory and quality, or measure longer")              \
    OTHER("variant.faster", "info", "use it where its quality is good enough")                                         \
    OTHER("variant.slower", "warn", "prefer the other, unless its memory matters more")                                \
    RUN("layer.far-from-roof", "info", far_from_roof, NULL)                                                            \
    RUN("graph.foldable", "info", foldable, NULL)                                                                      \
    RUN("graph.unfused", "info", unfused,                                                                              \
        "use the runtime's transformer optimiser, its highest optimisation level, or an export with a newer opset "    \
        "that has them as one operator")                                                                               \
    RUN("graph.transposes", "info", transposes,                                                                        \
        "store weights and inputs in the layout the runtime computes in, or export the model so that neighbouring "    \
        "transposes cancel")                                                                                           \
    RUN("attention.quadratic", "info", quadratic,                                                                      \
        "cut or split long inputs, sort batches by length, or use a model with windowed attention")                    \
    RUN("graph.precision", "info", precision, NULL)                                                                    \
    RUN("embedding.size", "info", embedding,                                                                           \
        "they cost memory and loading, hardly time: store them in fp16 or int8, or keep only the rows that your "      \
        "texts need")                                                                                                  \
    RUN("memory.arena", "info", arena,                                                                                 \
        "let the arena grow by what is asked, shrink it after a large run, or turn it off")                            \
    RUN("first-run.cost", "info", first_run, "run once with each input shape at start-up, before taking requests")     \
    RUN("load.cost", "info", load,                                                                                     \
        "load once and keep the process; saving the optimised model makes loading cheaper")                            \
    WORST("self.heavy", "warn",                                                                                        \
          "give each run more work (a larger batch): the runs are too short for a better measurement")                 \
    RUN("machine.virtual", "info", virtual_machine,                                                                    \
        "compare with interleaved runs on the same machine, not with numbers from another day")

struct judging;
typedef void find_in_run_fn(struct judging *j);
typedef void find_in_case_fn(struct judging *j, const struct run_case *c);
typedef void find_in_sweep_fn(struct judging *j, const struct run_case *const *cases, size_t n);

struct finding_rule {
    const char *id, *severity, *action;
    find_in_run_fn *in_run;
    find_in_case_fn *in_case;
    find_in_sweep_fn *in_sweep;
    const char *param; /* of the sweep */
    bool any_load;
};
const struct finding_rule *finding_rule(const char *id); /* of the map; the first of that id */

struct judging {
    struct run *run;                 /* NULL: the findings of another document */
    const struct finding_rule *rule; /* the one being checked */
    bool failed;                     /* no memory: findings_add() says so */
    struct arena *arena;             /* of the document, and how it gets a finding (NULL: no memory) */
    struct run_finding *(*add)(void *to, const char *id, const char *severity);
    void *to;
};
struct judging judging_of_run(struct run *run);
struct judging judging_as(struct run *run, const char *id); /* by that rule alone */

/* A finding of the current rule, of case `c` (NULL: of the whole run) with its title. NULL: no memory. */
struct run_finding *finding_start(struct judging *j, const struct run_case *c, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Each does nothing when `f` is NULL. A number that is not finite was not known: it is left out. */
void finding_action(struct judging *j, struct run_finding *f, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void finding_number(struct judging *j, struct run_finding *f, const char *key, double v);
/* What can be won at most, a share of the time; NAN: not known. */
void finding_gain(struct run_finding *f, double share);
/* Several: finding_numbers(j, f, {"threads", n}, {"usable", usable}) */
#define finding_numbers(j, f, ...)                                                                                     \
    finding_number_list(j, f, (const struct evidence[]){__VA_ARGS__, {NULL, 0}})
struct evidence {
    const char *key;
    double v;
};
void finding_number_list(struct judging *j, struct run_finding *f, const struct evidence *all);
#define OR_NAN(x) ((x).known ? (double)(x).v : NAN) /* of a known_u64, known_i64 or known_f64 */
void finding_text(struct judging *j, struct run_finding *f, const char *key, const char *v);
/* key, key_lo, key_hi */
void finding_estimate(struct judging *j, struct run_finding *f, const char *key, struct run_estimate e);

/* ---- settings the harness wrote into run->config ---- */

bool config_number(const struct run *run, const char *key, double *out);
bool run_is_open_loop(const struct run *run); /* then throughput is what was offered, not what is possible */

/* ---- what several files of rules share ---- */

/* The case with the greatest figure above a limit, and how many are above it: a rule that tells of the worst case only
 * gives one finding on a noisy machine, not one per case. */
typedef double figure_fn(const struct run *run, const struct run_case *c); /* NAN: unknown */
struct worst {
    const struct run_case *c; /* the first of equals; NULL: none above the limit */
    double figure;
    size_t above, of;
};
struct worst find_worst_case(const struct run *run, figure_fn *figure, double limit);

/* What one process may use on the run's machine: the control group's limit or all memory. NAN: unknown. */
double memory_room(const struct run *run);
/* The graph as it ran if that is known, else as the file has it. NULL: neither. */
const struct run_static *finding_graph(const struct run *run);
double graph_bytes(const struct run_static *s); /* read and written by one run; NAN: unknown */
const char *op_without_domain(const char *op);  /* "com.microsoft.FusedConv" -> "FusedConv" */
/* A share becomes a severity: a possible gain of a fifth is worth a warning. */
const char *gain_severity(double share);

/* ---- the functions ---- */

find_in_run_fn find_worst; /* of all WORST rows */
#define IN_RUN(id, severity, name, action) find_in_run_fn find_##name;
#define IN_CASE(id, severity, name, action) find_in_case_fn find_##name;
#define IN_SWEEP(id, severity, name, param, action) find_in_sweep_fn find_##name;
#define NOTHING(id, severity, action)
FINDING_MAP(IN_RUN, IN_CASE, IN_SWEEP, IN_SWEEP, NOTHING, NOTHING)
#undef IN_RUN
#undef IN_CASE
#undef IN_SWEEP
#undef NOTHING

#endif
