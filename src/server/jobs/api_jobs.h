/* SPDX-License-Identifier: MIT
 * api_jobs.h - what the routes that run something share: api_jobs.c, and api_finetuning.c for the paths of users'
 * own programs. */
#ifndef SERVER_API_JOBS_H
#define SERVER_API_JOBS_H

#include <jansson.h>

#include "server/route.h"

/* A request as an object; NULL: answered. */
json_t *job_body(struct exchange *x);
/* 403 where nothing may be run. */
void job_allowed(struct server *s, struct exchange *x);
/* Check a request against its operation and reserve a place; answers what is wrong. */
struct job_wish {
    const char *operation;
    json_t *parameters;
    uint64_t wait_s; /* unless the query says otherwise */
};
void job_check(struct server *s, struct store *st, struct exchange *x, const struct job_wish *wish);
tare_status job_keep(struct server *s, struct store *st, struct exchange *x, tare_error *err);
void job_begin(struct server *s, struct store *st, struct exchange *x);
void job_forget(struct exchange *x);

extern const struct query_word job_query[];

#endif
