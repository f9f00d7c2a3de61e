/* SPDX-License-Identifier: MIT
 * watch_loop.c - sampling while the program runs: on a fixed schedule, whatever a sample costs. Nothing here waits for
 * anybody: not for a full disk, not for whoever reads what is said, not for a command on an alert. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "core/fmt.h"
#include "watch/watch.h"
#include "core/json.h"

#define SECOND_NS UINT64_C(1000000000)

/* ---- alerts ---- */

static void say_alert(const struct watcher *w, const struct alert_rule *r, const struct alert_event *e)
{
    const char *arrow = e->fired && *e->action ? " -> " : "";
    struct buf own = BUF_INIT;
    if (!isnan(e->own)) buf_printf(&own, ", %s of it this program's", show_percent(e->own).s);
    watch_say(w->options, WATCH_ALERT, "%s: %s (%s is %s%s)%s%s", e->fired ? "alert" : "cleared", r->text,
              r->when.name, show_quantity(r->unit, e->value).s, own.data, arrow, e->fired ? e->action : "");
    buf_release(&own);
}

/* What hooks are given; docs/cli/tare-run.md names the keys. */
static void alert_json(const struct watcher *w, const struct alert_rule *r, const struct alert_event *e,
                       struct buf *out)
{
    struct json j;
    struct buf at = BUF_INIT;
    fmt_date(&at, clock_unix_ns(), true);
    json_init(&j, out, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "state", e->fired ? "fired" : "cleared");
    json_kv_string(&j, "rule", r->text);
    json_kv_string(&j, "metric", r->when.name);
    json_kv_string(&j, "label", r->when.label);
    json_kv_double(&j, "value", e->value);
    json_kv_double(&j, "threshold", r->when.threshold);
    json_kv_string(&j, "unit", r->unit);
    json_kv_string(&j, "at", at.data);
    json_kv_double(&j, "since_start_s", (double)(e->at_ns - w->child.start_ns) / 1e9);
    json_kv_string(&j, "run", w->run_id);
    json_kv_int(&j, "pid", w->child.pid);
    json_kv_string(&j, "command", w->options->command[0]);
    json_kv_string(&j, "action", e->action);
    json_object_end(&j);
    json_finish(&j, NULL);
    buf_add_char(out, '\n');
    buf_release(&at);
}

static void start_hooks(struct watcher *w, const struct alert_rule *r, const struct alert_event *e)
{
    struct buf json = BUF_INIT;
    pid_t pids[HOOK_KINDS];
    if (!w->hooks.command && !w->hooks.url) return;
    alert_json(w, r, e, &json);
    size_t n = hooks_start(&w->hooks, &json, pids);
    for (size_t i = 0; i < n; i++) probe_process_ignore(&w->probes, pids[i]);
    buf_release(&json);
}

/* For the document: each firing with its end. */
static void remember_alert(struct watcher *w, const struct alert_event *e)
{
    if (e->fired) {
        struct watch_alert f = {e->rule, e->at_ns, 0, e->value, e->action};
        if (w->fired.n >= RUN_LIST_MAX) return; /* all that a document holds; the trace has them */
        if (vec_push(&w->fired, f, NULL) != TARE_OK) w->lost++;
        return;
    }
    for (size_t i = w->fired.n; i > 0; i--) {
        struct watch_alert *f = &w->fired.items[i - 1];
        if (f->rule != e->rule) continue;
        if (!f->end_ns) f->end_ns = e->at_ns;
        return;
    }
}

static void tell_alerts(struct watcher *w)
{
    for (size_t i = 0; i < w->events.items.n; i++) {
        const struct alert_event *e = &w->events.items.items[i];
        const struct alert_rule *r = alerts_rule(w->alerts, e->rule);
        remember_alert(w, e);
        if (w->writer)
            samples_mark(w->writer, e->at_ns, e->fired ? SAMPLE_ALERT : SAMPLE_CLEAR, r->text, NULL);
        say_alert(w, r, e);
        start_hooks(w, r, e);
    }
    vec_clear(&w->events.items);
}

