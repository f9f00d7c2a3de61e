/* SPDX-License-Identifier: MIT
 * service_view.c - see service_view.h. Threads are told by the scheduler's own account, in ns; one that ended in
 * between took its account along, so that all together are held against that of the processes. */
#include "probe/service_view.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"

/* ---- reading ---- */

static tare_status read_thread(const struct service_view *v, pid_t pid, const char *tid,
                               struct service_threads *to, tare_error *err)
{
    char name[64], text[128];
    struct service_thread t = {.pid = pid, .tid = (pid_t)strtol(tid, NULL, 10)};
    snprintf(name, sizeof name, "task/%.20s/schedstat", tid);
    if (t.tid <= 0 || procfs_read_of(v->tree.proc, pid, name, text, sizeof text) <= 0) return TARE_OK;
    const char *at = procfs_number(text, &t.ran_ns);
    if (!at || !procfs_number(at, &t.waited_ns)) return TARE_OK;
    return vec_push(to, t, err);
}

static tare_status read_threads(const struct service_view *v, struct service_threads *to, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < v->tree.members.n; i++) {
        char name[32];
        pid_t pid = v->tree.members.items[i].pid;
        snprintf(name, sizeof name, "%d/task", (int)pid);
        DIR *d = pid ? procfs_list(v->tree.proc, name) : NULL;
        for (struct dirent *e; s == TARE_OK && d && (e = readdir(d));)
            s = read_thread(v, pid, e->d_name, to, err);
        if (d) closedir(d);
    }
    return s;
}

static uint64_t ran_of(const struct process_tree *t)
{
    return tree_total(t, TREE_USER) + tree_total(t, TREE_SYSTEM);
}

tare_status service_view_begin(struct service_view *v, pid_t pid, tare_error *err)
{
    *v = (struct service_view){.before = VEC_INIT, .after = VEC_INIT};
    tare_status s = tree_open(&v->tree, "", pid, err);
    v->is_open = true;
    if (s == TARE_OK) s = tree_update(&v->tree, err);
    if (s == TARE_OK && !tree_alive(&v->tree))
        s = error_set(err, TARE_IO, "process %d: there is none", (int)pid);
    if (s == TARE_OK) s = read_threads(v, &v->before, err);
    v->ran_before = ran_of(&v->tree);
    v->began_ns = instant_now().ns;
    return s;
}

/* ---- what was between ---- */

static int by_tid(const void *a, const void *b)
{
    const struct service_thread *x = a, *y = b;
    return (x->tid > y->tid) - (x->tid < y->tid);
}

struct between {
    uint64_t ran, waited, most;
    const struct service_thread *busiest;
};

/* A thread that was not there before began meanwhile: all of its account counts. */
static struct between sum_up(struct service_view *v)
{
    struct between b = {0};
    if (v->before.n) qsort(v->before.items, v->before.n, sizeof *v->before.items, by_tid);
    for (size_t i = 0; i < v->after.n; i++) {
        const struct service_thread *now = &v->after.items[i], *was = NULL;
        if (v->before.n) was = bsearch(now, v->before.items, v->before.n, sizeof *now, by_tid);
        uint64_t ran = now->ran_ns, waited = now->waited_ns;
        if (was && was->pid == now->pid && was->ran_ns <= ran && was->waited_ns <= waited) {
            ran -= was->ran_ns;
            waited -= was->waited_ns;
        }
        b.ran += ran;
        b.waited += waited;
        if (ran <= b.most && b.busiest) continue;
        b.most = ran;
        b.busiest = now;
    }
    return b;
}

static void name_thread(const struct service_view *v, const struct between *b, struct run *run,
                        struct run_server *out)
{
    char path[64], text[64], label[64];
    if (!b->busiest) return;
    snprintf(path, sizeof path, "task/%d/comm", (int)b->busiest->tid);
    ssize_t n = procfs_read_of(v->tree.proc, b->busiest->pid, path, text, sizeof text);
    while (n > 0 && text[n - 1] == '\n') n--;
    if (n <= 0) return;
    procfs_label(label, sizeof label, text, (size_t)n);
    out->thread = arena_str(&run->arena, label);
}

static void put_members(const struct service_view *v, struct run *run, struct run_server *out)
{
    uint64_t threads = 0, pages = 0;
    for (size_t i = 0; i < v->tree.members.n; i++) {
        const struct member *m = &v->tree.members.items[i];
        if (!m->pid) continue;
        threads += m->stat.threads;
        pages += m->stat.rss_pages;
        if (m->pid == v->tree.program) out->name = arena_str(&run->arena, m->name);
    }
    out->processes = known_u64(tree_alive(&v->tree));
    out->threads = known_u64(threads);
    out->rss = known_u64(pages * (uint64_t)sysconf(_SC_PAGESIZE));
}

tare_status service_view_end(struct service_view *v, struct run *run, struct run_server *out, tare_error *err)
{
    double wall = (double)(instant_now().ns - v->began_ns);
    cpu_set_t cpus;
    tare_status s = tree_update(&v->tree, err);
    if (s == TARE_OK) s = read_threads(v, &v->after, err);
    if (s < 0 || !tree_alive(&v->tree) || !(wall > 0)) return s;
    struct between b = sum_up(v);
    uint64_t ran = ran_of(&v->tree);
    ran = ran > v->ran_before ? ran - v->ran_before : 0;
    if (b.ran > ran) ran = b.ran; /* ticks are coarse */
    *out = (struct run_server){.known = true, .pid = known_u64((uint64_t)v->tree.program)};
    put_members(v, run, out);
    name_thread(v, &b, run, out);
    out->busy = known_f64((double)ran / wall);
    if (b.busiest) out->thread_busy = known_f64(fmin((double)b.most / wall, 1));
    if (v->after.n) out->waited = known_f64((double)b.waited / wall);
    if (sched_getaffinity(v->tree.program, sizeof cpus, &cpus) == 0)
        out->usable = known_f64((double)CPU_COUNT(&cpus));
    return s;
}

void service_view_release(struct service_view *v)
{
    if (!v->is_open) return;
    tree_close(&v->tree);
    vec_release(&v->before);
    vec_release(&v->after);
    v->is_open = false;
}
