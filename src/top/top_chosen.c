/* SPDX-License-Identifier: MIT
 * top_chosen.c - the process that the user chose in `tare top`: found again in each moment by its number and when it
 * began, its history, its threads, and its end, if the user wants that. Draws nothing. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "probe/procfs.h"
#include "top/top_data.h"

static int by_pid(const void *pid, const void *row)
{
    pid_t x = *(const pid_t *)pid, y = ((const struct proc_row *)row)->pid;
    return (x > y) - (x < y);
}

const struct proc_row *top_row_of(const struct top_data *d, pid_t pid)
{
    return d->n_rows ? bsearch(&pid, d->rows, d->n_rows, sizeof *d->rows, by_pid) : NULL;
}

const struct proc_row *top_chosen_row(const struct top_data *d)
{
    const struct proc_row *r = d->chosen.pid ? top_row_of(d, d->chosen.pid) : NULL;
    return r && r->started == d->chosen.started ? r : NULL;
}

static void close_threads(struct top_chosen *c)
{
    if (c->threads.folder >= 0) proclist_close(&c->threads);
    c->threads = (struct proclist)PROCLIST_INIT;
}

void top_choose(struct top_data *d, const struct proc_row *r)
{
    struct top_chosen *c = &d->chosen;
    if (r && r->pid == c->pid && r->started == c->started) return;
    bool details = c->details && r;
    close_threads(c);
    c->pid = r ? r->pid : 0;
    c->started = r ? r->started : 0;
    c->cpu.n = c->memory.n = 0;
    c->details = false;
    if (details) top_details(d, true);
}

/* Without a thread it has ended, or is not ours to look into. Opened only while it is there: later its number may be
 * another's. */
static void look_at_threads(struct top_data *d, uint64_t now_ns)
{
    struct proclist *list = &d->chosen.threads;
    if (!d->chosen.details || d->replaying || d->remote) return;
    if (list->folder < 0 && (!top_chosen_row(d) || proclist_open_threads(list, "", d->chosen.pid, NULL) < 0))
        return;
    proclist_scan(list, now_ns, NULL);
}

void top_details(struct top_data *d, bool on)
{
    d->chosen.details = on && d->chosen.pid;
    if (d->chosen.details)
        look_at_threads(d, clock_raw_ns());
    else
        close_threads(&d->chosen);
}

void top_chosen_look(struct top_data *d)
{
    const struct proc_row *r = top_chosen_row(d);
    if (!d->chosen.pid) return;
    top_history_add(&d->chosen.cpu, r ? r->cpu : NAN);
    top_history_add(&d->chosen.memory, r ? (double)r->rss_bytes : NAN);
    look_at_threads(d, d->now->at_ns);
}

/* Is process `pid` still the one that began then? Asked with a handle of it in hand, so that the answer keeps. */
static bool is_same(pid_t pid, uint64_t started)
{
    char path[40], text[1024];
    struct process_stat st;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return procfs_text("", path, text, sizeof text) && process_stat_parse(&st, text) && st.started == started;
}

/* A kernel without handles of processes (before 5.3) takes the number: between the look and the signal it could become
 * another's, if all others were used up within microseconds. */
tare_status top_chosen_signal(const struct top_data *d, int signal, tare_error *err)
{
    const struct top_chosen *c = &d->chosen;
    int handle = (int)syscall(SYS_pidfd_open, c->pid, 0U), failed = errno;
    if (handle < 0 && failed != ENOSYS) {
        errno = failed;
        return error_errno(err, "process %d", (int)c->pid);
    }
    tare_status s = TARE_OK;
    if (!is_same(c->pid, c->started))
        s = error_set(err, TARE_INVALID, "process %d has ended", (int)c->pid);
    else if (handle < 0 ? kill(c->pid, signal)
                        : (int)syscall(SYS_pidfd_send_signal, handle, signal, NULL, 0U))
        s = error_errno(err, "process %d", (int)c->pid);
    if (handle >= 0) close(handle);
    return s;
}
