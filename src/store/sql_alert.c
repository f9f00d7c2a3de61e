/* SPDX-License-Identifier: MIT
 * sql_alert.c - how alert rules stand, silences, and which runs came since. */
#include "store/sql.h"

tare_status db_alert_put(struct store *base, const struct store_alert *a, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_ALERT_PUT, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, a->rule);
    db_text(q, 2, a->project);
    db_text(q, 3, a->about);
    db_int(q, 4, a->firing);
    db_int(q, 5, a->told);
    db_int(q, 6, a->since_ms);
    db_real(q, 7, a->value);
    db_text(q, 8, a->run);
    return db_step(s, q, "keeping an alert", err);
}

tare_status db_alerts(struct store *base, store_alert_fn *fn, void *ctx, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    enum db_result rc = DB_DONE;
    tare_status status = db_get(s, DB_ALERTS, &q, err);
    if (status != TARE_OK) return status;
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_alert a = {.rule = db_column(q, 0),
                                .project = db_column(q, 1),
                                .about = db_column(q, 2),
                                .firing = db_int_at(q, 3) != 0,
                                .told = db_int_at(q, 4) != 0,
                                .since_ms = db_int_at(q, 5),
                                .value = db_real_at(q, 6),
                                .run = db_column(q, 7)};
        status = a.rule && a.project && a.about
                     ? fn(ctx, &a, err)
                     : error_set(err, TARE_FORMAT, "%s: the table of alerts is damaged", s->path);
    }
    return db_walked(s, q, rc, status, err);
}

tare_status db_silence_add(struct store *base, const struct store_silence *silence, tare_error *err)
{
    const char *const texts[] = {silence->id,    silence->project, silence->rule,
                                 silence->about, silence->why,     silence->who};
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_ADD_SILENCE, &q, err);
    if (status != TARE_OK) return status;
    for (int i = 0; i < 6; i++) db_text(q, i + 1, texts[i]);
    db_int(q, 7, silence->created_ms);
    db_int(q, 8, silence->until_ms);
    return db_step(s, q, "adding a silence", err);
}

tare_status db_silence_end(struct store *base, const struct store_silence *silence, bool *ended,
                           tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_END_SILENCE, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, silence->id);
    db_text(q, 2, silence->project);
    db_int(q, 3, silence->until_ms);
    status = db_step(s, q, "ending a silence", err);
    *ended = status == TARE_OK && db_changes(s->db) > 0;
    return status;
}

tare_status db_silences(struct store *base, int64_t now_ms, store_silence_fn *fn, void *ctx, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    enum db_result rc = DB_DONE;
    tare_status status = db_get(s, DB_SILENCES, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, now_ms);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_silence a = {.created_ms = db_int_at(q, 6), .until_ms = db_int_at(q, 7)};
        const char **texts[] = {&a.id, &a.project, &a.rule, &a.about, &a.why, &a.who};
        for (int i = 0; i < 6; i++) *texts[i] = db_column(q, i);
        status = a.id && a.project && a.who
                     ? fn(ctx, &a, err)
                     : error_set(err, TARE_FORMAT, "%s: the table of silences is damaged", s->path);
    }
    return db_walked(s, q, rc, status, err);
}

tare_status db_runs_after(struct store *base, int64_t seq, store_arrival_fn *fn, void *ctx, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    enum db_result rc = DB_DONE;
    tare_status status = db_get(s, DB_RUNS_AFTER, &q, err);
    if (status != TARE_OK) return status;
    db_int(q, 1, seq);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_arrival a = {db_int_at(q, 0), db_column(q, 1), db_column(q, 2)};
        status = fn(ctx, &a, err);
    }
    return db_walked(s, q, rc, status, err);
}
