/* SPDX-License-Identifier: MIT
 * pin.h - the part of store.h that is about baselines: a name pins one run of a subject in each project. */
#ifndef STORE_PIN_H
#define STORE_PIN_H

#include "core/error.h"
#include "core/ulid.h"

struct store;

struct store_pin { /* NULL: any */
    const char *name, *subject, *project;
};

/* ---- what a backend does ---- */

/* The run that a name pins, of several the newest; "": none. A backend without it is asked by list(). */
typedef tare_status store_pinned_op(struct store *s, const struct store_pin *p, char id[ULID_SIZE],
                                    tare_error *err);
/* A number that differs when pins did since. */
typedef tare_status store_pins_op(struct store *s, int64_t *out, tare_error *err);

/* ---- for everyone ---- */

store_pinned_op store_pinned;
/* The same, but TARE_INVALID: none. */
store_pinned_op store_baseline_of;
tare_status store_baseline(struct store *s, const char *name, const char *subject, char id[ULID_SIZE],
                           tare_error *err);

#endif
