/* SPDX-License-Identifier: MIT
 * watch_record.c - the document of a watched program. What the kernel accounts for (processor time, peak memory,
 * faults) is taken from its own account at the end, the rest from the samples; what neither says is unknown, with a
 * reason. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "analyze/watch/carbon.h"
#include "analyze/watch/diagnose.h"
#include "analyze/watch/watched.h"
#include "probe/host.h"
#include "watch/watch.h"

#define BLOCK_BYTES UINT64_C(512) /* what getrusage counts I/O in */

static uint64_t time_ns(struct timeval t)
{
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_usec * 1000;
}

static double seconds(uint64_t at_ns, uint64_t start_ns)
{
    return at_ns > start_ns ? (double)(at_ns - start_ns) / 1e9 : 0;
}

/* ---- what was run ---- */

static void describe_list(struct run *run, const char *key, struct run_map items)
{
    run_map_set(&run->arena, &run->config, key, (struct run_value){.kind = RUN_LIST, .items = items});
}

/* What the probes cannot see here, a line each. */
static void describe_blind(struct run *run, const struct buf *blind)
{
    struct run_map lines = {0};
    for (const char *at = blind->data; *at;) {
        size_t n = strcspn(at, "\n");
        if (n) run_map_text(&run->arena, &lines, NULL, arena_str_n(&run->arena, at, n));
        at += n + (at[n] == '\n');
    }
    if (lines.n) describe_list(run, "not_seen", lines);
}

static void describe_command(struct run *run, const struct watcher *w)
{
    struct arena *a = &run->arena;
    if (!run->subject.name) run_describe_command(run, (const char *const *)w->options->command, false);
    run_map_real(a, &run->config, "interval_s", (double)w->options->interval.ns / 1e9);
    struct run_map names = {0};
    for (size_t i = 0; i < w->probes.items.n; i++)
        run_map_text(a, &names, NULL, w->probes.items.items[i]->ops->name);
    describe_list(run, "probes", names);
    describe_blind(run, &w->probes.blind);
    if (w->options->wait_all) run_map_bool(a, &run->config, "wait_all", true);
    gitstate_describe(run);
}

/* ---- from the kernel's account ---- */

/* One run of a program is one sample: its time is mean, least, greatest and median at once. */
static void record_usage(struct run_case *c, const struct child *child)
{
    const struct rusage *u = &child->use;
    uint64_t wall = child->end_ns - child->start_ns, user = time_ns(u->ru_utime),
             system = time_ns(u->ru_stime);
    struct run_estimate once = {.known = true, .value = (double)wall};
    c->samples = known_u64(1);
    c->latency_ns = (struct run_latency){
        .known = true, .mean = known_u64(wall), .min = known_u64(wall), .max = known_u64(wall), .p50 = once};
    c->cpu = (struct run_cpu){.known = true,
                              .user_ns = known_u64(user),
                              .system_ns = known_u64(system),
                              .voluntary_switches = known_u64((uint64_t)u->ru_nvcsw),
                              .involuntary_switches = known_u64((uint64_t)u->ru_nivcsw)};
    if (wall) c->cpu.utilization = known_f64((double)(user + system) / (double)wall);
    c->memory = (struct run_memory){.known = true,
                                    .rss_peak = known_u64((uint64_t)u->ru_maxrss * 1024),
                                    .minor_faults = known_u64((uint64_t)u->ru_minflt),
                                    .major_faults = known_u64((uint64_t)u->ru_majflt)};
    c->io = (struct run_io){.known = true,
                            .read_bytes = known_u64((uint64_t)u->ru_inblock * BLOCK_BYTES),
                            .write_bytes = known_u64((uint64_t)u->ru_oublock * BLOCK_BYTES)};
}

/* ---- from the samples ---- */

static struct known_u64 total_of(const struct run_watch *w, const char *metric, double factor)
{
    const struct run_metric *m = system_report_find(w, metric, "");
    return m && m->total.known ? known_u64((uint64_t)llround(m->total.v * factor)) : (struct known_u64){0};
}

/* What still runs has not been accounted for: then the samples know more. */
static void add_unreaped(struct run_case *c)
{
    struct known_u64 user = total_of(&c->watch, "process.cpu.user", 1e9);
    struct known_u64 system = total_of(&c->watch, "process.cpu.system", 1e9);
    if (!user.known || !system.known) return;
    if (user.v + system.v <= c->cpu.user_ns.v + c->cpu.system_ns.v) return;
    c->cpu.user_ns = user;
    c->cpu.system_ns = system;
    if (c->latency_ns.mean.v)
        c->cpu.utilization = known_f64((double)(user.v + system.v) / (double)c->latency_ns.mean.v);
}

