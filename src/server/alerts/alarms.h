/* SPDX-License-Identifier: MIT
 * alarms.h - alert rules of a server: over what hosts send (the rules, quantities and deliveries of `tare run
 * --alert`), over burn rates of services' promises, and over runs that got worse. A thread of its own with the store
 * open for itself; each change is told once, and how things stand is kept in the store: a server that starts again goes
 * on where it was. */
#ifndef SERVER_ALARMS_H
#define SERVER_ALARMS_H

#include "core/json.h"
#include "server/jobs/operations.h"
#include "store/store.h"

struct alarms_options {
    const struct operations *operations;
    const char *store;
    void (*say)(void *ctx, const char *text);
    void *say_ctx;
};

/* Those that go on. */
struct silences {
    struct arena arena; /* of texts */
    VEC(struct store_silence) at;
};
#define SILENCES_INIT        \
    {                        \
        .arena = ARENA_INIT  \
    }
tare_status silences_read(struct silences *out, struct store *s, tare_error *err); /* release in any case */
void silences_release(struct silences *q);

struct alarms;
tare_status alarms_open(struct alarms **out, const struct alarms_options *o, tare_error *err);
void alarms_close(struct alarms *a); /* NULL is fine */
/* How the rules stand to what is of a project ("": all), as elements of an array. */
void alarms_json(struct alarms *a, const char *project, const struct silences *q, struct json *j);
bool alarms_has(const struct alarms *a, const char *rule);
bool alarms_tells(const struct alarms *a); /* is there anybody? */
/* Have the message of a rule sent, as a test. Never waits. */
void alarms_test(struct alarms *a, const char *rule);

#endif
