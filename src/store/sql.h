/* SPDX-License-Identifier: MIT
 * sql.h - what the files of both backends share: the store with its connection, every statement, every part.
 * Private to src/store. */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include "core/map.h"
#include "store/db.h"
#include "store/store.h"

/* Every statement there is, once; prepared when first used, kept until the end. */
enum db_sql {
    DB_BEGIN,
    DB_COMMIT,
    DB_ROLLBACK,
    DB_ADD_RUN,
    DB_ADD_DOCUMENT,
    DB_FIND_SERIES,
    DB_ADD_SERIES,
    DB_ADD_VALUE,
    DB_FIND_RUN,
    DB_ADD_TAG,
    DB_DROP_TAG,
    DB_PIN,
    DB_UNPIN,
    DB_PINNED,
    DB_PINS,
    DB_DROP_VALUES,
    DB_DROP_DOCUMENT,
    DB_DROP_TAGS,
    DB_DROP_PINS,
    DB_DROP_RUN,
    DB_DROP_EMPTY,
    DB_LIST,
    DB_COUNT_RUNS,
    DB_COUNT_BARE,
    DB_COUNT_ORPHANS,
    DB_OLD_RUNS,
    DB_BODY,
    DB_NAMES,
    DB_NAMES_PROJECT,
    DB_SERIES,
    DB_SERIES_PROJECT,
    DB_ADD_PROJECT,
    DB_DROP_PROJECT,
    DB_LIST_PROJECT,
    DB_IN_PROJECT,
    DB_ADD_TOKEN,
    DB_REVOKE_TOKEN,
    DB_TOKENS,
    DB_VERSION,
    DB_USE_TOKEN,
    DB_ADD_AUDIT,
    DB_AUDIT_SEQ,
    DB_AUDIT_NEXT,
    DB_AUDITS,
    DB_AUDITS_NEWEST,
    DB_FIND_HOST,
    DB_HEAR_HOST,
    DB_ADD_BATCH,
    DB_BATCH_HASH,
    DB_COUNT_METRICS,
    DB_FIND_METRIC,
    DB_ADD_METRIC,
    DB_ADD_CHUNK,
    DB_HOSTS,
    DB_METRICS,
    DB_CHUNKS_BY_TIME,
    DB_CHUNKS_AFTER,
    DB_CHUNK_NEWEST,
    DB_ADD_REQUESTS,
    DB_FIND_REQUESTS,
    DB_FIND_ROUTE,
    DB_ADD_ROUTE,
    DB_TOUCH_ROUTE,
    DB_GET_SLOT,
    DB_PUT_SLOT,
    DB_DROP_SLOTS,
    DB_DROP_REQUESTS,
    DB_SLOTS,
    DB_SERVICES,
    DB_ADD_JOB,
    DB_CHANGE_JOB,
    DB_JOBS,
    DB_LOSE_JOBS,
    DB_ALERT_PUT,
    DB_ALERTS,
    DB_ADD_SILENCE,
    DB_END_SILENCE,
    DB_SILENCES,
    DB_RUNS_AFTER,
    DB_SUM_PIECES,
    DB_TOUCH_PIECE,
    DB_ADD_PIECE,
    DB_FIND_PIECE,
    DB_UPLOAD_OWNER,
    DB_UPLOAD_NAMED,
    DB_ADD_UPLOAD,
    DB_LINK_PIECE,
    DB_UPLOADS_OF_RUN,
    DB_UPLOADS_BY_HASH,
    DB_PIECE,
    DB_SWEEP_PIECES,
    DB_NEXT_PIECE,
    DB_COUNT_TORN,
    DB_DROP_LINKS,
    DB_DROP_UPLOADS,
    DB_TOUCH_BLOCK,
    DB_BLOCKS,
    DB_BLOCK_DUE,
    DB_BLOCK_AGAIN,
    DB_BLOCK_DONE,
    DB_PUT_OFF_BLOCK,
    DB_BLOCK_WHOLE,
    DB_BLOCK_BARE,
    DB_BLOCK_LAST,
    DB_CUT_BLOCK,
    DB_DROP_BLOCKS,
    DB_EMPTY_CHUNKS,
    DB_DROP_SUMMED,
    DB_DROP_CHUNKS,
    DB_DROP_BATCHES,
    DB_PUT_ROLLUP,
    DB_ROLLUPS,
    DB_DROP_ROLLUPS,
    DB_TAKE_FORWARD,
    DB_NOTE_FORWARD,
    DB_N
};

struct db_store {
    struct store base;
    struct db_conn *db;
    char *path; /* what messages call it: never a password */
    unsigned wait_ms;
    int depth; /* of begin */
    struct db_stmt *prepared[DB_N];
    struct map_str metric_ids; /* of series that were seen; emptied when a transaction is taken back */
};

extern const char *const db_statements[DB_N];
extern const char *const db_migrations[]; /* row i brings it from version i to i + 1 */
extern const int db_schema_version;

static inline struct db_store *db_of(struct store *s)
{
    return (struct db_store *)s;
}

/* The last error of the connection as a sentence that names the file. */
tare_status db_fail(const struct db_store *s, const char *doing, tare_error *err);

/* A statement ready to bind and step; db_done() when finished with it. */
tare_status db_get(struct db_store *s, enum db_sql which, struct db_stmt **out, tare_error *err);
void db_done(struct db_stmt *q);
/* One row, one number; *out stays where there is none. */
tare_status db_number(struct db_store *s, struct db_stmt *q, int64_t *out, tare_error *err);
/* How a walk over rows ended: by itself, by the visitor, or by an error of the file. */
tare_status db_walked(struct db_store *s, struct db_stmt *q, enum db_result rc, tare_status status,
                      tare_error *err);
