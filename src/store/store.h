/* SPDX-License-Identifier: MIT
 * store.h - the history: run documents kept whole, and beside them the numbers of each case by name, so
 * that a question about a hundred runs reads no document. One interface; a backend is a row of store_ops
 * (sqlite.c, postgres.c, remote.c; tests/unit/test_store.c takes any that is written to). Judges nothing and never
 * changes a document.
 *
 *     struct store *s;
 *     if (store_open(&s, "tare-results/history.db", &(struct store_options){.create = true}, err) < 0) ...
 *     store_add_run(s, &run, &(struct store_context){.commit = "1f3a.."}, &added, err);
 *     store_close(s);
 *
 * An add that returned TARE_OK survives a killed process and a power cut; one that failed left nothing. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "core/buf.h"
#include "core/json.h"
#include "core/ulid.h"
#include "core/vec.h"
#include "run/run.h"
#include "store/alert_state.h"
#include "store/job.h"
#include "store/forward.h"
#include "store/guard.h"
#include "store/rollup.h"
#include "store/pin.h"
#include "store/store_slots.h"
#include "store/upload.h"

#define STORE_NAME_MAX 64   /* bytes of a tag or of a baseline's name */
#define STORE_WAIT_MS 5000u /* for another process that writes */

struct store_options {
    bool create;       /* make it, and its folder, where there is none */
    unsigned wait_ms;  /* 0: STORE_WAIT_MS; of a server: for an answer, and 0 is CLIENT_DEADLINE_MS */
    const char *token; /* for a server */
};

/* ---- what goes in ---- */
/* ln(this run / a frozen anchor build), measured interleaved. */
struct store_ratio {
    const char *case_name, *metric; /* metric: a name of measure_table */
    const char *anchor;             /* which build: a commit, a version, a hash */
    struct run_estimate ln;
    struct known_u64 samples;
};

struct store_context { /* all zero: nothing is known beside the document */
    const char *commit, *branch, *project;
    struct known_bool dirty;
    struct store_body text; /* the document's own text, which is what comes back; empty: it is written anew */
    const struct store_ratio *ratios;
    size_t n_ratios;
};

/* What is known of a run without its document. Texts may be NULL. */
struct store_run {
    const char *id, *kind, *created, *subject, *sha256, *runtime;
    const char *host; /* fingerprint */
    const char *hostname, *commit, *branch;
    const char *project; /* in only */
    struct known_bool dirty;
    int64_t created_ms; /* unix */
    uint64_t cases, bytes;
    const char *tags; /* out only: "release,baseline:main"; NULL: none */
};

struct store_value {
    const char *case_name, *metric;
    const char *anchor; /* "": a value of its own; else value, lo and hi are ln of the ratio to it */
    double value;
    struct known_f64 lo, hi;
    struct known_u64 samples;
};

/* ---- what is asked ---- */
struct store_filter { /* all zero: every run */
    const char *subject, *host, *tag, *id_prefix, *project;
    const char *commit; /* its beginning */
    const char *before; /* id: those that come after this run in the list; NULL: from its beginning */
    int64_t since_ms;   /* 0: any */
    uint64_t limit;     /* 0: all */
};

struct store_query { /* NULL: any */
    const char *subject, *case_name, *metric, *host;
    const char *anchor; /* "" values of their own */
    const char *project;
    int64_t after;  /* of series with a greater id; they come in their order */
    uint64_t limit; /* 0: all */
};

struct store_span {
    int64_t series; /* id of a store_series_name */
    uint64_t last;  /* the newest so many; 0: all */
    const char *project;
};

struct store_series_name {
    int64_t id; /* for ops->series() */
    const char *subject, *case_name, *metric, *anchor, *host, *hostname;
    uint64_t points;
};

struct store_point {
    char run[ULID_SIZE];
    int64_t created_ms;
    double value;
    struct known_f64 lo, hi;
    struct known_u64 samples;
    char commit[65]; /* "": unknown */
    char branch[65]; /* cut where longer */
    struct known_bool dirty;
};
struct store_points {
    VEC(struct store_point) at; /* oldest first */
};

