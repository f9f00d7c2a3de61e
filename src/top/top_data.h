/* SPDX-License-Identifier: MIT
 * top_data.h - what `tare top` knows at one moment, whether seen now or played back from a recording: the sample, what
 * is derived from it, the processes, the alerts and a while of history. Draws and prints nothing. */
#ifndef TOP_TOP_DATA_H
#define TOP_TOP_DATA_H

#include "analyze/watch/alert.h"
#include "core/vec.h"
#include "probe/probe.h"
#include "probe/proclist.h"

struct store;
struct top_remote;

enum { TOP_HISTORY = 600, TOP_HISTORIES = 5 }; /* moments kept for the graphs */

struct top_history {
    double y[TOP_HISTORY];
    size_t n;
};

/* What is kept over time, in the order of the graphs. */
struct top_history_row {
    const char *name; /* of the quantity, see derive.h */
    const char *title;
    double top; /* of the scale; 0: the greatest value there is */
};
extern const struct top_history_row top_histories[TOP_HISTORIES];

struct top_alert { /* of the rule of the same number */
    bool active;
    uint64_t since_ns;
    double value;
};

struct top_chosen { /* the process that the user chose, by number and beginning; pid 0: none */
    pid_t pid;
    uint64_t started;
    bool details;                   /* more of it is wanted */
    struct top_history cpu, memory; /* since it was chosen */
    struct proclist threads;        /* folder -1: not looked at */
};

struct top_rows {
    VEC(struct proc_row) at;
};

struct top_data {
    /* the moment */
    const struct series_set *set;
    const struct sample *now;
    struct deriver *derived;
    const struct proc_row *rows; /* processes by pid */
    size_t n_rows, denied;
    bool rows_known;  /* there are processes to show */
    uint64_t unix_ns; /* of the moment */
    uint64_t samples; /* moments so far */
    struct top_chosen chosen;
    const char *blind; /* what cannot be seen and why, a line each */
    struct top_history history[TOP_HISTORIES];
    struct alert_rules rules;
    VEC(struct top_alert) alert;
    struct alerts *alerts;

    /* seen now */
    struct probes probes;
    struct proclist list;
    pid_t program; /* 0: the machine */

    /* recorded */
    struct samples_writer *record;
    size_t recorded_processes; /* series made for them so far */

    struct top_remote *remote; /* a server is asked; NULL: none */

    /* played back */
    bool replaying;
    struct samples tape;
    size_t at; /* the moment of the tape */
    struct sample taped;
    struct top_rows taped_rows;
};

struct top_source {
    pid_t program;               /* 0: all */
    const char *record, *replay; /* files; NULL: none */
    const char *const *alerts;   /* rules beside the default ones */
    size_t n_alerts;
    struct store *server; /* to ask, open; NULL: this machine */
    const char *host;     /* of that server; NULL: the only one */
};

/* Opens what is asked for; `d` is to be closed after a failure too. */
tare_status top_data_open(struct top_data *d, const struct top_source *from, tare_error *err);
tare_status top_data_close(struct top_data *d, tare_error *err); /* fails when the end of a recording does */

/* The next moment. Of a recording: the next of it, or the last again. A failure to record is TARE_IO: nothing is
 * recorded from then on. */
tare_status top_data_next(struct top_data *d, tare_error *err);
tare_status top_data_seek(struct top_data *d, size_t moment, tare_error *err); /* of a recording */
bool top_data_ended(const struct top_data *d); /* the recording is at its end */

/* A quantity now, see derived_value(); NAN: unknown. */
double top_value(const struct top_data *d, const char *name, const char *label);
/* The lines of what cannot be seen, "probe: why", one by one from .next on. */
struct top_blind_line {
    const char *next, *probe, *why;
    size_t n_probe, n_why;
};
bool top_blind_next(struct top_blind_line *line);
/* Why the probe of this name sees nothing, in `out`. false: it is not blind. */
bool top_blind(const struct top_data *d, const char *probe, char *out, size_t size);

void top_history_add(struct top_history *h, double v);
double top_history_greatest(const struct top_history *h);
const struct proc_row *top_row_of(const struct top_data *d, pid_t pid); /* NULL: not there now */

/* top_chosen.c */
void top_choose(struct top_data *d, const struct proc_row *r);   /* NULL: none */
const struct proc_row *top_chosen_row(const struct top_data *d); /* NULL: none is, or it has ended */
void top_details(struct top_data *d, bool on);
void top_chosen_look(struct top_data *d); /* at each moment, once its rows are known */
tare_status top_chosen_signal(const struct top_data *d, int signal, tare_error *err);

/* top_remote.c: a host as a server knows it. */
typedef tare_status top_fed_fn(void *ctx, const struct series_set *set, const struct sample *now,
                               tare_error *err);
/* TARE_INVALID: no such host, or which one? To be closed after a failure too. */
tare_status top_remote_open(struct top_remote **out, struct store *server, const char *host, tare_error *err);
void top_remote_close(struct top_remote *r); /* NULL is fine */
/* Feeds what came since; nothing where nothing did. */
tare_status top_remote_next(struct top_remote *r, top_fed_fn *feed, void *ctx, tare_error *err);
const char *top_remote_host(const struct top_remote *r);
const char *top_remote_where(const struct top_remote *r);
double top_remote_age_s(const struct top_remote *r); /* of the last moment */

/* top_record.c: processes as series of a sample, and back. */
tare_status top_record_rows(struct top_data *d, tare_error *err);
tare_status top_replay_rows(struct top_data *d, tare_error *err);
bool top_is_process_label(const char *label);

#endif