/* ---- one sample ---- */

/* How late the sample is stands in it as a series of its own: a course with gaps shows them. */
static tare_status add_late(struct watcher *w, double late_s, tare_error *err)
{
    size_t series;
    tare_status s = series_find(&w->probes.set, METRIC_SELF_LATE, "", &series, err);
    return s == TARE_OK ? sample_set(&w->probes.now, series, late_s, err) : s;
}

/* From values to quantities, and what these say: averages and peaks, phases, alerts. */
static tare_status judge_sample(struct watcher *w, tare_error *err)
{
    const struct series_set *set = &w->probes.set;
    const struct sample *now = &w->probes.now;
    tare_status s = deriver_feed(w->deriver, set, now, err);
    if (s == TARE_OK) s = course_feed(&w->course, w->deriver, now->at_ns, err);
    if (!w->child.started)
        return s; /* what there is before the program only counts as where counters begin */
    if (s == TARE_OK) s = system_report_feed(w->report, w->deriver, set, now->at_ns, err);
    if (s == TARE_OK && !derived_brief(w->deriver))
        s = alerts_feed(w->alerts, w->deriver, now->at_ns, &w->events, err);
    return s;
}

/* Of the dead the counters hold still; that it has no memory any more is no news. */
static tare_status forget_gauges(struct watcher *w, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < w->probes.set.items.n; i++) {
        enum metric_id m = w->probes.set.items.items[i].metric;
        bool own = m >= METRIC_PROC_CPU_USER && m <= METRIC_PROC_WRITE_CALLS;
        if (own && metric_table[m].kind == METRIC_GAUGE) s = sample_set(&w->probes.now, i, NAN, err);
    }
    return s;
}

/* One sample: read, judged, written, told. `last`: the program is dead, though not yet reaped. */
static void take_sample(struct watcher *w, double late_s, bool last)
{
    tare_error err = TARE_ERROR_INIT;
    w->probes.thorough = last;
    tare_status s = probes_sample(&w->probes, &err);
    if (s == TARE_OK) s = add_late(w, late_s, &err);
    if (s == TARE_OK && last) s = forget_gauges(w, &err);
    if (s == TARE_OK) s = judge_sample(w, &err);
    tare_status kept = s;
    if (s == TARE_OK && w->writer) kept = samples_append(w->writer, &w->probes.set, &w->probes.now, &err);
    if (s == TARE_OK && w->sender) sender_take(w->sender, &w->probes.set, &w->probes.now, last);
    watch_note_told(w);
    w->samples++;
    if (kept != TARE_OK && w->lost++ == 0) w->lost_why = err;
    tell_alerts(w);
}

void watch_begin(struct watcher *w)
{
    take_sample(w, 0, false);
}

/* ---- the schedule: an absolute timer, so that what a sample costs moves none of those after it ---- */

static uint64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS)};
}

struct sample_timer {
    int fd;
    uint64_t due_ns; /* the last moment that was due */
    uint64_t step_ns;
};

static bool timer_open(struct sample_timer *t, uint64_t step_ns)
{
    *t = (struct sample_timer){timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), monotonic_ns(),
                               step_ns};
    struct itimerspec every = {timespec_of(step_ns), timespec_of(t->due_ns + step_ns)};
    return t->fd >= 0 && timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &every, NULL) == 0;
}

/* A moment is due, or several: one sample for all of them. */
static void sample_when_due(struct watcher *w, struct sample_timer *t)
{
    uint64_t passed = 0;
    if (read(t->fd, &passed, sizeof passed) != (ssize_t)sizeof passed || passed == 0) return;
    t->due_ns += passed * t->step_ns;
    uint64_t now = monotonic_ns();
    w->late += passed > 1; /* moments were missed: tare was stopped, or the machine too busy to let it run */
    take_sample(w, now > t->due_ns ? (double)(now - t->due_ns) / 1e9 : 0, false);
}

/* ---- who ended ---- */

