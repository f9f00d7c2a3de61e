/* SPDX-License-Identifier: MIT
 * sql_job.c - what a server was asked to run, and what came of it. */
#include "store/sql.h"

tare_status db_job_add(struct store *base, const struct store_job *job, tare_error *err)
{
    const char *const texts[] = {job->id,        job->project, job->token,   job->owner,
                                 job->operation, job->state,   job->request, job->record};
    const int64_t times[] = {job->created_ms, job->started_ms, job->ended_ms};
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_ADD_JOB, &q, err);
    if (status != TARE_OK) return status;
    for (int i = 0; i < 8; i++) db_text(q, i + 1, texts[i]);
    for (int i = 0; i < 3; i++) db_int(q, i + 9, times[i]);
    return db_step(s, q, "adding a job", err);
}

tare_status db_job_change(struct store *base, const struct store_job *job, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_CHANGE_JOB, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, job->id);
    db_text(q, 2, job->state);
    db_text(q, 3, job->record);
    db_int(q, 4, job->started_ms);
    db_int(q, 5, job->ended_ms);
    status = db_step(s, q, "changing a job", err);
    if (status == TARE_OK && db_changes(s->db) == 0)
        return error_set(err, TARE_INVALID, "%s: has no job %.40s", s->path, job->id);
    return status;
}

tare_status db_jobs(struct store *base, const struct store_job_filter *f, store_job_fn *fn, void *ctx,
                    tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    int rc = DB_DONE;
    tare_status status = db_get(s, DB_JOBS, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, f->id);
    db_text(q, 2, f->project);
    db_int(q, 3, f->limit && f->limit < INT64_MAX ? (int64_t)f->limit : INT64_MAX);
    while (status == TARE_OK && (rc = db_next(q)) == DB_ROW) {
        struct store_job j = {
            .created_ms = db_int_at(q, 8), .started_ms = db_int_at(q, 9), .ended_ms = db_int_at(q, 10)};
        const char **texts[] = {&j.id,        &j.project, &j.token,   &j.owner,
                                &j.operation, &j.state,   &j.request, &j.record};
        for (int i = 0; i < 8; i++) *texts[i] = db_column(q, i);
        status = j.id && j.token && j.operation && j.state && j.request
                     ? fn(ctx, &j, err)
                     : error_set(err, TARE_FORMAT, "%s: the table of jobs is damaged", s->path);
    }
    if (status == TARE_OK && rc != DB_DONE) status = db_fail(s, "reading jobs", err);
    db_done(q);
    return status;
}

tare_status db_jobs_lose(struct store *base, const char *owner, int64_t now_ms, tare_error *err)
{
    struct db_store *s = db_of(base);
    struct db_stmt *q = NULL;
    tare_status status = db_get(s, DB_LOSE_JOBS, &q, err);
    if (status != TARE_OK) return status;
    db_text(q, 1, owner);
    db_int(q, 2, now_ms);
    return db_step(s, q, "losing jobs", err);
}
