/* SPDX-License-Identifier: MIT
 * show.h - numbers inside the sentences of findings, recommendations and plans: three significant digits
 * and the unit. By value, so that several stand in one printf; allocates nothing. Reports with tables use
 * report/text.h. */
#ifndef ANALYZE_SHOW_H
#define ANALYZE_SHOW_H

#include <stddef.h>

struct shown {
    char s[40];
};

struct shown show_time(double ns);                     /* "12.3 ms"; "-" when not finite */
struct shown show_bytes(double bytes);                 /* "51.7 MiB", negative allowed */
struct shown show_rate(double rate, const char *unit); /* "1,341 texts/s" */
struct shown show_percent(double share);               /* 0.647 as "65 %", 0.0123 as "1.2 %" */
struct shown show_number(double v);                    /* "5.1" */
struct shown show_count(double n, const char *noun);   /* 1, "thread": "1 thread"; 2: "2 threads" */
struct shown show_cases(size_t n, size_t of);          /* " (2 of 5 cases)"; "" when there is but one */

#endif
