/* SPDX-License-Identifier: MIT
 * probe_process.c - the program and all it started: sums over its processes, ended ones included. Where tare has
 * started the program and reaps its orphans, the processor time is the kernel's own sum once all has ended. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "probe/probe.h"
#include "probe/procfs.h"
#include "probe/process_tree.h"

/* Processes with series of their own: at one moment, and ever. Each label costs memory and stays. */
enum { LABELLED_MOST = 64, LABELLED_EVER = 2000 };

struct process_probe {
    struct probe base;
    struct process_tree tree;
    struct fork_events forks;
    struct detail_budget budget[DETAIL_KINDS];
    bool detail, shares;      /* shares: PSS is readable */
    bool fresh[DETAIL_KINDS]; /* read for this sample */
    double page, tick_s;
    uint64_t shown[TREE_COUNTERS]; /* counters never fall */
    size_t labelled;               /* so far */
};

static const struct {
    enum metric_id metric;
    double scale;
} counters[TREE_COUNTERS] = {
    [TREE_USER] = {METRIC_PROC_CPU_USER, 1e-9},
    [TREE_SYSTEM] = {METRIC_PROC_CPU_SYSTEM, 1e-9},
    [TREE_FAULTS_MINOR] = {METRIC_PROC_FAULTS_MINOR, 1},
    [TREE_FAULTS_MAJOR] = {METRIC_PROC_FAULTS_MAJOR, 1},
    [TREE_READ] = {METRIC_PROC_READ, 1},
    [TREE_WRITE] = {METRIC_PROC_WRITE, 1},
    [TREE_READ_CALLS] = {METRIC_PROC_READ_CALLS, 1},
    [TREE_WRITE_CALLS] = {METRIC_PROC_WRITE_CALLS, 1},
    [TREE_SWITCH_VOLUNTARY] = {METRIC_PROC_SWITCH_VOLUNTARY, 1},
    [TREE_SWITCH_INVOLUNTARY] = {METRIC_PROC_SWITCH_INVOLUNTARY, 1},
    [TREE_RUN_DELAY] = {METRIC_PROC_RUN_DELAY, 1e-9},
};

/* ---- values ---- */

/* What was not read for this sample is not known now: an old count would be a rate of 0, then one that is too high.
 * Times are of the moment they are read, not of the sample: many processes take milliseconds to read. Once all have
 * ended they stand still, and are those of the sample, too: what was used last must not be set back. */
static void put_counters(struct process_probe *p, struct probe_put *put)
{
    bool io = true;
    for (size_t i = 0; i < p->tree.members.n; i++) io &= !p->tree.members.items[i].io_denied;
    put->read_ns = tree_alive(&p->tree) ? clock_raw_ns() : 0;
    for (int c = 0; c < TREE_COUNTERS; c++) {
        if (!io && c >= TREE_READ && c <= TREE_WRITE_CALLS) continue;
        if (c >= TREE_READ && !p->fresh[DETAIL_COUNTS]) continue;
        uint64_t total = tree_total(&p->tree, (enum tree_counter)c);
        if (total > p->shown[c]) p->shown[c] = total;
        probe_put(put, counters[c].metric, "", (double)p->shown[c] * counters[c].scale);
    }
    put->read_ns = 0;
    uint64_t started = p->forks.started > p->tree.started ? p->forks.started : p->tree.started;
    probe_put(put, METRIC_PROC_STARTED, "", (double)started);
}

struct gauges {
    double rss, swap, fds, threads, pss, uss;
    size_t alive, detailed, measured;
};

/* Counts how many processes each sum is made of, as a sum over only some of them must not be told. A
 * zombie's stat still says one thread, which does not run any more. */
static struct gauges sum_gauges(const struct process_probe *p)
{
    struct gauges g = {0};
    for (size_t i = 0; i < p->tree.members.n; i++) {
        const struct member *m = &p->tree.members.items[i];
        if (!m->pid) continue;
        g.alive++;
        g.rss += (double)m->stat.rss_pages * p->page;
        g.threads += m->stat.state == 'Z' ? 0 : (double)m->stat.threads;
        g.swap += (double)m->swap_bytes;
        g.fds += (double)m->fds;
        g.pss += (double)m->pss_bytes;
        g.uss += (double)m->uss_bytes;
        g.detailed += m->detailed;
        g.measured += m->measured;
    }
    return g;
}

/* What could not be read of each process is not known of their sum; nor is what was not read for this sample. No page
 * at all is what is left of processes that have ended: no reading of what the program holds. */
static void put_gauges(struct process_probe *p, struct probe_put *put)
{
    struct gauges g = sum_gauges(p);
    if (g.rss > 0) probe_put(put, METRIC_PROC_RSS, "", g.rss);
    probe_put(put, METRIC_PROC_THREADS, "", g.threads);
    probe_put(put, METRIC_PROC_COUNT, "", (double)g.alive);
    if (p->fresh[DETAIL_COUNTS] && g.detailed == g.alive) {
        probe_put(put, METRIC_PROC_SWAP, "", g.swap);
        probe_put(put, METRIC_PROC_FDS, "", g.fds);
    }
    if (p->fresh[DETAIL_SHARING] && g.measured == g.alive) {
        probe_put(put, METRIC_PROC_PSS, "", g.pss);
        probe_put(put, METRIC_PROC_USS, "", g.uss);
    }
}

/* ---- each process ---- */

