/* SPDX-License-Identifier: MIT
 * reasons.c - why what is null in a run document is unknown: what each producer says of a field unless it knows better.
 * One row per field, one column per producer; a row covers everything inside its field that has no row of its own. */
#include <string.h>

#include "run/fields.h"
#include "run/run.h"

struct reason {
    const char *path;
    const char *why[RUN_PRODUCERS]; /* NULL: this producer always knows it, or gives its own reason */
};

static const char off_gpu[] = "it is no model that ran on a GPU";
static const char of_cards[] = "of models under tare bench only; gpu.devices has the cards' memory";
static const char off_card[] = "tare bench does not read it from the card";
static const char not_passed[] = "known of a recorded pass alone (--layers)";
static const char once[] = "the program ran once";
static const char uncounted[] = "a watched program counts nothing";
static const char no_model[] = "a command, not a model";
static const char nothing[] = "nothing was run";
static const char untold[] = "the file does not tell";
static const char unprofiled[] = "not asked for: latency is measured without per-layer profiling";
static const char graph_only[] = "what a graph costs does not depend on the machine";
static const char elsewhere[] = "the file does not say where it was made";
static const char per_process[] = "the kernel does not count it per process";
static const char no_process_probe[] = "the process probe was not on, or may not read it";
static const char unstaged[] = "a command is not loaded apart from running";
static const char whole_machine[] = "networks are counted for the whole machine: watch.metrics";

/* bench, run, inspect, import */
/* clang-format off */
static const struct reason of_cases[] = {
    {"samples", {NULL, NULL, nothing, untold}},
    {"calls_per_sample", {"each run is timed by itself", once, nothing, untold}},
    {"warmup_runs", {NULL, "nothing was run before it", nothing, untold}},
    {"unit", {NULL, uncounted, nothing, untold}},
    {"units_per_run", {NULL, uncounted, nothing, untold}},
    {"confidence", {NULL, once, nothing, untold}},
    {"load_ns", {NULL, "a program is not loaded apart from running", nothing, untold}},
    {"first_run_ns", {NULL, once, nothing, untold}},
    {"failed_runs", {NULL, once, nothing, untold}},
    {"refused", {"only tare tune refuses a configuration", once, nothing, untold}},
    {"failure", {"no run failed", "the program ran once: watch.exit_code", nothing, untold}},
    {"latency_ns", {NULL, once, nothing, untold}},
    {"samples_raw", {NULL, once, nothing, untold}},
    {"throughput", {NULL, uncounted, nothing, untold}},
    {"memory", {NULL, "only known of processes that tare itself is", nothing, untold}},
    {"memory.rss_mean", {NULL, "the process probe was not on, or the program ended before the first sample"}},
    {"memory.gpu_peak", {off_gpu, of_cards}},
    {"memory.gpu_held", {off_gpu, of_cards}},
    {"memory.gpu_arena", {off_gpu, of_cards}},
    {"cpu", {NULL, NULL, nothing, untold}},
    {"cpu.steal", {NULL, "the system probe was not on, or this kernel does not tell"}},
    {"cpu.throttled_ns", {NULL, "there is no CPU quota here, or the cgroup probe was not on"}},
    {"outliers", {NULL, once, nothing, untold}},
    {"io", {NULL, NULL, nothing, untold}},
    {"io.read_ops", {per_process, no_process_probe}},
    {"io.write_ops", {per_process, no_process_probe}},
    {"io.net_rx_bytes", {per_process, whole_machine}},
    {"io.net_tx_bytes", {per_process, whole_machine}},
    {"gpu", {"GPUs are not watched: memory is the process's, on the host", "no GPU was seen", nothing, untold}},
    {"gpu.devices", {off_card}},
    {"gpu.kernel_ns", {not_passed}},
    {"gpu.copy_ns", {not_passed}},
    {"gpu.copy_bytes", {not_passed}},
    {"gpu.pass", {not_passed}},
    {"energy", {"no energy counter was watched", "no energy counter can be read here", nothing, untold}},
    {"accuracy", {"nothing to compare the outputs with", "nothing to compare with", nothing, untold}},
    {"accuracy.baseline", {"no score to hold was given"}},
    {"nan_outputs", {"its outputs were not looked at", no_model, nothing, untold}},
    {"cost", {unprofiled, no_model, NULL, "no model was given (--model), or its dimensions are unknown"}},
    {"layers", {unprofiled, no_model, NULL, NULL}},
    {"graph", {unprofiled, no_model, NULL, "no model was given (--model)"}},
    {"profile", {unprofiled, no_model, nothing, untold}},
    {"launches", {"a single launch (--repeat)", once, nothing, untold}},
    {"anchored", {"no anchor was measured beside it (--anchor)", once, nothing, untold}},
    {"allocations", {"not asked for (--memory)", "its trace has them: tare run --memory", nothing, untold}},
    {"allocations.first", {unstaged}},
    {"allocations.load", {unstaged}},
    {"allocations.lost", {"none was lost"}},
    {"allocations.sizes", {"they are larger than all of these"}},
    {"allocations.sites", {"its function is known, or neither stack nor library tell"}},
    {"allocations.other_sites", {"none is left out"}},
    {"watch", {"of programs under tare run only", "not seen, or not the case, during this run", nothing, untold}},
    {"stability", {NULL, once, nothing, untold}},
    {"stability.half_width", {"too few runs for an interval"}},
    {"stability.half_width_percentile", {"no percentile was asked for (--percentile), or too few runs"}},
    {"stability.steady", {"the warm-up was not judged"}},
    {"stability.migrations", {"the kernel does not tell"}},
    {"stability.moves", {"runs on a schedule (--rate) are left where they are"}},
    {"open_loop", {"runs were not offered at a rate (--rate)", once, nothing, untold}},
    {"stream", {"no language model was asked (--llm)", once, nothing, untold}},
    {"stream.goodput", {"no limits were given (--slo)"}},
    {"stream.ttft_answer_ns", {"no answer said anything but reasoning"}},
    {"stream.tokens_in", {"the server does not tell"}},
    {"stream.tokens_cached", {"the server does not tell"}},
    {"http", {"it is no service behind an address (tare bench http://..)", once, nothing, untold}},
    {"http.last_answer_ns", {"none was answered"}},
    {"self.ns_per_run", {"nothing was sent"}},
    {"http.asked", {"each request was another, its answer a stream, or none was answered"}},
    {"http.distinct", {"no request was answered twice, or its answer was a stream"}},
    {"http.client_ns", {"none was sent"}},
    {"http.faults", {"none failed"}},
    {"http.statuses", {"none was answered"}},
    {"http.over_time", {"nothing was due"}},
    {"http.server", {"its processes were not named (--pid)"}},
    {"self", {NULL, once, nothing, untold}},
};

