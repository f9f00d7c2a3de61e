/* SPDX-License-Identifier: MIT
 * jobs.h - what waits to be run and what runs: a queue, who may have how many, those who wait for an answer. One thread
 * for each runner, with the store open for itself; one that tells who has waited long enough. A job's way through the
 * store is queued, running, and how it ended; what a dead server left is lost, never running. */
#ifndef SERVER_JOBS_H
#define SERVER_JOBS_H

#include "core/ulid.h"
#include "server/net/exchange.h"
#include "server/jobs/runner.h"
#include "store/store.h"

struct jobs_options {
    const struct operations *operations;
    struct runner *runners; /* at_once of them, started before */
    const char *store;
    void (*say)(void *ctx, const char *text);
    void *say_ctx;
};

struct job_entry {
    char id[ULID_SIZE];
    char who[EXCHANGE_WHO_SIZE], project[EXCHANGE_PARAM_SIZE];
    const struct operation *operation;
    struct buf request; /* checked */
    struct job_file *files;
    size_t n_files;
    int64_t created_ms, started_ms;
    /* under the lock of jobs */
    struct exchange *waits; /* for its end; NULL: nobody */
    uint64_t until_ns;      /* so long */
    bool running, cancelled;
    struct job_entry *next;    /* in the queue */
    struct job_entry *sibling; /* of all */
};

struct jobs;
tare_status jobs_open(struct jobs **out, const struct jobs_options *o, tare_error *err);
void jobs_stop(struct jobs *j);  /* kills what runs and answers who waits; NULL is fine */
void jobs_close(struct jobs *j); /* after jobs_stop(); NULL is fine */
const char *jobs_owner(const struct jobs *j);

/* A place for one more of this token; NULL: none, *why says which limit. */
struct job_entry *jobs_reserve(struct jobs *j, const struct exchange *x, const char **why);
void jobs_release(struct jobs *j, struct job_entry *e); /* one that was never put */
/* It is in the store: run it. x: answered at its end, or when wait_s are over; NULL: nobody waits. */
void jobs_put(struct jobs *j, struct job_entry *e, struct exchange *x, uint64_t wait_s);
/* A job that runs is told to end. One that waits is taken out of the queue: jobs_drop() it when the store knows.
 * False: it has ended, or was never here. */
bool jobs_cancel(struct jobs *j, const char *id, struct job_entry **waiting);
void jobs_drop(struct jobs *j, struct job_entry *e); /* answers who waits */

/* {"id", "operation", "state"}: what is told while it is under way. */
void jobs_reply_waiting(struct exchange *x, const char *id, const char *operation, const char *state);

/* job_record.c: what came of it as JSON, and what a client hears. */
struct job_outcome {
    const char *state;
    struct buf record;
    struct buf answer; /* the program's own, with the job; empty: it gave none */
    char why[200];     /* of a failure */
};
#define JOB_OUTCOME_INIT {.state = "lost", .record = BUF_INIT, .answer = BUF_INIT}
struct job_document {
    char name[64], run[ULID_SIZE], why[200]; /* run "": refused because */
};
struct job_documents {
    VEC(struct job_document) at;
};
struct job_said {
    const struct job_end *end;
    const char *out, *err;
    const struct job_documents *documents;
};
void job_outcome_make(struct job_outcome *out, const struct job_entry *e, const struct job_said *said);
void job_outcome_release(struct job_outcome *o);

#endif
