/* SPDX-License-Identifier: MIT
 * requests.h - two documents: `tare.requests/1`, what one process of a service served in an interval, as it comes in
 * (requests_fields.def); `tare.sla/1`, how well the service kept its promises, as it goes out (sla_fields.def). Texts
 * are the arena's. */
#ifndef RUN_REQUESTS_H
#define RUN_REQUESTS_H

#include "run/run.h"

#define REQUESTS_SCHEMA "tare.requests/1"

enum { REQUESTS_INTERVAL_MS = 60000, REQUESTS_ROUTES = 1000, REQUESTS_SLOS = 8, REQUESTS_WORST = 10 };

#include "run/as_structs.h"
#include "run/requests_fields.def"

#define SLA_SCHEMA "tare.sla/1"

#include "run/as_structs.h" /* NOLINT(readability-duplicate-include): once for each list */
#include "run/sla_fields.def"

/* `name`: what errors call it. requests_release() takes a zeroed struct, too. */
tare_status requests_read(struct requests *r, const char *name, const void *bytes, size_t len,
                          tare_error *err);
void requests_release(struct requests *r);

/* The histogram as one to merge: it borrows the document's. TARE_FORMAT: what is wrong with it. */
tare_status requests_hist(const struct requests_times *t, struct hist *out, tare_error *err);

tare_status sla_write(const struct sla *a, struct buf *out, tare_error *err);
void sla_release(struct sla *a); /* takes a zeroed one, too */

#endif
