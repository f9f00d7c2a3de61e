/* SPDX-License-Identifier: MIT
 * top_data.c - see top_data.h. */
#include "top/top_data.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"

const struct top_history_row top_histories[TOP_HISTORIES] = {
    {"cpu", "processors", 1},        {"memory", "memory", 1},   {"disk.throughput", "disks", 0},
    {"net", "networks", 0},          {"gpu", "GPU", 1},
};

/* ---- opening ---- */

/* Rules of the defaults and of the command line. */
static tare_status open_alerts(struct top_data *d, const struct top_source *from, tare_error *err)
{
    tare_status s = alert_rules_add(&d->rules, true, from->alerts, from->n_alerts, err);
    for (size_t i = 0; i < d->rules.items.n && s == TARE_OK; i++)
        s = vec_push(&d->alert, (struct top_alert){0}, err);
    return s == TARE_OK ? alerts_new(&d->alerts, d->rules.items.items, d->rules.items.n, err) : s;
}

static tare_status open_live(struct top_data *d, const struct top_source *from, tare_error *err)
{
    struct probe_place here = {.root = "", .program = from->program, .detail = true};
    if (from->program && kill(from->program, 0) != 0 && errno == ESRCH)
        return error_set(err, TARE_INVALID, "--pid %d: there is no such process", (int)from->program);
    d->program = from->program;
    tare_status s = probes_open(&d->probes, NULL, 0, &here, err);
    if (s < 0) return s;
    d->set = &d->probes.set;
    d->now = &d->probes.now;
    d->blind = d->probes.blind.data;
    s = proclist_open(&d->list, "", err);
    if (s == TARE_OK && from->record) s = samples_create(&d->record, from->record, NULL, err);
    return s;
}

static tare_status told_away(tare_status s, tare_error *err)
{
    if (s == TARE_IO) error_wrap(err, "server away");
    return s;
}

static tare_status open_remote(struct top_data *d, const struct top_source *from, tare_error *err)
{
    static const struct series_set no_series = SERIES_SET_INIT;
    static const struct sample nothing = SAMPLE_INIT;
    tare_status s = top_remote_open(&d->remote, from->server, from->host, err);
    if (s != TARE_OK) return told_away(s, err);
    d->set = &no_series; /* until the first moment */
    d->now = &nothing;
    return TARE_OK;
}

static tare_status open_tape(struct top_data *d, const char *path, tare_error *err)
{
    d->replaying = true;
    tare_status s = samples_load(&d->tape, path, err);
    if (s < 0) return s;
    if (d->tape.at_ns.n == 0) return error_set(err, TARE_FORMAT, "%s: holds no samples", path);
    d->set = &d->tape.set;
    d->now = &d->taped;
    d->blind = "";
    return TARE_OK;
}

tare_status top_data_open(struct top_data *d, const struct top_source *from, tare_error *err)
{
    memset(d, 0, sizeof *d);
    d->list.folder = d->chosen.threads.folder = -1;
    d->blind = "";
    tare_status s = open_alerts(d, from, err);
    if (s == TARE_OK) s = deriver_new(&d->derived, err);
    if (s < 0) return s;
    if (from->server) return open_remote(d, from, err);
    return from->replay ? open_tape(d, from->replay, err) : open_live(d, from, err);
}

tare_status top_data_close(struct top_data *d, tare_error *err)
{
    tare_status s = d->record ? samples_close(d->record, err) : TARE_OK;
    if (!d->replaying && !d->remote && d->set) probes_close(&d->probes);
    top_remote_close(d->remote);
    top_choose(d, NULL);
    if (d->list.folder >= 0) proclist_close(&d->list);
    samples_release(&d->tape);
    sample_release(&d->taped);
    vec_release(&d->taped_rows.at);
    alerts_free(d->alerts);
    deriver_free(d->derived);
    vec_release(&d->rules.items);
    vec_release(&d->alert);
    return s;
}

/* ---- one moment ---- */

double top_value(const struct top_data *d, const char *name, const char *label)
{
    double v;
    return derived_value(d->derived, name, label, &v) ? v : NAN;
}

bool top_blind_next(struct top_blind_line *line)
{
    if (!*line->next) return false;
    const char *end = strchrnul(line->next, '\n');
    line->probe = line->next;
    line->n_probe = strcspn(line->probe, ":\n");
    line->why = line->probe + line->n_probe;
    line->why += strspn(line->why, ": ");
    line->n_why = (size_t)(end - line->why);
    line->next = end + (*end == '\n');
    return true;
}

bool top_blind(const struct top_data *d, const char *probe, char *out, size_t size)
{
    struct top_blind_line line = {.next = d->blind};
    while (top_blind_next(&line)) {
        if (strlen(probe) != line.n_probe || memcmp(probe, line.probe, line.n_probe) != 0) continue;
        snprintf(out, size, "%.*s", (int)line.n_why, line.why);
        return true;
    }
    return false;
}

void top_history_add(struct top_history *h, double v)
{
    if (h->n == TOP_HISTORY) memmove(h->y, h->y + 1, --h->n * sizeof *h->y);
    h->y[h->n++] = v;
}

double top_history_greatest(const struct top_history *h)
{
    double top = 0;
    for (size_t i = 0; i < h->n; i++)
        if (h->y[i] > top) top = h->y[i];
    return top;
}

