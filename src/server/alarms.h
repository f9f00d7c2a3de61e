/* SPDX-License-Identifier: MIT
 * alarms.h - alert rules over what hosts send: the rules, the quantities and the deliveries of `tare run --alert`, fed
 * with the readings that came since the last look. A thread of its own with the store open for itself; each change is
 * told once. What it knows is in memory: after a start a rule is judged anew by what comes. */
#ifndef SERVER_ALARMS_H
#define SERVER_ALARMS_H

#include "core/json.h"
#include "server/operations.h"

struct alarms_options {
    const struct operations *operations;
    const char *store;
    void (*say)(void *ctx, const char *text);
    void *say_ctx;
};

struct alarms;
tare_status alarms_open(struct alarms **out, const struct alarms_options *o, tare_error *err);
void alarms_close(struct alarms *a); /* NULL is fine */
/* The states of hosts of a project ("": all) as an array. */
void alarms_json(struct alarms *a, const char *project, struct json *j);

#endif
