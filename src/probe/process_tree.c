/* SPDX-License-Identifier: MIT
 * process_tree.c - see process_tree.h. Unless the kernel tells who is new, new processes are looked for among the pids
 * given out since the last look, which /proc/loadavg tells: a machine where nothing was started costs one read, not a
 * walk through /proc. */
#include "probe/process_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/procstat.h"

enum { RANGE_MOST = 2048, JUST_NOW = 8, KEEP_OPEN_MOST = 256 };

static bool read_stat(struct process_tree *t, int fd, struct process_stat *out)
{
    return procfs_line(fd, t->text, sizeof t->text) > 0 && process_stat_parse(out, t->text);
}

/* ---- members ---- */

static struct member *find_member(const struct process_tree *t, pid_t pid)
{
    const uint64_t *at = map_u64_find(&t->index, (uint64_t)pid);
    return at && *at ? &t->members.items[*at - 1] : NULL;
}

static void take_stat(struct process_tree *t, struct member *m, const struct process_stat *s)
{
    m->child_before[0] = m->stat.child_user * t->tick_ns;
    m->child_before[1] = m->stat.child_system * t->tick_ns;
    m->stat = *s;
    procfs_label(m->name, sizeof m->name, s->name, s->name_len);
    m->own[TREE_USER] = (s->user + s->child_user) * t->tick_ns;
    m->own[TREE_SYSTEM] = (s->system + s->child_system) * t->tick_ns;
    m->own[TREE_FAULTS_MINOR] = s->minor + s->child_minor;
    m->own[TREE_FAULTS_MAJOR] = s->major + s->child_major;
}

/* What ended children had used is in the parent's sums by now, or it never will be. */
static void settle_owed(struct process_tree *t, struct member *m)
{
    if (!m->owed_children) return;
    uint64_t now[2] = {m->stat.child_user * t->tick_ns, m->stat.child_system * t->tick_ns};
    uint64_t slack = 2 * t->tick_ns * m->owed_children;
    for (int i = 0; i < 2; i++) {
        uint64_t handed_on = now[i] - m->owed_since[i] + slack;
        if (handed_on < m->owed[i]) t->lost[TREE_USER + i] += m->owed[i] - handed_on;
        m->owed[i] = 0;
    }
    m->owed_children = 0;
}

/* Ended, and not reaped by us: its parent has waited for it, or nobody will. */
static void hand_on_usage(struct process_tree *t, const struct member *m)
{
    struct member *parent = find_member(t, m->stat.parent);
    uint64_t *heir = parent ? parent->gone : t->lost;
    for (int c = parent ? TREE_INHERITED : 0; c < TREE_COUNTERS; c++) heir[c] += m->own[c] + m->gone[c];
    if (!parent) return;
    if (!parent->owed_children) memcpy(parent->owed_since, parent->child_before, sizeof parent->owed_since);
    parent->owed[0] += m->own[TREE_USER];
    parent->owed[1] += m->own[TREE_SYSTEM];
    parent->owed_children++;
}

/* `fd` is of its stat, and is kept while not too many are: to read it again is cheaper than to open it. */
static tare_status add_member(struct process_tree *t, pid_t pid, const struct process_stat *s, int fd,
                              tare_error *err)
{
    struct member m = {.pid = pid, .fd = -1};
    tare_status status = vec_push(&t->members, m, err);
    if (status == TARE_OK) status = map_u64_put(&t->index, (uint64_t)pid, t->members.n, err);
    if (status != TARE_OK) {
        close(fd);
        return status;
    }
    struct member *new = vec_last(&t->members);
    take_stat(t, new, s);
    t->started++;
    if (t->kept_open < t->keep_open) {
        new->fd = fd;
        t->kept_open++;
    } else {
        close(fd);
    }
    return TARE_OK;
}

/* Read one member again; false: it is gone, or its number names another process now. */
static bool refresh_member(struct process_tree *t, struct member *m)
{
    struct process_stat s;
    int own = m->fd >= 0 ? -1 : procfs_open_of(t->proc, m->pid, "stat"), fd = m->fd >= 0 ? m->fd : own;
    bool there = fd >= 0 && read_stat(t, fd, &s) && s.started == m->stat.started;
    procfs_close(&own);
    if (!there) return false;
    take_stat(t, m, &s);
    settle_owed(t, m);
    return true;
}

static void forget_member(struct process_tree *t, struct member *m)
{
    t->kept_open -= m->fd >= 0;
    procfs_close(&m->fd);
    map_u64_remove(&t->index, (uint64_t)m->pid, NULL);
    m->pid = 0;
    t->dead++;
}