/* Step one that gives no rows, and be done with it. */
tare_status db_step(struct db_store *s, struct db_stmt *q, const char *doing, tare_error *err);
tare_status db_run(struct db_store *s, enum db_sql which, const char *doing, tare_error *err);
void db_forget_statements(struct db_store *s);

/* sql_write.c, sql_read.c: the rows of store_sqlite */
tare_status db_begin(struct store *s, tare_error *err);
tare_status db_end(struct store *s, bool commit, tare_error *err);
tare_status db_add(struct store *s, const struct store_entry *e, bool *added, tare_error *err);
tare_status db_remove(struct store *s, const char *id, tare_error *err);
tare_status db_tag(struct store *s, const char *id, const char *name, bool on, tare_error *err);
tare_status db_pin(struct store *s, const char *id, const char *name, bool on, tare_error *err);
tare_status db_list(struct store *s, const struct store_filter *f, store_run_fn *fn, void *ctx,
                    tare_error *err);
tare_status db_body(struct store *s, const char *id, struct buf *out, tare_error *err);
tare_status db_names(struct store *s, const struct store_query *q, store_name_fn *fn, void *ctx,
                     tare_error *err);
tare_status db_pinned(struct store *s, const struct store_pin *p, char id[ULID_SIZE], tare_error *err);
tare_status db_pins(struct store *s, int64_t *out, tare_error *err);
tare_status db_series(struct store *s, const struct store_span *span, struct store_points *out,
                      tare_error *err);
/* sql_care.c */
tare_status db_check(struct store *s, struct store_health *h, tare_error *err);
tare_status db_backup(struct store *s, const char *to, tare_error *err);
tare_status db_expire(struct store *s, struct store_expiry *e, tare_error *err);
/* sql_token.c */
tare_status db_in_project(struct store *s, const char *id, const char *project, bool *yes, tare_error *err);
tare_status db_token_add(struct store *s, const struct store_token *t, tare_error *err);
tare_status db_token_revoke(struct store *s, const char *id, int64_t now_ms, tare_error *err);
tare_status db_tokens(struct store *s, store_token_fn *fn, void *ctx, tare_error *err);
tare_status db_token_used(struct store *s, const char *id, int64_t now_ms, tare_error *err);
tare_status db_version(struct store *s, int64_t *out, tare_error *err);
/* sql_audit.c */
tare_status db_audit_seq(struct store *s, bool next, int64_t *out, tare_error *err);
tare_status db_audit_add(struct store *s, const struct store_audit *entry, tare_error *err);
tare_status db_audits(struct store *s, const struct store_audit_filter *f, store_audit_fn *fn, void *ctx,
                      tare_error *err);
/* sql_live.c */
tare_status db_batch_add(struct store *s, const struct store_batch *b, enum store_kept *kept,
                         tare_error *err);
tare_status db_hosts(struct store *s, const struct store_host *like, store_host_fn *fn, void *ctx,
                     tare_error *err);
tare_status db_metrics(struct store *s, const struct store_metric_query *q, store_metric_fn *fn, void *ctx,
                       tare_error *err);
tare_status db_chunks(struct store *s, const struct store_chunk_query *q, store_chunk_fn *fn, void *ctx,
                      tare_error *err);
tare_status db_chunk_newest(struct store *s, int64_t *seq, tare_error *err);
/* sql_rollup.c */
tare_status db_blocks(struct store *s, const struct store_block_query *q, store_block_fn *fn, void *ctx,
                      tare_error *err);
tare_status db_block_due(struct store *s, int64_t now_ms, struct store_block *out, tare_error *err);
tare_status db_block_again(struct store *s, const struct store_block *b, bool *same, tare_error *err);
tare_status db_block_done(struct store *s, const struct store_block *b, tare_error *err);
tare_status db_block_put_off(struct store *s, const struct store_block *b, int64_t until_ms, tare_error *err);
tare_status db_rollup_put(struct store *s, const struct store_rollup *r, tare_error *err);
tare_status db_rollups(struct store *s, const struct store_rollup_query *q, store_rollup_fn *fn, void *ctx,
                       tare_error *err);
tare_status db_rollup_expire(struct store *s, struct store_rollup_expiry *e, tare_error *err);
tare_status db_forward_take(struct store *s, struct store_forward *f, tare_error *err);
tare_status db_forward_note(struct store *s, const struct store_forward *f, tare_error *err);
/* sql_requests.c */
store_sent_op db_requests_batch;
store_sent_drop_op db_requests_drop;
store_slot_get_op db_slot_get;
store_slot_put_op db_slot_put;
store_slots_drop_op db_slots_drop;
store_slots_op db_slots;
store_services_op db_services;
/* sql_job.c */
tare_status db_job_add(struct store *s, const struct store_job *job, tare_error *err);
tare_status db_job_change(struct store *s, const struct store_job *job, tare_error *err);
tare_status db_jobs(struct store *s, const struct store_job_filter *f, store_job_fn *fn, void *ctx,
                    tare_error *err);
tare_status db_jobs_lose(struct store *s, const char *owner, int64_t now_ms, tare_error *err);
/* sql_alert.c */
store_alert_put_op db_alert_put;
store_alerts_op db_alerts;
store_silence_add_op db_silence_add;
store_silence_end_op db_silence_end;
store_silences_op db_silences;
store_runs_after_op db_runs_after;
/* sql_upload.c */
store_piece_add_op db_piece_add;
store_upload_add_op db_upload_add;
store_uploads_op db_uploads;
store_piece_op db_piece;
store_sweep_op db_sweep;
tare_status db_check_uploads(struct db_store *s, struct store_health *h, tare_error *err);

#endif
