/* SPDX-License-Identifier: MIT
 * alert_state.h - how a server's alert rules stand, who asked for silence, and which runs came, as the store keeps it:
 * a part of store.h. */
#ifndef STORE_ALERT_STATE_H
#define STORE_ALERT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

struct store_alert {
    const char *rule;    /* as written */
    const char *project; /* "": nobody's in particular */
    const char *about;   /* a host, a service's promise, a case of a subject */
    bool firing;
    bool told; /* what was told last: that it fires */
    int64_t since_ms;
    double value;
    const char *run; /* that brought it; NULL: none did */
};
typedef tare_status store_alert_fn(void *ctx, const struct store_alert *a, tare_error *err);

struct store_silence {
    const char *id;
    const char *project;      /* "": all */
    const char *rule, *about; /* NULL: every one */
    const char *why;          /* may be NULL */
    const char *who;          /* the token's id */
    int64_t created_ms, until_ms;
};
typedef tare_status store_silence_fn(void *ctx, const struct store_silence *q, tare_error *err);

/* Runs of one subject and project that came after a number; the greatest number of them. */
struct store_arrival {
    int64_t seq;
    const char *subject, *project; /* may be NULL */
};
typedef tare_status store_arrival_fn(void *ctx, const struct store_arrival *a, tare_error *err);

/* ---- what a backend does ---- */

struct store;
typedef tare_status store_alert_put_op(struct store *s, const struct store_alert *a, tare_error *err);
typedef tare_status store_alerts_op(struct store *s, store_alert_fn *fn, void *ctx, tare_error *err);
typedef tare_status store_silence_add_op(struct store *s, const struct store_silence *q, tare_error *err);
/* The one with this id, of this project (NULL: any), ends at until_ms. Not ended: there is none that goes on. */
typedef tare_status store_silence_end_op(struct store *s, const struct store_silence *q, bool *ended,
                                         tare_error *err);
/* Those that go on, oldest first. */
typedef tare_status store_silences_op(struct store *s, int64_t now_ms, store_silence_fn *fn, void *ctx,
                                      tare_error *err);
typedef tare_status store_runs_after_op(struct store *s, int64_t seq, store_arrival_fn *fn, void *ctx,
                                        tare_error *err);

#endif
