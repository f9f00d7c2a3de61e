/* SPDX-License-Identifier: MIT
 * run_report.h - run documents as text for people, CSV, Markdown and JUnit; one file per format, one row
 * each in RUN_FORMAT_MAP. They show what the document says and add no judgement of their own, except that
 * the text names the best case for each objective. Unknown is "-", with its reason; digits are no finer
 * than the interval. */
#ifndef REPORT_RUN_REPORT_H
#define REPORT_RUN_REPORT_H

#include "analyze/judge/judge.h"
#include "report/sink.h"
#include "report/table.h"
#include "run/run.h"

struct run_report {
    const struct run *const *runs; /* shown one after another, in one document where the format has such */
    size_t n;
};

typedef tare_status run_format_fn(struct stream *s, const struct run_report *r);
struct run_format {
    const char *name, *help;
    run_format_fn *write;
};

/* An output format of runs is a row here and a file with its function. ALSO: `tare bench` writes it beside its answer,
 * too, and takes the option as the file's name. */
#define RUN_FORMAT_MAP(ONLY, ALSO)                                                                    \
    ONLY(text, report_run_text, "a table for people")                                                 \
    ONLY(json, report_run_json, "the document itself; several: an array of documents")                \
    ALSO(csv, report_run_csv, "a row per case, fixed columns", "also as CSV; - is stdout")            \
    ALSO(md, report_run_md, "Markdown, for a comment on a pull request", "also as Markdown")          \
    ALSO(junit, report_run_junit, "targets and findings as test cases", "also as JUnit XML")          \
    ONLY(layers, report_layers_csv, "a row per layer, as CSV")
enum run_format_number {
#define ONLY(name, ...) RUN_FORMAT_##name,
    RUN_FORMAT_MAP(ONLY, ONLY) RUN_FORMATS
#undef ONLY
};
extern const struct run_format run_formats[RUN_FORMATS + 1]; /* ends with name NULL */

#define ONLY(name, function, ...) run_format_fn function;
RUN_FORMAT_MAP(ONLY, ONLY)
#undef ONLY

void run_answer_text(struct stream *s, const struct run *run); /* the answer in a few lines: run_answer.c */
/* Parts of the text that other texts have too. */
void run_findings_text(struct stream *s, const struct run *run);
/* What tells of a watched program; nothing for cases that were not watched: system_text.c. */
void run_watched_text(struct stream *s, const struct run *run);
/* What became of requests; nothing for cases that are of no service: http_text.c. */
void run_http_text(struct stream *s, const struct run *run);
/* How much a run allocates, and where; nothing for cases of which that was not recorded: alloc_text.c. */
void run_alloc_text(struct stream *s, const struct run *run);

/* ---- what the formats share: run_report.c ---- */

enum { RUN_COLUMNS_MAX = TABLE_MAX_COLUMNS };

struct run_column {
    const char *title;
    const char *param;  /* a parameter; NULL: a measure, or the case's name when that is NULL too */
    const char *metric; /* of measure_table */
    bool half;          /* the half-width of the interval in percent, not the value */
};

/* A row per case: the parameters that differ between the cases, then the measures that at least one case has. Returns
 * how many columns; 0: no case. */
size_t run_cases_table(const struct run *run, struct run_column columns[RUN_COLUMNS_MAX], struct table *t);

void run_value_text(struct buf *b, const struct run_value *v); /* 16, "fp32" as fp32, - for null */
/* A value of a measure with its unit: "12.3 ms", "1,341 texts/s", "51.7 MiB", "0.69". */
void run_measure_text(struct buf *b, const struct measure *m, double v);

/* "minilm-l6 (onnx)", "onnxruntime 1.30.0 on box: CPU, 2 processors, ..", "budget_s=10, ..":
 * NUL-terminated UTF-8 that cannot steer a terminal. */
void run_subject_text(struct buf *b, const struct run *run);
void run_host_text(struct buf *b, const struct run *run);
void run_config_text(struct buf *b, const struct run *run);
void run_fixed_text(struct buf *b, const struct run *run); /* parameters that all cases share */
void run_created_text(struct buf *b, const struct run *run);

void run_target_text(struct buf *b, const struct run_target *t);   /* "latency.p95 <= 100 ms" */
void run_achieved_text(struct buf *b, const struct run_target *t); /* "91.2 ms", "-" */
enum { RUN_TARGET_COLUMNS = 6 }; /* target, case, achieved, margin, verdict, confidence: "> 99.99 %" */
extern const struct table_fill
    run_target_columns[RUN_TARGET_COLUMNS]; /* of rows that are struct run_target */
const char *run_interval_note(const struct run *run);

#endif