/* Labels are never given back, so both how many there are now and how many there ever were are limited. */
static void put_each(struct process_probe *p, struct probe_put *put)
{
    unsigned n = 0;
    for (size_t i = 0; i < p->tree.members.n && n < LABELLED_MOST && put->status == TARE_OK; i++) {
        const struct member *m = &p->tree.members.items[i];
        char label[96];
        if (!m->pid) continue;
        snprintf(label, sizeof label, "pid %d %s", (int)m->pid, m->name);
        bool known = series_has(put->set, METRIC_PROC_RSS, label);
        if (!known && p->labelled >= LABELLED_EVER) continue;
        p->labelled += !known;
        n++;
        probe_put(put, METRIC_PROC_CPU_USER, label, (double)m->stat.user * p->tick_s);
        probe_put(put, METRIC_PROC_CPU_SYSTEM, label, (double)m->stat.system * p->tick_s);
        probe_put(put, METRIC_PROC_RSS, label, (double)m->stat.rss_pages * p->page);
        probe_put(put, METRIC_PROC_THREADS, label, (double)m->stat.threads);
    }
}

/* ---- the probe ---- */

/* Those that are seen and were not told of. */
static tare_status tell_forks(struct process_probe *p, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < p->tree.members.n && s == TARE_OK && p->forks.fd >= 0; i++) {
        const struct member *m = &p->tree.members.items[i];
        if (m->pid && m->stat.state != 'Z') s = fork_events_know(&p->forks, m->pid, err);
    }
    return s;
}

/* Who is there, then what that costs more to know, then the values; a failure on the way ends the sample. */
static void process_sample(struct probe *base, struct probe_put *put)
{
    struct process_probe *p = (struct process_probe *)base;
    struct fork_events *f = &p->forks;
    put->status = fork_events_drain(f, put->err);
    if (put->status == TARE_OK && f->fd >= 0 && !f->gap) /* a look at all new processes of others is dear */
        put->status = tree_update_told(&p->tree, f->fresh.items, f->fresh.n, put->err);
    else if (put->status == TARE_OK)
        put->status = tree_update(&p->tree, put->err);
    f->gap = f->gap && put->status != TARE_OK;
    if (put->status == TARE_OK) put->status = tell_forks(p, put->err);
    if (put->status != TARE_OK) return;
    fork_events_forget(f, &p->tree);
    const struct detail_moment now = {clock_raw_ns(), base->thorough};
    for (int k = 0; k < DETAIL_KINDS; k++)
        p->fresh[k] = (k != DETAIL_SHARING || p->shares) &&
                      detail_read(&p->tree, (enum detail_kind)k, &p->budget[k], now);
    put_counters(p, put);
    put_gauges(p, put);
    if (p->detail) put_each(p, put);
}

static void process_close(struct probe *base)
{
    struct process_probe *p = (struct process_probe *)base;
    tree_close(&p->tree);
    fork_events_close(&p->forks);
}

/* Asked once, of the program itself: what is not readable there (another user's, a hardened kernel) will
 * not be so for its children either. */
static void tell_blind(struct process_probe *p, pid_t program)
{
    static const struct {
        const char *file, *what;
    } rows[] = {
        {"io", "bytes read and written"},
        {"smaps_rollup", "memory split by sharing (PSS, USS)"},
        {"schedstat", "time waited for a processor"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool can =
            procfs_read_of(p->tree.proc, program, rows[i].file, p->tree.text, sizeof p->tree.text) >= 0;
        if (!can)
            buf_printf(&p->base.blind, "%s: /proc/%d/%s: %s\n", rows[i].what, (int)program, rows[i].file,
                       strerror(errno));
        if (i == 1) p->shares = can;
    }
}

/* The kernel's own word where it gives it. */
static tare_status open_forks(struct process_probe *p, const char *root, tare_error *err)
{
    const char *why = "a made-up machine";
    if (!root[0]) fork_events_open(&p->forks, &why);
    if (p->forks.fd < 0)
        buf_printf(
            &p->base.blind,
            "processes started: a lower bound, those that live between two samples and are waited for by "
            "their parent are not counted (their time is): %s\n",
            why);
    return tell_forks(p, err);
}

static tare_status process_open(struct probe *base, const struct probe_place *at, tare_error *err)
{
    struct process_probe *p = (struct process_probe *)base;
    p->detail = at->detail;
    p->forks.fd = p->tree.proc = p->tree.loadavg = -1;
    if (!at->program) return error_set(err, TARE_UNSUPPORTED, "no program is watched");
    p->page = (double)sysconf(_SC_PAGESIZE);
    p->tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    tare_status s = tree_open(&p->tree, at->root, at->program, err);
    if (s != TARE_OK) return s;
    tell_blind(p, at->program);
    return open_forks(p, at->root, err);
}

const struct probe_ops probe_process = {
    "process", "the program and all it started",
    sizeof(struct process_probe), process_open, process_sample, process_close};

/* ---- what else probe.h offers ---- */

static struct process_probe *process_probe_of(const struct probes *p)
{
    for (size_t i = 0; i < p->items.n; i++)
        if (p->items.items[i]->ops == &probe_process) return (struct process_probe *)p->items.items[i];
    return NULL;
}

void probe_process_reaped(struct probes *p, pid_t pid, const struct rusage *usage)
{
    struct process_probe *own = process_probe_of(p);
    if (own) tree_reaped(&own->tree, pid, usage);
}

void probe_process_ignore(struct probes *p, pid_t pid)
{
    struct process_probe *own = process_probe_of(p);
    if (own) tree_ignore(&own->tree, pid);
}

size_t probe_process_alive(const struct probes *p)
{
    const struct process_probe *own = process_probe_of(p);
    return own ? tree_alive(&own->tree) : 0;
}
