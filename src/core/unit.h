/* SPDX-License-Identifier: MIT
 * unit.h - quantities as people write them, a number and a unit: for options, targets, alert rules, limits and plans.
 * Parsing is strict (the whole text or an error) and knows nothing of locales. A new unit is a row in unit.c. */
#ifndef CORE_UNIT_H
#define CORE_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/error.h"

/* ---- whole nanoseconds, exact: what options take ---- */

/* Digits with an optional fraction and a unit, ns us ms s m (or min) h d; several add up, as in 1m30s.
 * A bare number but 0 is refused. Rounded to ns. */
tare_status unit_parse_duration(const char *text, struct duration *out, tare_error *err);

/* A date of the calendar, in UTC, by a form of strptime(), which takes 2026-02-31 and makes it 3 March. The rest of the
 * text; NULL: it does not begin with such a date. */
const char *unit_date(const char *text, const char *form, int64_t *unix_s);

/* ---- real numbers, for grammars that have a quantity as a part ---- */

enum unit_kind {
    UNIT_TIME,      /* ns: ns us ms s sec min; not m, h and d: a latency of "2m" may well mean ms */
    UNIT_BYTES,     /* nothing or B; K M G T and KiB MiB GiB TiB (1024); KB MB GB TB (1000); any case */
    UNIT_MEMORY,    /* the same, but never a bare number */
    UNIT_BYTE_RATE, /* bytes, with or without /s */
    UNIT_RATE,      /* per second: nothing, /s /sec /min /h, or with what is counted: texts/s */
    UNIT_FREQUENCY, /* per second: nothing or /s */
    UNIT_SHARE,     /* 1: nothing or % */
    UNIT_PERCENT,   /* 1: % alone */
    UNIT_WATT,      /* nothing or W */
    UNIT_CELSIUS,   /* nothing or C */
    UNIT_HERTZ,     /* nothing or Hz MHz GHz */
};

/* Digits with an optional fraction and exponent, no sign, no inf, no hexadecimal: moves *at behind it. NULL: read;
 * else what is wrong at *at, and nothing has changed. */
const char *unit_number(const char **at, double *out);
/* strtod(), with a point whatever the locale has. */
double unit_real(const char *text);
/* *value in `unit` (the whole text) becomes *value in the kind's base unit; false: not a unit of this kind. */
bool unit_apply(enum unit_kind kind, const char *unit, double *value);
/* A number with its unit right behind it; false when it is not that or not finite. */
bool unit_parse(enum unit_kind kind, const char *word, double *out);

#endif
