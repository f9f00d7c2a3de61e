/* SPDX-License-Identifier: MIT
 * fmt.h - numbers for people: times, bytes, counts, rates, shares, intervals. The one place that decides on digits.
 *
 * Which digits:
 *   - Three, whatever the interval of the number: what is in doubt stands beside it, as +/-. Digits cut by the doubt
 *     made two numbers of one row stand in the wrong order: a p50 of "3 ms" beside a p95 of "2.725 ms". Of 1,000 and
 *     more the whole part: 13,412.
 *   - In a column (fmt_duration, fmt_bytes, fmt_number) trailing zeros are kept, so that columns line up: 2.00 MiB. In
 *     a sentence (show_*) a whole number has no point: 2 MiB.
 *   - Counts (fmt_count): all of them, thousands apart. Large counts of operations (fmt_si): four and a power of 1000.
 *   - Shares: fmt_share in tables of shares, one decimal; show_percent in sentences, two digits; fmt_change of ratios.
 *   - In narrow columns (narrow_*): at most six characters, the unit's first letter or none: 1.5G, 43.2.
 * Unknown (NAN) is "-", never 0. A unit is chosen after rounding: 999.6 ns is 1.00 us. One space stands before a unit.
 * No locale, no colour. What goes onto a buf fails as bufs do; what comes by value allocates nothing. */
#ifndef CORE_FMT_H
#define CORE_FMT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/interval.h"

/* ---- counts ---- */

void fmt_count(struct buf *b, uint64_t n); /* 1,234,567 */
void fmt_int(struct buf *b, int64_t n);    /* -1,234 */
/* "1 process", "0 processes", "1,234 processes". */
void fmt_counted(struct buf *b, uint64_t n, const char *one, const char *many);
void fmt_si(struct buf *b, double v, const char *unit); /* "37.75 M", "91.2 GFLOP/s"; the unit may be "" */

/* ---- times ---- */

void fmt_duration(struct buf *b, double ns); /* 812 ns, 1.23 ms, 2 m 05 s, 3 h 07 m */
/* The same of an interval of ns: "< X" when it cannot be told from zero, X the larger of `limit` and its upper end;
 * then false, and there is nothing to say of its doubt. */
bool fmt_interval(struct buf *b, struct interval ns, double limit);
void fmt_date(struct buf *b, uint64_t unix_ns, bool iso); /* "2026-11-15 05:42:09 UTC", or RFC 3339 with ms */

/* ---- other quantities ---- */

void fmt_bytes(struct buf *b, double bytes); /* 512 B, 1.50 GiB, -4.00 KiB */
void fmt_number(struct buf *b, double v);    /* 5.00, 52.0, 1,340 */
void fmt_share(struct buf *b, double share); /* 0.123 as "12.3 %"; "< 0.1 %" */
/* 1.052 as "+5.2 %"; above 10 the factor, below 0.01 the fraction that is left: "935x", "1/94,340". */
void fmt_change(struct buf *b, double ratio);
/* Its interval, `between` the ends: "+4.1 .. +6.3 %"; where one end is a factor both are: "2.93x .. 247x",
 * "1/833 .. 0.500x". */
void fmt_changes(struct buf *b, double lo, double hi, const char *between);

/* ---- by value, so that several stand in one printf: sentences of findings, recommendations, plans ---- */

struct shown {
    char s[40];
};
struct shown show_time(double ns);                     /* "12.3 ms" */
struct shown show_bytes(double bytes);                 /* "51.7 MiB" */
struct shown show_rate(double rate, const char *unit); /* "1,341 texts/s"; NULL: "/s" */
struct shown show_percent(double share);               /* 0.647 as "65 %", 0.0123 as "1.2 %" */
/* Of a quantity with this unit: 85 %, 1.5 GB, 2.1 ms, 1.5 GB/s, 12/s, 71 C. */
struct shown show_quantity(const char *unit, double v);
struct shown show_number(double v);                  /* "5.1" */
struct shown show_count(double n, const char *noun); /* 1, "thread": "1 thread"; 2: "2 threads" */
struct shown show_cases(size_t n, size_t of);        /* " (2 of 5 cases)"; "" when there is but one */

/* ---- by value, in columns of a table that has little room ---- */

struct shown narrow_bytes(double bytes);          /* "1.5G" */
struct shown narrow_percent(double share);        /* 0.432 as "43.2": the sign is the column's */
struct shown narrow_number(double v, int places); /* as many decimals */

#endif