static const struct reason of_hosts[] = {
    {"fingerprint", {NULL, NULL, graph_only, elsewhere}},
    {"hostname", {NULL, NULL, graph_only, elsewhere}},
    {"os", {NULL, NULL, graph_only, elsewhere}},
    {"kernel", {NULL, NULL, graph_only, elsewhere}},
    {"arch", {NULL, NULL, graph_only, elsewhere}},
    {"cpu", {NULL, NULL, graph_only, elsewhere}},
    {"memory_bytes", {NULL, NULL, graph_only, elsewhere}},
    {"virtual", {NULL, NULL, graph_only, elsewhere}},
    {"governor", {NULL, NULL, graph_only, elsewhere}},
    {"cgroup", {NULL, NULL, graph_only, elsewhere}},
    {"load1", {NULL, NULL, graph_only, elsewhere}},
};
/* clang-format on */

/* ---- nulls without a reason ---- */

/* Called for each: where in the whole, and where in the host or case whose reasons `unknown` has. */
typedef void null_fn(void *ctx, const char *whole, const char *path, struct run_map *unknown);

struct walk {
    null_fn *each;
    void *ctx;
    struct run_map *unknown;
    size_t depth; /* steps of the path above the object that holds `unknown` */
};

static bool is_null(const struct run_field *f, const void *p)
{
    size_t n;
    switch (f->kind) {
    case FIELD_STRING: return !*(const char *const *)p;
    case FIELD_LIST: memcpy(&n, (const char *)p + sizeof(void *), sizeof n); return n == 0;
    case FIELD_MAP:
    case FIELD_REASONS:
    case FIELD_COUNTS: return false;
    default: return !(f->flags & FIELD_PLAIN) && !*(const bool *)p;
    }
}