/* Of whom the program is made and of whom not (hooks, the witness) is told apart here: only the former are counted. */
static void reap_one(struct watcher *w, pid_t pid)
{
    struct rusage use;
    int status = 0;
    bool witness = pid == w->child.witness, load = w->load.pid && pid == w->load.pid;
    bool ours = witness || load || hooks_is_ours(&w->hooks, pid);
    child_reap(&w->child, pid, !ours, &status, &use);
    if (witness) w->child.witness = 0; /* somebody ended it; the number may be another's from now on */
    hooks_ended(&w->hooks, pid, status);
    if (load) load_side_ended(&w->load, status, w->child.reaped ? 0 : w->child.pid);
    probe_process_reaped(&w->probes, pid, &use); /* of ours: no longer ignored, its number may come again */
}

/* The last look at the program is taken while it is dead but not yet reaped: all its sums are there still. What it left
 * dead behind it is reaped too, so that it is accounted for and not taken for alive. True: there is nothing more to
 * watch. */
static bool reap_all(struct watcher *w)
{
    for (;;) {
        pid_t pid = child_ended();
        if (pid <= 0) return w->child.reaped && (pid < 0 || !w->options->wait_all);
        if (pid == w->child.pid) {
            w->child.end_ns = clock_raw_ns();
            take_sample(w, 0, true);
        }
        reap_one(w, pid);
        w->alive = probe_process_alive(&w->probes);
    }
}

static void ignore_witness(struct watcher *w)
{
    if (w->child.witness) probe_process_ignore(&w->probes, w->child.witness);
}

/* Signals came. True: there is nothing more to watch, or nobody wants it watched. A program may have its reasons to go
 * on when it is told to end; load on it has none. */
static bool take_signals(struct watcher *w)
{
    pid_t before = w->child.witness;
    bool ended = child_signals(&w->child);
    if (w->child.witness != before) {
        if (before) probe_process_reaped(&w->probes, before, &(struct rusage){0});
        ignore_witness(w);
    }
    if (w->child.interrupted) load_side_stop(&w->load);
    return (ended && reap_all(w)) || w->child.told_to_end;
}

/* Commands that are still at it get the rest of their time, not more, and less when tare is told to end. The load has
 * nobody who answers: it tells what there is. */
static void await_hooks(struct watcher *w)
{
    load_side_stop(&w->load);
    while (hooks_running(&w->hooks) || w->load.pid) {
        struct pollfd p = {w->child.signals, POLLIN, 0};
        hooks_expire(&w->hooks, w->child.told_to_end ? UINT64_MAX : clock_raw_ns());
        poll(&p, 1, 100);
        child_signals(&w->child);
        for (pid_t pid; (pid = child_ended()) > 0;) reap_one(w, pid);
    }
}

/* Sleeps until a signal or the timer wakes it; commands on alerts have a limit, which is looked at twice a second. */
void watch_until_end(struct watcher *w)
{
    struct sample_timer t;
    bool done = false, timed = timer_open(&t, (uint64_t)w->options->interval.ns);
    ignore_witness(w);
    while (!done) {
        struct pollfd fds[] = {{w->child.signals, POLLIN, 0},
                               {timed ? t.fd : -1, POLLIN, 0},
                               {probes_news(&w->probes), POLLIN, 0}};
        poll(fds, 3, hooks_running(&w->hooks) || w->load.ended_ns ? 500 : -1);
        done = fds[0].revents && take_signals(w);
        if (!done && fds[1].revents) sample_when_due(w, &t);
        if (!done && fds[2].revents && probes_news(&w->probes) >= 0)
            take_sample(w, 0, false); /* counters of the GPU begin now, not with the next sample */
        hooks_expire(&w->hooks, clock_raw_ns());
        if (!done && load_side_expire(&w->load, clock_raw_ns(), w->child.pid))
            watch_say(w->options, WATCH_WARNING,
                      "the program did not end when it was told to (SIGTERM): killed");
    }
    if (t.fd >= 0) close(t.fd);
    if (w->options->wait_all) {
        w->child.end_ns = clock_raw_ns();
        w->alive = w->child.told_to_end ? probe_process_alive(&w->probes) : 0;
    }
    await_hooks(w);
}
