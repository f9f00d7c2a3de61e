/* SPDX-License-Identifier: MIT
 * proclist.c - see proclist.h. */
#include "probe/proclist.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/mem.h"
#include "probe/procfs.h"

enum {
    COMMAND_MAX = 4096, /* of a command line: far more than fits on a screen */
    REFRESH_SCANS = 32, /* after so many scans command line and owner are read again */
    IO_SCANS = 8        /* and the I/O of processes that seem idle */
};

static tare_status open_folder(struct proclist *p, const char *root, const char *folder, tare_error *err)
{
    p->folder = procfs_open(root, "%s", folder);
    if (p->folder < 0) return error_errno(err, "%s%s", root, folder);
    p->tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    p->page_bytes = (double)sysconf(_SC_PAGESIZE);
    return TARE_OK;
}

tare_status proclist_open(struct proclist *p, const char *root, tare_error *err)
{
    *p = (struct proclist)PROCLIST_INIT;
    return open_folder(p, root, "/proc", err);
}

tare_status proclist_open_threads(struct proclist *p, const char *root, pid_t pid, tare_error *err)
{
    char folder[40];
    *p = (struct proclist)PROCLIST_INIT;
    p->threads = true;
    snprintf(folder, sizeof folder, "/proc/%d/task", (int)pid);
    return open_folder(p, root, folder, err);
}

static void row_release(struct proc_row *r)
{
    mem_free(r->name);
    mem_free(r->command);
    r->name = r->command = NULL;
}

void proclist_close(struct proclist *p)
{
    for (size_t i = 0; i < p->rows.n; i++) row_release(&p->rows.items[i]);
    vec_release(&p->rows);
    vec_release(&p->before);
    vec_release(&p->pids);
    procfs_close(&p->folder);
    *p = (struct proclist)PROCLIST_INIT;
}

/* ---- one process ---- */

/* Replaces *to by a copy of n bytes; false: no memory, *to is as it was. */
static bool keep_text(char **to, const char *bytes, size_t n)
{
    if (*to && strncmp(*to, bytes, n) == 0 && !(*to)[n]) return true;
    char *copy = mem_strndup(bytes, n);
    if (!copy) return false;
    mem_free(*to);
    *to = copy;
    return true;
}

static bool read_command(const struct proclist *p, struct proc_row *r)
{
    char text[COMMAND_MAX];
    ssize_t n = r->kernel || p->threads ? 0 : procfs_read_of(p->folder, r->pid, "cmdline", text, sizeof text);
    if (n < 0) n = 0;
    while (n > 0 && text[n - 1] == 0) n--;
    for (ssize_t i = 0; i < n; i++)
        if (!text[i]) text[i] = ' ';
    return keep_text(&r->command, text, (size_t)n);
}

static double rate(double now, double before, double seconds)
{
    return seconds > 0 && now >= before ? (now - before) / seconds : NAN;
}

static void read_io(const struct proclist *p, struct proc_row *r, uint64_t now_ns)
{
    char text[512];
    uint64_t in, out;
    ssize_t n = procfs_read_of(p->folder, r->pid, "io", text, sizeof text);
    r->io_denied = n < 0 && (errno == EACCES || errno == EPERM || errno == ENOENT);
    if (n <= 0 || !procfs_field(text, "read_bytes", &in) || !procfs_field(text, "write_bytes", &out)) {
        r->read_bytes = r->write_bytes = r->read_rate = r->write_rate = NAN;
        return;
    }
    double seconds = r->io_ns ? (double)(now_ns - r->io_ns) / 1e9 : 0;
    r->read_rate = rate((double)in, r->read_bytes, seconds);
    r->write_rate = rate((double)out, r->write_bytes, seconds);
    r->read_bytes = (double)in;
    r->write_bytes = (double)out;
    r->io_ns = now_ns;
}

