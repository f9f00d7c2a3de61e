/* SPDX-License-Identifier: MIT
 * comparison.h - the comparison document `tare.comparison/1`: two sides, case by case and metric by metric, with
 * ratios, intervals and verdicts, however they were found: measured interleaved, or from saved runs. Data and its
 * text form; judges nothing. Its fields are listed in comparison_fields.def.
 *
 * All memory a document points to is its arena's; strings may also be literals. Ratios are new / base, so that
 * for what is better when less (times, memory) a ratio above 1 is worse. */
#ifndef RUN_COMPARISON_H
#define RUN_COMPARISON_H

#include "run/run.h"

#define COMPARISON_SCHEMA "tare.comparison/1"

/* Verdicts: regressed, improved, same, inconclusive, unverified. */
#include "run/as_structs.h"
#include "run/comparison_fields.def"

/* Empty but for id, created (now), tool and method. comparison_release() takes a zeroed struct too. */
tare_status comparison_init(struct comparison *c, const char *method, tare_error *err);
void comparison_release(struct comparison *c);

/* A new zeroed item at the end of its list; NULL when memory ran out (writing will say so). */
struct comparison_case *comparison_add_case(struct comparison *c, const char *name);
struct comparison_metric *comparison_add_metric(struct comparison *c, struct comparison_case *to,
                                                const char *metric);
struct comparison_difference *comparison_add_difference(struct comparison *c, const char *what,
                                                        const char *base, const char *new_);
void comparison_add_unmatched(struct comparison *c, const char *side, const char *name);
/* Of one case, or of the whole (`to` NULL): comparison_note(c, to, "launches.few", "warn", "%zu launches", n). */
#define comparison_note(c, to, id, severity, ...) \
    comparison_note_text(c, to, id, severity, arena_printf(&(c)->arena, __VA_ARGS__))
void comparison_note_text(struct comparison *c, struct comparison_case *to, const char *id,
                          const char *severity, const char *text);

/* The worse of two verdicts: regressed, inconclusive or unverified, improved, same. NULL is none. */
const char *comparison_worse(const char *a, const char *b);

/* Set the verdicts of the cases and of the whole from the metrics that gate. */
void comparison_sum_up(struct comparison *c);

tare_status comparison_write(const struct comparison *c, struct buf *out, tare_error *err);
tare_status comparison_write_page(const struct comparison *c, struct buf *out, tare_error *err);
tare_status comparison_read(struct comparison *c, const char *name, const void *bytes, size_t len,
                            tare_error *err);

#endif
