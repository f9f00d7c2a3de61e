/* SPDX-License-Identifier: MIT
 * process_detail.c - see process_tree.h. A member that ends meanwhile keeps what was last known. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/clock.h"
#include "probe/process_tree.h"

enum { THREADS_MOST = 1024, FDS_MOST = 4096 };

/* What part of the time each may take: one in so many; with thoroughness one in 200. No more is saved up than a
 * second's worth. */
static const uint64_t share[DETAIL_KINDS] = {[DETAIL_COUNTS] = 3000, [DETAIL_SHARING] = 5000};
#define SHARE_THOROUGH 200
#define SECOND_NS UINT64_C(1000000000)

static bool read_file(struct process_tree *t, pid_t pid, const char *name)
{
    return procfs_read_of(t->proc, pid, name, t->text, sizeof t->text) >= 0;
}

/* ---- counts ---- */

/* A counter is only ever raised, so that the sum of the tree never falls. That reading was denied is kept
 * apart from a process that has just ended. */
static void read_io(struct process_tree *t, struct member *m)
{
    static const struct {
        const char *key;
        enum tree_counter counter;
    } rows[] = {
        {"read_bytes", TREE_READ},
        {"write_bytes", TREE_WRITE},
        {"syscr", TREE_READ_CALLS},
        {"syscw", TREE_WRITE_CALLS},
    };
    if (!read_file(t, m->pid, "io")) {
        m->io_denied = errno == EACCES || errno == EPERM;
        return;
    }
    uint64_t v;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (procfs_field(t->text, rows[i].key, &v) && v > m->own[rows[i].counter])
            m->own[rows[i].counter] = v;
}

/* Of one thread, `folder` below its process's ("", "task/12/"): adds to `sum`. */
static void read_thread(struct process_tree *t, struct member *m, const char *folder,
                        uint64_t sum[TREE_COUNTERS])
{
    char path[64];
    uint64_t v, run;
    snprintf(path, sizeof path, "%sstatus", folder);
    if (read_file(t, m->pid, path)) {
        if (procfs_field(t->text, "voluntary_ctxt_switches", &v)) sum[TREE_SWITCH_VOLUNTARY] += v;
        if (procfs_field(t->text, "nonvoluntary_ctxt_switches", &v)) sum[TREE_SWITCH_INVOLUNTARY] += v;
        if (procfs_field(t->text, "VmSwap", &v)) m->swap_bytes = v * 1024; /* of the process */
    }
    snprintf(path, sizeof path, "%sschedstat", folder);
    if (!read_file(t, m->pid, path)) return;
    const char *at = procfs_number(t->text, &run);
    if (at && procfs_number(at, &v)) sum[TREE_RUN_DELAY] += v;
}

/* Threads that ended take their share along: a sum that is less than the last one is not taken. */
static void read_threads(struct process_tree *t, struct member *m)
{
    uint64_t sum[TREE_COUNTERS] = {0};
    char name[64];
    unsigned n = 0;
    snprintf(name, sizeof name, "%d/task", (int)m->pid);
    DIR *d = m->stat.threads > 1 ? procfs_list(t->proc, name) : NULL;
    if (!d) read_thread(t, m, "", sum);
    for (struct dirent *e; d && n < THREADS_MOST && (e = readdir(d));) {
        if (e->d_name[0] < '0' || e->d_name[0] > '9') continue;
        snprintf(name, sizeof name, "task/%.20s/", e->d_name);
        read_thread(t, m, name, sum);
        n++;
    }
    if (d) closedir(d);
    for (int c = TREE_INHERITED; c < TREE_COUNTERS; c++) /* a thread that ended takes its share along */
        if (sum[c] > m->own[c]) m->own[c] = sum[c];
}

/* Kernels from 6.2 on tell the number as the folder's size. */
static void read_fds(struct process_tree *t, struct member *m)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "%d/fd", (int)m->pid);
    if (fstatat(t->proc, path, &st, 0) < 0) return;
    m->fds = (uint64_t)st.st_size;
    DIR *d = st.st_size == 0 ? procfs_list(t->proc, path) : NULL;
    for (struct dirent *e; d && m->fds < FDS_MOST && (e = readdir(d));) m->fds += e->d_name[0] != '.';
    if (d) closedir(d);
}

static void read_counts(struct process_tree *t, struct member *m)
{
    read_io(t, m);
    read_threads(t, m);
    read_fds(t, m);
    m->detailed = true;
}

/* ---- sharing ---- */

static void read_sharing(struct process_tree *t, struct member *m)
{
    uint64_t pss, clean, dirty;
    if (m->stat.state == 'Z') {
        m->pss_bytes = m->uss_bytes = 0;
        m->measured = true;
    } else if (read_file(t, m->pid, "smaps_rollup") && procfs_field(t->text, "Pss", &pss) &&
               procfs_field(t->text, "Private_Clean", &clean) &&
               procfs_field(t->text, "Private_Dirty", &dirty)) {
        m->pss_bytes = pss * 1024;
        m->uss_bytes = (clean + dirty) * 1024;
        m->measured = true;
    }
}

/* ---- in turn ---- */

static void (*const readers[DETAIL_KINDS])(struct process_tree *, struct member *) = {
    [DETAIL_COUNTS] = read_counts,
    [DETAIL_SHARING] = read_sharing,
};

/* All processes at one moment or none: a sum of readings of different times is of no time. What that costs beyond the
 * credit is paid back by waiting. */
bool detail_read(struct process_tree *t, enum detail_kind kind, struct detail_budget *b,
                 struct detail_moment now)
{
    uint64_t part = now.thorough ? SHARE_THOROUGH : share[kind];
    int64_t most = (int64_t)(SECOND_NS / part);
    b->credit_ns += b->last_ns ? (int64_t)((now.ns - b->last_ns) / part) : most;
    b->last_ns = now.ns;
    if (b->credit_ns > most) b->credit_ns = most;
    if (b->credit_ns <= 0 && tree_alive(t) > 0) return false;
    uint64_t begun = clock_cpu_ns(CLOCK_THREAD_CPUTIME_ID); /* wall time would count the others' work */
    for (size_t i = 0; i < t->members.n; i++)
        if (t->members.items[i].pid) readers[kind](t, &t->members.items[i]);
    b->credit_ns -= (int64_t)(clock_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begun);
    return true;
}