static tare_status mark_event(struct top_data *d, const struct alert_event *e, tare_error *err)
{
    struct top_alert *a = &d->alert.items[e->rule];
    a->active = e->fired;
    a->since_ns = e->since_ns;
    a->value = e->value;
    if (!d->record) return TARE_OK;
    return samples_mark(d->record, e->at_ns, e->fired ? SAMPLE_ALERT : SAMPLE_CLEAR,
                        d->rules.items.items[e->rule].text, err);
}

/* Derive, judge and remember what the sample says. */
static tare_status digest_sample(struct top_data *d, tare_error *err)
{
    struct alert_events events = {VEC_INIT};
    tare_status s = deriver_feed(d->derived, d->set, d->now, err);
    if (s == TARE_OK) s = alerts_feed(d->alerts, d->derived, d->now->at_ns, &events, err);
    for (size_t i = 0; i < events.items.n && s == TARE_OK; i++)
        s = mark_event(d, &events.items.items[i], err);
    vec_release(&events.items);
    for (size_t i = 0; i < TOP_HISTORIES && s == TARE_OK; i++)
        top_history_add(&d->history[i], top_value(d, top_histories[i].name, ""));
    d->samples++;
    return s;
}

/* A recording that cannot go on ends, and what is shown goes on. */
static tare_status record_now(struct top_data *d, tare_error *err)
{
    if (!d->record) return TARE_OK;
    tare_status s = top_record_rows(d, err);
    if (s == TARE_OK) s = samples_append(d->record, &d->probes.set, &d->probes.now, err);
    if (s == TARE_OK) return s;
    samples_close(d->record, NULL);
    d->record = NULL;
    return s;
}

static tare_status sample_now(struct top_data *d, tare_error *err)
{
    tare_status s = probes_sample(&d->probes, err);
    if (s == TARE_OK) s = proclist_scan(&d->list, d->probes.now.at_ns, err);
    d->rows = d->list.rows.items;
    d->n_rows = d->list.rows.n;
    d->denied = d->list.denied;
    d->rows_known = true;
    d->unix_ns = clock_unix_ns();
    top_chosen_look(d);
    if (s == TARE_OK) s = digest_sample(d, err);
    return s == TARE_OK ? record_now(d, err) : s;
}

/* ---- a server ---- */

static tare_status feed_moment(void *ctx, const struct series_set *set, const struct sample *now,
                               tare_error *err)
{
    struct top_data *d = ctx;
    d->set = set;
    d->now = now;
    d->unix_ns = now->at_ns;
    return digest_sample(d, err);
}

static tare_status ask_now(struct top_data *d, tare_error *err)
{
    return told_away(top_remote_next(d->remote, feed_moment, d, err), err);
}

/* ---- a tape ---- */

bool top_data_ended(const struct top_data *d)
{
    return d->replaying && d->samples > 0 && d->at + 1 >= d->tape.at_ns.n;
}

/* The moment as a sample. What was recorded of single processes is for the table alone: live, too, nothing is derived
 * from it. */
static tare_status play_moment(struct top_data *d, size_t moment, tare_error *err)
{
    tare_status s = TARE_OK;
    sample_clear(&d->taped);
    d->taped.at_ns = d->tape.at_ns.items[moment];
    for (size_t i = 0; i < d->tape.columns.n && s == TARE_OK; i++)
        if (!top_is_process_label(d->tape.set.items.items[i].label))
            s = sample_set(&d->taped, i, d->tape.columns.items[i][moment], err);
    d->at = moment;
    d->unix_ns = d->tape.start_unix_ns + (d->taped.at_ns - d->tape.start_ns);
    return s == TARE_OK ? digest_sample(d, err) : s;
}

static tare_status replay_rows(struct top_data *d, tare_error *err)
{
    tare_status s = top_replay_rows(d, err);
    top_chosen_look(d);
    return s;
}

/* Rates, alerts and graphs depend on what came before, so they begin anew and as much of the past is played as a graph
 * shows. The new ones are made before the old ones are given up: without memory for them the moment stays as it was. */
tare_status top_data_seek(struct top_data *d, size_t moment, tare_error *err)
{
    struct deriver *derived = NULL;
    struct alerts *alerts = NULL;
    size_t last = d->tape.at_ns.n - 1;
    if (moment > last) moment = last;
    tare_status s = deriver_new(&derived, err);
    if (s == TARE_OK) s = alerts_new(&alerts, d->rules.items.items, d->rules.items.n, err);
    if (s < 0) {
        deriver_free(derived);
        return s;
    }
    deriver_free(d->derived);
    alerts_free(d->alerts);
    d->derived = derived;
    d->alerts = alerts;
    for (size_t i = 0; i < d->alert.n; i++) d->alert.items[i] = (struct top_alert){0};
    for (size_t i = 0; i < TOP_HISTORIES; i++) d->history[i].n = 0;
    d->chosen.cpu.n = d->chosen.memory.n = d->samples = 0;
    for (size_t i = moment > TOP_HISTORY ? moment - TOP_HISTORY : 0; i <= moment && s == TARE_OK; i++)
        s = play_moment(d, i, err);
    return s == TARE_OK ? replay_rows(d, err) : s;
}

tare_status top_data_next(struct top_data *d, tare_error *err)
{
    if (d->remote) return ask_now(d, err);
    if (!d->replaying) return sample_now(d, err);
    if (top_data_ended(d)) return TARE_OK;
    tare_status s = play_moment(d, d->samples ? d->at + 1 : 0, err);
    return s == TARE_OK ? replay_rows(d, err) : s;
}