static void compact_members(struct process_tree *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->members.n && t->dead; i++) {
        if (!t->members.items[i].pid) continue;
        t->members.items[kept] = t->members.items[i];
        *map_u64_find(&t->index, (uint64_t)t->members.items[kept].pid) = kept + 1;
        kept++;
    }
    if (t->dead) t->members.n = kept;
    t->dead = 0;
}

/* Parents are read before their children: what moves up meanwhile is missed once, never counted twice. Those that
 * ended hand on from the leaves up, because a parent may have ended too. */
static void refresh_all(struct process_tree *t)
{
    compact_members(t);
    size_t gone = 0;
    for (size_t i = 0; i < t->members.n; i++) {
        struct member *m = &t->members.items[i];
        m->ended = !refresh_member(t, m);
        gone += m->ended;
    }
    for (size_t i = t->members.n; i-- > 0 && gone;)
        if (t->members.items[i].ended) hand_on_usage(t, &t->members.items[i]);
    for (size_t i = 0; i < t->members.n && gone; i++)
        if (t->members.items[i].ended) forget_member(t, &t->members.items[i]);
    compact_members(t);
}

/* ---- finding new ones ---- */

static bool is_ignored(const struct process_tree *t, pid_t pid)
{
    for (size_t i = 0; i < t->ignored.n; i++)
        if (t->ignored.items[i] == pid) return true;
    return false;
}

static bool belongs_to(const struct process_tree *t, pid_t pid, const struct process_stat *s)
{
    if (s->thread || s->kernel || is_ignored(t, pid)) return false;
    return pid == t->program || (t->us && s->parent == t->us) || find_member(t, s->parent);
}

/* Add `pid` if it is there and belongs. *there: there is such a task. */
static tare_status consider_pid(struct process_tree *t, pid_t pid, bool *there, tare_error *err)
{
    struct process_stat s;
    *there = true;
    if (find_member(t, pid)) return TARE_OK;
    int fd = procfs_open_of(t->proc, pid, "stat");
    *there = fd >= 0;
    if (fd < 0) return TARE_OK;
    if (!read_stat(t, fd, &s) || !belongs_to(t, pid, &s)) {
        close(fd);
        return TARE_OK;
    }
    return add_member(t, pid, &s, fd, err);
}

/* A number is given out a little before its process can be seen: what was not there is looked for once more. In order
 * of numbers, so that parents come before their children. */
static tare_status consider_range(struct process_tree *t, uint64_t from, uint64_t to, tare_error *err)
{
    size_t again = t->missing.n;
    bool there;
    tare_status s = TARE_OK;
    for (size_t i = 0; i < again && s == TARE_OK; i++) s = consider_pid(t, t->missing.items[i], &there, err);
    vec_clear(&t->missing);
    for (uint64_t pid = from; pid <= to && s == TARE_OK; pid++) {
        s = consider_pid(t, (pid_t)pid, &there, err);
        if (s == TARE_OK && !there) s = vec_push(&t->missing, (pid_t)pid, err);
    }
    return s;
}

/* The slow way, over all of /proc: for the first look and for when the range of new numbers is not known. */
static tare_status consider_all(struct process_tree *t, tare_error *err)
{
    size_t before;
    bool there;
    tare_status s = TARE_OK;
    DIR *d = procfs_list(t->proc, ".");
    if (!d) return error_errno(err, "the list of processes cannot be read");
    do { /* once more while any was added: after a wrap a child's number may be below its parent's */
        before = t->members.n;
        rewinddir(d);
        for (struct dirent *e; s == TARE_OK && (e = readdir(d));) {
            uint64_t pid;
            const char *end = procfs_number(e->d_name, &pid);
            if (end && !*end && pid > 0 && pid < INT32_MAX) s = consider_pid(t, (pid_t)pid, &there, err);
        }
    } while (s == TARE_OK && t->members.n > before);
    closedir(d);
    return s;
}

/* The latest pid given out; 0: not told. "0.20 0.18 0.12 1/80 11206" */
static uint64_t pid_cursor(struct process_tree *t)
{
    uint64_t pid = 0;
    if (t->loadavg < 0 || procfs_line(t->loadavg, t->text, sizeof t->text) <= 0) return 0;
    const char *last = strrchr(t->text, ' ');
    return last && procfs_number(last, &pid) ? pid : 0;
}

static tare_status find_new(struct process_tree *t, tare_error *err)
{
    uint64_t now = pid_cursor(t), before = t->cursor;
    t->cursor = now;
    if (now && before && now >= before && now - before <= RANGE_MOST)
        return consider_range(t, before + 1, now, err);
    vec_clear(&t->missing);
    tare_status s = consider_all(t, err);
    for (uint64_t pid = now > JUST_NOW ? now - JUST_NOW : now; pid < now && s == TARE_OK; pid++)
        s = vec_push(&t->missing, (pid_t)pid + 1, err);
    return s;
}