/* What only samples tell: a mean, and peaks of the whole tree of processes. The program itself is one of those started.
 * Where something still runs, the kernel has not counted its times for us yet. */
static void record_sampled(struct run_case *c)
{
    struct run_watch *w = &c->watch;
    const struct run_metric *rss = system_report_find(w, "process.memory.rss", "");
    const struct run_metric *steal = system_report_find(w, "cpu.steal.share", "");
    const struct run_metric *started = system_report_find(w, "process.started", "");
    if (rss) {
        if (rss->mean.known) c->memory.rss_mean = known_u64((uint64_t)rss->mean.v);
        if (rss->max.known) w->tree_rss_peak = known_u64((uint64_t)rss->max.v);
        w->rss_peak_at_s = rss->at_max_s;
    }
    if (steal && steal->mean.known) c->cpu.steal = known_f64(fmin(steal->mean.v, 1));
    if (started && started->total.known) w->started = known_u64((uint64_t)started->total.v + 1);
    c->cpu.throttled_ns = total_of(w, "cgroup.cpu.throttled", 1e9);
    c->io.read_ops = total_of(w, "process.io.read_calls", 1);
    c->io.write_ops = total_of(w, "process.io.write_calls", 1);
    if (w->still_running.v) add_unreaped(c);
}

static struct known_f64 mean_of(const struct run_watch *w, const char *metric, const char *label)
{
    const struct run_metric *m = system_report_find(w, metric, label);
    return m ? m->mean : (struct known_f64){0};
}

static struct known_f64 share_of(const struct run_watch *w, const char *metric, const char *label)
{
    struct known_f64 v = mean_of(w, metric, label);
    if (v.known) v.v = fmin(fmax(v.v, 0), 1);
    return v;
}

/* A card is one that tells how much memory it has; averages of what it does, peaks of what it must hold. */
static void record_gpus(struct run *run, struct run_case *c)
{
    const struct run_watch *w = &c->watch;
    for (size_t i = 0; i < w->metrics.n; i++) {
        const char *label = w->metrics.at[i]->label;
        const struct run_metric *m;
        if (strcmp(w->metrics.at[i]->metric, "gpu.memory.total") != 0) continue;
        struct run_gpu_device *g = run_add_gpu_device(run, c);
        if (!g) return;
        c->gpu.known = true;
        g->index = known_u64(strtoull(label + strcspn(label, "0123456789"), NULL, 10));
        g->utilization = share_of(w, "gpu.utilization", label);
        g->memory_utilization = share_of(w, "gpu.memory.utilization", label);
        g->power_w = mean_of(w, "gpu.power", label);
        if ((m = system_report_find(w, "gpu.memory.used", label)))
            g->memory_peak = known_u64((uint64_t)m->max.v);
        if ((m = system_report_find(w, "gpu.temperature", label))) g->temperature_c = m->max;
        if ((m = system_report_find(w, "gpu.clock.sm", label))) g->clock_mhz = known_f64(m->mean.v / 1e6);
    }
}

/* ---- energy and carbon ---- */

struct energy { /* in joules */
    struct known_f64 processors, gpus;
};

/* Zones of powercap hold one another: the probe has added those that do not, as the series without a label. The card's
 * own counter is better than its power over time, which still is measured. */
static struct energy energy_of(const struct run_watch *w, double wall_s)
{
    const struct run_metric *zones = system_report_find(w, "energy", "");
    struct energy e = {.processors = zones ? zones->total : (struct known_f64){0}};
    for (size_t i = 0; i < w->metrics.n; i++) {
        const struct run_metric *m = w->metrics.at[i];
        if (strcmp(m->metric, "gpu.power") != 0) continue;
        const struct run_metric *counter = system_report_find(w, "gpu.energy", m->label);
        bool counted = counter && counter->total.known;
        e.gpus = known_f64(e.gpus.v + (counted ? counter->total.v : m->mean.v * wall_s));
    }
    return e;
}

