/* SPDX-License-Identifier: MIT
 * comparison_report.h - comparison documents as text for people and as JSON; one file per format, one row each in
 * comparison_formats. They show what the document says and judge nothing. */
#ifndef REPORT_COMPARISON_REPORT_H
#define REPORT_COMPARISON_REPORT_H

#include "report/sink.h"
#include "run/comparison.h"

typedef tare_status comparison_format_fn(struct stream *s, const struct comparison *c);
struct comparison_format {
    const char *name, *help;
    comparison_format_fn *write;
};
extern const struct comparison_format comparison_formats[];               /* ends with name NULL */
const struct comparison_format *comparison_format_find(const char *name); /* NULL: none */

comparison_format_fn report_comparison_text, report_comparison_md, report_comparison_junit,
    report_comparison_github;

/* ---- what the formats share: comparison_report.c ---- */

/* What a person reads beside the verdict: how small a change could have been seen, or what is missing. */
void comparison_why_text(struct buf *b, const struct comparison_metric *m);

/* "2.1 %", between two texts; of a known one */
void comparison_mde_text(struct buf *b, const struct comparison_metric *m, const char *before,
                         const char *after);
/* In one sentence: "+5.2 % (+4.1 .. +6.3 %): 1.00 ms, then 1.05 ms; detects 2.1 % or more". */
void comparison_sentence(struct buf *b, const struct comparison_metric *m);
bool comparison_gates(const struct comparison_metric *m);

/* What the tables of text and Markdown have in common, for struct table_fill. */
struct comparison_row {
    const struct comparison_case *of;
    const struct comparison_metric *metric;
};
void comparison_fill_verdict(struct buf *b, const void *row);
void comparison_fill_metric(struct buf *b, const void *row);
void comparison_fill_base(struct buf *b, const void *row);
void comparison_fill_new(struct buf *b, const void *row);
void comparison_fill_change(struct buf *b, const void *row);
void comparison_fill_interval(struct buf *b, const void *row);

#endif