static void walk_object(struct walk *w, const struct run_type *t, void *obj, const struct path *at);

/* Calls back for each null that has no reason yet. Inside of an object that is null as a whole nothing is
 * asked: one reason covers all of it. */
static void walk_field(struct walk *w, const struct run_field *f, void *p, const struct path *at)
{
    char whole[256], path[256];
    if (!(f->flags & FIELD_REQUIRED) && is_null(f, p)) {
        path_text_below(at, w->depth, path, sizeof path);
        if (w->unknown && !run_reason(w->unknown, path))
            w->each(w->ctx, path_text(at, whole, sizeof whole), path, w->unknown);
    } else if (f->kind == FIELD_OBJECT) {
        walk_object(w, f->type, p, at);
    } else if (f->kind == FIELD_LIST) {
        void **items;
        size_t n;
        memcpy(&items, p, sizeof items);
        memcpy(&n, (const char *)p + sizeof items, sizeof n);
        for (size_t i = 0; i < n; i++) {
            struct path here = {at, NULL, i};
            walk_object(w, f->type, items[i], &here);
        }
    }
}

static void walk_object(struct walk *w, const struct run_type *t, void *obj, const struct path *at)
{
    const struct run_field *reasons = field_find(t, "unknown");
    struct walk inner = *w;
    if (reasons) {
        inner.unknown = (struct run_map *)((char *)obj + reasons->offset);
        inner.depth = path_depth(at);
    }
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct run_field *f = &t->fields[i];
        struct path here = {at, f->key, 0};
        walk_field(&inner, f, (char *)obj + f->offset, &here);
    }
}

static void add_line(void *ctx, const char *whole, const char *path, struct run_map *unknown)
{
    (void)path;
    (void)unknown;
    buf_printf(ctx, "%s\n", whole);
}

tare_status run_unexplained(struct run *r, struct buf *out, tare_error *err)
{
    const struct path root = {NULL, NULL, 0};
    struct walk w = {.each = add_line, .ctx = out};
    walk_object(&w, run_form.type, r, &root);
    return buf_status(out, err);
}

/* ---- reasons for them ---- */

struct explaining {
    struct arena *arena;
    enum run_producer by;
    const struct reason *rows;
    size_t n;
};

/* By the row of the field itself, else of the nearest part around it that this producer speaks of. */
static void explain_null(void *ctx, const char *whole, const char *path, struct run_map *unknown)
{
    const struct explaining *e = ctx;
    const struct reason *best = NULL;
    (void)whole;
    for (size_t i = 0; i < e->n; i++) {
        const struct reason *r = &e->rows[i];
        size_t n = strlen(r->path);
        bool covers = strncmp(path, r->path, n) == 0 && (path[n] == 0 || path[n] == '.' || path[n] == '[');
        if (covers && r->why[e->by] && (!best || n > strlen(best->path))) best = r;
    }
    if (best) run_map_text(e->arena, unknown, best->path, best->why[e->by]);
}

/* A case that failed has no numbers, all for one reason. */
static void explain_failed(void *ctx, const char *whole, const char *path, struct run_map *unknown)
{
    const struct explaining *e = ctx;
    (void)whole;
    run_map_text(e->arena, unknown, path, "the case failed");
}

static void explain(const struct run_type *type, void *obj, null_fn *each, struct explaining e)
{
    const struct path root = {NULL, NULL, 0};
    struct walk w = {.each = each, .ctx = &e};
    walk_object(&w, type, obj, &root);
}

void run_explain_case(struct run *r, struct run_case *c, enum run_producer by)
{
    explain(field_case, c, explain_null,
            (struct explaining){&r->arena, by, of_cases, sizeof of_cases / sizeof *of_cases});
}

void run_explain_failed(struct run *r, struct run_case *c)
{
    explain(field_case, c, explain_failed, (struct explaining){.arena = &r->arena});
}

void run_explain_host(struct run *r, enum run_producer by)
{
    explain(field_host, &r->host, explain_null,
            (struct explaining){&r->arena, by, of_hosts, sizeof of_hosts / sizeof *of_hosts});
}