/* A run of a list as every list shows it, by the command or over HTTP; the tags as a list of theirs. */
void store_run_json(struct json *j, const struct store_run *run);
void store_series_json(struct json *j, const struct store_series_name *name);
void store_point_json(struct json *j, const struct store_point *p);

struct store_health; /* care.h */
struct store_expiry;

typedef tare_status store_run_fn(void *ctx, const struct store_run *run, tare_error *err);
typedef tare_status store_name_fn(void *ctx, const struct store_series_name *name, tare_error *err);

/* ---- a backend ---- */
struct store;
struct store_entry {
    struct store_run about;
    struct store_body body; /* compressed by store.c, unless ops->plain */
    const struct store_value *values;
    size_t n_values;
};

struct store_ops {
    const char *name;
    bool plain; /* documents go in and come out as they are, and whoever keeps them finds their numbers */
    tare_status (*open)(struct store **out, const char *where, const struct store_options *o,
                        tare_error *err);
    void (*close)(struct store *s);
    /* Between begin and end(commit) several changes are one; without them each is one by itself. */
    tare_status (*begin)(struct store *s, tare_error *err);
    tare_status (*end)(struct store *s, bool commit, tare_error *err);
    tare_status (*add)(struct store *s, const struct store_entry *e, bool *added, tare_error *err);
    tare_status (*remove)(struct store *s, const char *id, tare_error *err);
    tare_status (*check)(struct store *s, struct store_health *out, tare_error *err);
    /* A copy as of one moment, while others write; it is whole, or it is not there. */
    tare_status (*backup)(struct store *s, const char *to, tare_error *err);
    tare_status (*expire)(struct store *s, struct store_expiry *e,
                          tare_error *err); /* one slice, one change */
    tare_status (*tag)(struct store *s, const char *id, const char *name, bool on, tare_error *err);
    tare_status (*pin)(struct store *s, const char *id, const char *name, bool on, tare_error *err);
    store_pinned_op *pinned; /* pin.h */
    store_pins_op *pins;
    tare_status (*list)(struct store *s, const struct store_filter *f, store_run_fn *fn, void *ctx,
                        tare_error *err); /* newest first; texts hold until fn returns */
    tare_status (*body)(struct store *s, const char *id, struct buf *out, tare_error *err);
    tare_status (*names)(struct store *s, const struct store_query *q, store_name_fn *fn, void *ctx,
                         tare_error *err);
    tare_status (*series)(struct store *s, const struct store_span *span, struct store_points *out,
                          tare_error *err);
    tare_status (*in_project)(struct store *s, const char *id, const char *project, bool *yes,
                              tare_error *err);
    tare_status (*token_add)(struct store *s, const struct store_token *t, tare_error *err);
    tare_status (*token_revoke)(struct store *s, const char *id, int64_t now_ms,
                                tare_error *err); /* TARE_INVALID: there is none, or it is revoked */
    tare_status (*tokens)(struct store *s, store_token_fn *fn, void *ctx, tare_error *err); /* oldest first */
    tare_status (*token_used)(struct store *s, const char *id, int64_t now_ms, tare_error *err);
    /* ---- audit ---- entries are added, never changed. The seq of the last one; `next`: of one to be added now,
     * within a transaction: whoever else wants the next waits until its end */
    tare_status (*audit_seq)(struct store *s, bool next, int64_t *out, tare_error *err);
    tare_status (*audit_add)(struct store *s, const struct store_audit *entry, tare_error *err);
    tare_status (*audits)(struct store *s, const struct store_audit_filter *f, store_audit_fn *fn, void *ctx,
                          tare_error *err);
    store_sent_op *requests_batch; /* requests: store_slots.h says what each does */
    store_slot_get_op *slot_get;
    store_slot_put_op *slot_put;
    store_slots_drop_op *slots_drop;
    store_sent_drop_op *requests_drop;
    store_slots_op *slots;
    store_services_op *services;
    /* jobs: `job_change` sets state, record and times of the one with this id */
    tare_status (*job_add)(struct store *s, const struct store_job *job, tare_error *err);
    tare_status (*job_change)(struct store *s, const struct store_job *job, tare_error *err);
    tare_status (*jobs)(struct store *s, const struct store_job_filter *f, store_job_fn *fn, void *ctx,
                        tare_error *err); /* newest first */
    /* Those of an owner that neither ended nor can go on: lost, since now. */
    tare_status (*jobs_lose)(struct store *s, const char *owner, int64_t now_ms, tare_error *err);
    store_alert_put_op *alert_put; /* alerts: alert_state.h says what each does */
    store_alerts_op *alerts;
    store_silence_add_op *silence_add;
    store_silence_end_op *silence_end;
    store_silences_op *silences;
    store_runs_after_op *runs_after;
    /* A number that differs when another connection has changed anything since. */
    tare_status (*version)(struct store *s, int64_t *out, tare_error *err);
    tare_status (*batch_add)(struct store *s, const struct store_batch *b, enum store_kept *kept,
                             tare_error *err);
    /* By name; project, name NULL: any. */
    tare_status (*hosts)(struct store *s, const struct store_host *like, store_host_fn *fn, void *ctx,
                         tare_error *err);
    tare_status (*metrics)(struct store *s, const struct store_metric_query *q, store_metric_fn *fn,
                           void *ctx, tare_error *err); /* by name and label */
    tare_status (*chunks)(struct store *s, const struct store_chunk_query *q, store_chunk_fn *fn, void *ctx,
                          tare_error *err);
    tare_status (*chunk_newest)(struct store *s, int64_t *seq, tare_error *err); /* 0: there is none */
    struct store_file_ops files;                                                 /* of runs: upload.h */
    struct store_rollup_ops rollups; /* sums over minutes and hours: rollup.h */
    struct store_forward_ops forward;
    /* Of a server that is asked by HTTP, which has none of the others here but hosts(). */
    tare_status (*latest)(struct store *s, struct store_latest_query *q, store_latest_fn *fn, void *ctx,
                          tare_error *err);
};