/* Fill a row from its stat line. `old` is what the scan before knew of the same process, or NULL. */
static bool update_row(struct proclist *p, struct proc_row *r, const struct process_stat *st, uint64_t now_ns)
{
    bool fresh = r->name == NULL,
         renamed = !fresh && (strncmp(r->name, st->name, st->name_len) != 0 || r->name[st->name_len] != 0);
    uint64_t ticks = st->user + st->system;
    r->parent = st->parent;
    r->state = st->state;
    r->kernel = st->kernel;
    r->threads = (unsigned)st->threads;
    r->rss_bytes = (uint64_t)((double)st->rss_pages * p->page_bytes);
    r->user_s = (double)st->user * p->tick_s;
    r->system_s = (double)st->system * p->tick_s;
    bool worked = fresh || ticks != r->ticks;
    r->cpu =
        fresh ? NAN : rate((double)ticks, (double)r->ticks, (double)(now_ns - p->at_ns) / 1e9) * p->tick_s;
    r->ticks = ticks;
    unsigned turn = (unsigned)p->scans + (unsigned)r->pid; /* not all in the same scan */
    if (fresh || renamed || turn % REFRESH_SCANS == 0) {
        char path[32];
        struct stat of; /* the folder of a process belongs to whom it runs as, whatever it hides */
        snprintf(path, sizeof path, "%d", (int)r->pid);
        if (fstatat(p->folder, path, &of, 0) == 0) r->uid = of.st_uid;
        if (!keep_text(&r->name, st->name, st->name_len) || !read_command(p, r)) return false;
    }
    bool active = worked || r->state == 'D' || r->read_rate > 0 || r->write_rate > 0;
    if (!r->kernel && !r->io_denied && (active || turn % IO_SCANS == 0))
        read_io(p, r, now_ns);
    else if (r->io_ns) /* not a tick of processor time: looked at again soon, over the whole time since */
        r->read_rate = r->write_rate = 0;
    return true;
}

/* ---- a scan ---- */

static int by_number(const void *a, const void *b)
{
    pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
    return (x > y) - (x < y);
}

/* In order of numbers, which /proc mostly gives already. */
static tare_status list_pids(struct proclist *p, tare_error *err)
{
    DIR *dir = procfs_list(p->folder, ".");
    tare_status s = TARE_OK;
    bool sorted = true;
    vec_clear(&p->pids);
    if (!dir && p->threads && (errno == ESRCH || errno == ENOENT)) return TARE_OK; /* it has ended */
    if (!dir) return error_errno(err, "/proc");
    for (const struct dirent *e; s == TARE_OK && (e = readdir(dir));) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9') continue;
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
        if (p->pids.n > 0 && *vec_last(&p->pids) > pid) sorted = false;
        s = vec_push(&p->pids, pid, err);
    }
    closedir(dir);
    if (!sorted) qsort(p->pids.items, p->pids.n, sizeof *p->pids.items, by_number);
    return s;
}

/* The row of the same process in the scan before is taken over, with its texts. */
static struct proc_row take_before(struct proclist *p, size_t *at, pid_t pid, uint64_t started)
{
    struct proc_row fresh = {.pid = pid, .started = started, .uid = (uid_t)-1, .cpu = NAN};
    fresh.read_bytes = fresh.write_bytes = fresh.read_rate = fresh.write_rate = NAN;
    while (*at < p->before.n && p->before.items[*at].pid < pid) row_release(&p->before.items[(*at)++]);
    if (*at >= p->before.n || p->before.items[*at].pid != pid) return fresh;
    struct proc_row *old = &p->before.items[(*at)++];
    if (old->started == started) return *old;
    row_release(old); /* another process with its number */
    return fresh;
}

static tare_status scan_pid(struct proclist *p, pid_t pid, uint64_t now_ns, size_t *before, tare_error *err)
{
    char text[1024];
    struct process_stat st;
    ssize_t n = procfs_read_of(p->folder, pid, "stat", text, sizeof text);
    if (n < 0 && (errno == EACCES || errno == EPERM)) p->denied++;
    if (n <= 0 || !process_stat_parse(&st, text)) return TARE_OK; /* gone meanwhile, or hidden */
    struct proc_row row = take_before(p, before, pid, st.started);
    if (!update_row(p, &row, &st, now_ns)) {
        row_release(&row);
        return error_set(err, TARE_NOMEM, "out of memory for the processes");
    }
    p->rows.items[p->rows.n++] = row; /* there is room: reserved for all */
    return TARE_OK;
}

/* Rows of the scan before are taken over one by one, both lists being in order of numbers; what is left has ended. */
tare_status proclist_scan(struct proclist *p, uint64_t now_ns, tare_error *err)
{
    tare_status s = list_pids(p, err);
    if (s == TARE_OK) s = vec_reserve(&p->before, p->pids.n, err);
    if (s < 0) return s;
    struct proc_rows rows = p->rows; /* the two change places */
    p->rows = p->before;
    p->before = rows;
    vec_clear(&p->rows);
    size_t before = 0;
    p->denied = 0;
    for (size_t i = 0; i < p->pids.n && s == TARE_OK; i++)
        s = scan_pid(p, p->pids.items[i], now_ns, &before, err);
    while (before < p->before.n) row_release(&p->before.items[before++]);
    vec_clear(&p->before);
    p->at_ns = now_ns;
    p->scans++;
    return s;
}