tare_status tree_update(struct process_tree *t, tare_error *err)
{
    refresh_all(t);
    return find_new(t, err);
}

tare_status tree_update_told(struct process_tree *t, const pid_t *fresh, size_t n, tare_error *err)
{
    bool there;
    tare_status s = TARE_OK;
    refresh_all(t);
    for (size_t i = 0; i < n && s == TARE_OK; i++) s = consider_pid(t, fresh[i], &there, err);
    return s;
}

/* ---- ends that we see ---- */

/* With its end the kernel tells all it ever used, children that it waited for included: exact, and the last word. */
void tree_reaped(struct process_tree *t, pid_t pid, const struct rusage *u)
{
    for (size_t i = 0; i < t->ignored.n; i++)
        if (t->ignored.items[i] == pid) {
            t->ignored.items[i] = vec_pop(&t->ignored);
            return;
        }
    struct procstat used = procstat_of_usage(u);
    uint64_t told[TREE_COUNTERS] = {
        [TREE_USER] = used.user_ns,
        [TREE_SYSTEM] = used.system_ns,
        [TREE_FAULTS_MINOR] = used.minor_faults,
        [TREE_FAULTS_MAJOR] = used.major_faults,
        [TREE_READ] = used.read_bytes.v,
        [TREE_WRITE] = used.write_bytes.v,
        [TREE_SWITCH_VOLUNTARY] = used.voluntary_switches,
        [TREE_SWITCH_INVOLUNTARY] = used.involuntary_switches,
    };
    struct member *m = find_member(t, pid);
    if (m) { /* what the usage does not tell, as last seen */
        static const enum tree_counter untold[] = {TREE_READ_CALLS, TREE_WRITE_CALLS, TREE_RUN_DELAY};
        for (size_t i = 0; i < 3; i++) told[untold[i]] = m->own[untold[i]] + m->gone[untold[i]];
        forget_member(t, m);
    } else {
        t->started++; /* began and ended between two looks */
    }
    for (int c = 0; c < TREE_COUNTERS; c++) t->reaped[c] += told[c];
}

void tree_ignore(struct process_tree *t, pid_t pid)
{
    struct member *m = find_member(t, pid);
    if (vec_push(&t->ignored, pid, NULL) != TARE_OK) return; /* counts as part of the program, no worse */
    if (!m) return;
    forget_member(t, m); /* it was seen before we were told */
    t->started--;
}

uint64_t tree_total(const struct process_tree *t, enum tree_counter c)
{
    uint64_t sum = t->reaped[c] + t->lost[c];
    for (size_t i = 0; i < t->members.n; i++)
        if (t->members.items[i].pid) sum += t->members.items[i].own[c] + t->members.items[i].gone[c];
    return sum;
}

size_t tree_alive(const struct process_tree *t)
{
    return t->members.n - t->dead;
}

/* ---- opening ---- */

static pid_t parent_of(struct process_tree *t, pid_t pid)
{
    struct process_stat s;
    ssize_t n = procfs_read_of(t->proc, pid, "stat", t->text, sizeof t->text);
    return n > 0 && process_stat_parse(&s, t->text) ? s.parent : -1;
}

/* A quarter of the allowed descriptors at most is kept open, as the program that is watched may be this
 * very one. Where it is our own child, its orphans come back to us as their parent, and `us` makes them
 * belong. */
tare_status tree_open(struct process_tree *t, const char *root, pid_t program, tare_error *err)
{
    struct rlimit limit = {.rlim_cur = 256};
    getrlimit(RLIMIT_NOFILE, &limit);
    memset(t, 0, sizeof *t);
    t->program = program;
    t->tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    t->keep_open = limit.rlim_cur / 4 < KEEP_OPEN_MOST ? (size_t)limit.rlim_cur / 4 : KEEP_OPEN_MOST;
    t->loadavg = procfs_open(root, "/proc/loadavg");
    t->proc = procfs_open(root, "/proc");
    if (t->proc < 0) {
        error_errno(err, "%s/proc: cannot be read", root);
        return TARE_UNSUPPORTED;
    }
    pid_t parent = parent_of(t, program);
    if (parent < 0)
        return error_set(err, TARE_INVALID, "process %d is not there, or hidden from this user",
                         (int)program);
    if (!root[0] && parent == getpid()) t->us = parent;
    return tree_update(t, err);
}

void tree_close(struct process_tree *t)
{
    for (size_t i = 0; i < t->members.n; i++) procfs_close(&t->members.items[i].fd);
    procfs_close(&t->loadavg);
    procfs_close(&t->proc);
    map_u64_release(&t->index);
    vec_release(&t->members);
    vec_release(&t->ignored);
    vec_release(&t->missing);
}