struct store { /* a backend's own struct begins with it */
    const struct store_ops *ops;
    const char *where;
    void *packer; /* of store.c: what compresses documents, made once */
};

extern const struct store_ops store_sqlite, store_postgres, store_remote;

/* ---- for everyone ---- */
/* `where`: a file, a server (http://..), or a PostgreSQL database (postgresql://..), whose password no message tells.
 * TARE_INVALID where there is none and `create` is not set; TARE_FORMAT when it is damaged, something else
 * or of a newer version; TARE_BUSY when another process holds it for longer than `wait_ms`. */
tare_status store_open(struct store **out, const char *where, const struct store_options *o, tare_error *err);
void store_close(struct store *s); /* may be NULL */
bool store_is_url(const char *where);

/* Keep a run. One that is there already (by id) is left as it is: *added is false then. */
tare_status store_add_run(struct store *s, const struct run *run, const struct store_context *c, bool *added,
                          tare_error *err);

/* The one run whose id begins so, or "latest". TARE_INVALID: none, or several. */
tare_status store_find(struct store *s, const char *prefix, char id[ULID_SIZE], tare_error *err);
tare_status store_document(struct store *s, const char *id, struct buf *text, tare_error *err);

bool store_name_ok(const char *name); /* letters, digits and . _ - / of at most STORE_NAME_MAX bytes */

/* The newest `last` points (0: all) of one series, oldest first: a case and metric of a subject on a host.
 * None: *out is empty. Release with vec_release(&out->at). */
tare_status store_series(struct store *s, const struct store_query *q, uint64_t last,
                         struct store_points *out, tare_error *err);

#endif
