/* SPDX-License-Identifier: MIT
 * runner.h - the process that runs operations for a server: started before the server opens its store or its sockets,
 * with another user where the server is root. It gets names and values, never a command line: the operations are those
 * it was started with. When the server is gone, so are the job and the runner. */
#ifndef SERVER_RUNNER_H
#define SERVER_RUNNER_H

#include "server/jobs/confine.h"

enum { OUTPUT_MAX = 1 << 20, DOCUMENT_MAX = 8 << 20, DOCUMENTS_MAX = 16, TERM_WAIT_MS = 5000 };
#define RUNNER_RESULTS "tare-results" /* where the commands write run documents, in the folder of the job */

struct runner {
    pid_t pid;
    int sock; /* -1: none */
};

struct job_end {
    struct confine_state state;
    char failed_at[32];
    bool timed_out, cancelled;
    uint64_t wall_ms, dropped; /* dropped: bytes of output beyond OUTPUT_MAX */
    uint32_t out, err;         /* bytes of each that follow */
};

struct job_request {
    uint32_t operation; /* its place in the file */
    const char *json;   /* checked once more by the runner */
    size_t n;
    const struct job_file {
        char name[64];
        struct buf text;
    } * files; /* of the job's folder */
    size_t n_files;
};

/* What comes back. `document` may be called several times, `ended` is the last. */
struct job_answer {
    void *ctx;
    void (*document)(void *ctx, const char *name, const char *text, size_t n);
    void (*ended)(void *ctx, const struct job_end *end, const char *out, const char *err);
};

/* `hidden`: the folder of the server's data. Call it while this process has one thread. */
tare_status runner_start(struct runner *out, const struct operations *ops, const char *hidden,
                         tare_error *err);
/* Hand over a job; then wait for its end. TARE_IO: the runner is gone. */
tare_status runner_send(struct runner *r, const struct job_request *job, tare_error *err);
tare_status runner_wait(struct runner *r, const struct job_answer *answer, tare_error *err);
void runner_cancel(struct runner *r); /* from any thread, after runner_send() */
void runner_stop(struct runner *r);   /* what runs is killed */

#endif