/* Carbon is told of measured energy alone; what no counter covers is named as absent, never guessed. */
static tare_status record_energy(struct run *run, struct run_case *c, const struct watcher *w,
                                 tare_error *err)
{
    static const char *const methods[2][2] = {{"absent", "nvml"}, {"powercap", "powercap-nvml"}};
    struct energy e = energy_of(&c->watch, (double)(w->child.end_ns - w->child.start_ns) / 1e9);
    bool any = e.processors.known || e.gpus.known;
    c->energy = (struct run_energy){.known = true, .method = methods[e.processors.known][e.gpus.known]};
    if (any) c->energy.joules = known_f64(e.processors.v + e.gpus.v);
    c->energy.why = any ? "of the whole machine while the program ran"
                        : "no energy counter can be read here (tare doctor)";
    if (w->options->grid <= 0 && !w->options->country) {
        run_unknown(run, &c->unknown, "watch.carbon", "no --grid and no --country was given");
        return TARE_OK;
    }
    const struct carbon_grid *grid = NULL;
    tare_status s = w->options->grid > 0 ? TARE_OK : carbon_find(&grid, w->options->country, err);
    if (s != TARE_OK) return s;
    struct carbon_energy used = {.measured_joules = c->energy.joules};
    used.absent = arena_printf(&run->arena, "%s%spower supply, fans, disks, network",
                               e.processors.known ? "" : "processors, memory, ",
                               run->host.gpus.n && !e.gpus.known ? "GPUs, " : "");
    const char *source =
        grid ? arena_printf(&run->arena, "%s: %s", grid->name, carbon_grids_source) : "given with --grid";
    carbon_fill(&c->watch.carbon, &used, grid ? grid->g_per_kwh : w->options->grid, source);
    if (!any) run_unknown(run, &c->unknown, "watch.carbon", "no energy was measured");
    return TARE_OK;
}

/* ---- alerts ---- */

static void record_alerts(struct run *run, struct run_watch *to, const struct watcher *w)
{
    size_t n = w->fired.n < RUN_LIST_MAX ? w->fired.n : RUN_LIST_MAX;
    to->alerts.at = run_list_new(&run->arena, n, sizeof **to->alerts.at);
    to->alerts.n = to->alerts.at ? n : 0;
    for (size_t i = 0; i < to->alerts.n; i++) {
        const struct watch_alert *f = &w->fired.items[i];
        const struct alert_rule *r = alerts_rule(w->alerts, f->rule);
        *to->alerts.at[i] = (struct run_alert){.rule = arena_str(&run->arena, r->text),
                                               .metric = arena_str(&run->arena, r->when.name),
                                               .value = known_f64(f->value),
                                               .threshold = known_f64(r->when.threshold),
                                               .start_s = known_f64(seconds(f->start_ns, w->child.start_ns)),
                                               .action = *f->action ? f->action : NULL};
        if (f->end_ns) to->alerts.at[i]->end_s = known_f64(seconds(f->end_ns, w->child.start_ns));
    }
}

/* ---- all of it ---- */

/* How the program ended and how well it was watched, tare's own cost included. */
static void record_watching(struct run_watch *to, const struct watcher *w)
{
    struct rusage self = {0};
    int status = w->child.status;
    getrusage(RUSAGE_SELF, &self);
    to->known = true;
    to->interval_s = known_f64((double)w->options->interval.ns / 1e9);
    to->samples = known_u64(w->samples);
    to->late = known_u64(w->late);
    to->lost = known_u64(w->lost);
    if (WIFSIGNALED(status))
        to->signal = known_u64((uint64_t)WTERMSIG(status));
    else
        to->exit_code = known_u64((uint64_t)WEXITSTATUS(status));
    to->still_running = known_u64(w->alive);
    to->self_cpu_s = known_f64((double)(time_ns(self.ru_utime) + time_ns(self.ru_stime)) / 1e9);
    if (w->hooks.command || w->hooks.url) {
        to->hooks = known_u64(w->hooks.started);
        to->hooks_bad = known_u64(w->hooks.bad);
    }
}

/* What the kernel counted comes first, then what was sampled, which may complete it; reasons for unknown values and the
 * diagnosis come last, because they look at all the rest. */
tare_status watch_record(struct run *run, const struct watcher *w, tare_error *err)
{
    struct system_source from = {w->deriver, &w->probes.set, w->child.start_ns};
    struct watched_span ran = {w->child.start_ns, w->child.end_ns};
    tare_status s = host_read(run, "", err);
    if (s != TARE_OK) return s;
    describe_command(run, w);
    struct run_case *c = run_add_case(run, "");
    if (!c) return error_set(err, TARE_NOMEM, "out of memory for the run document");
    record_usage(c, &w->child);
    record_watching(&c->watch, w);
    s = system_report_fill(w->report, &from, run, &c->watch, err);
    if (s == TARE_OK) s = watched_phases(run, &c->watch, &w->course, ran, err);
    if (s != TARE_OK) return s;
    record_sampled(c);
    record_gpus(run, c);
    record_alerts(run, &c->watch, w);
    if ((s = record_energy(run, c, w, err)) != TARE_OK) return s;
    uint64_t wall = w->child.end_ns - w->child.start_ns;
    c->self =
        (struct run_self){.known = true, .ns_per_run = known_u64((uint64_t)(c->watch.self_cpu_s.v * 1e9))};
    if (wall) c->self.share = known_f64(c->watch.self_cpu_s.v * 1e9 / (double)wall);
    run_explain_case(run, c, RUN_BY_WATCH);
    return diagnose(run, c, &w->course, err);
}
