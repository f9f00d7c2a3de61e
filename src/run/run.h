/* SPDX-License-Identifier: MIT
 * run.h - data model 1: the run document `tare.run/1`, the record of one measurement. Probes, subjects and
 * the harness fill it in; analysis, reports and the store walk it. docs/run-document.md says what each
 * field means. This module knows no instrument and judges nothing.
 *
 *     struct run run;
 *     if (run_init(&run, "bench", err) < 0) return err->status;
 *     run.subject.name = arena_str(&run.arena, "minilm-l6");
 *     struct run_case *c = run_add_case(&run, "batch=16");
 *     if (c) c->load_ns = known_u64(load.ns);
 *     s = run_save(&run, "tare-results", path, sizeof path, err);
 *     run_release(&run);
 *
 * All memory a document points to is its arena's; strings may also be literals. What was not measured is
 * left unknown (all zero); `unknown` gives the reason by path: run_unknown(&run, &c->unknown, "gpu", ..). */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "core/buf.h"
#include "core/hist.h"
#include "run/document.h"

#define RUN_SCHEMA "tare.run/1"
#define RUN_SAMPLES_MAX ((size_t)1 << 20)     /* raw samples of one case */
#define RUN_SAMPLES_ALL_MAX ((size_t)1 << 23) /* raw samples of one document */
#define RUN_BYTES_MAX ((size_t)64 << 20)      /* text of a document */
#define RUN_KEYS_ALL_MAX ((size_t)1 << 21)    /* keys of all free-form maps of one document */
#define RUN_LIST_MAX 65536                    /* cases, findings, layers of a case, .. */
#define RUN_BUCKETS_MAX 16384                 /* of a histogram */

/* ---- filling in ---- */

/* Empty but for id, kind, created (now) and tool. run_release() takes a zeroed struct too. */
tare_status run_init(struct run *r, const char *kind, tare_error *err);
void run_release(struct run *r);

/* A new zeroed item at the end of its list; NULL when memory ran out (run_write will say so). */
struct run_case *run_add_case(struct run *r, const char *name);
struct run_finding *run_add_finding(struct run *r, const char *id, const char *severity);
struct run_target *run_add_target(struct run *r, const char *metric, const char *op, double value);
struct run_gpu_device *run_add_gpu_device(struct run *r, struct run_case *c);
struct run_layer *run_add_layer(struct run *r, struct run_case *c, const char *name);
struct run_launch *run_add_launch(struct run *r, struct run_case *c);
struct run_anchored *run_add_anchored(struct run *r, struct run_case *c);
struct run_alloc_size *run_add_alloc_size(struct run *r, struct run_case *c);
struct run_alloc_site *run_add_alloc_site(struct run *r, struct run_case *c);

/* Copy the first n latencies in, at most c->samples_raw.cap of them (0: RUN_SAMPLES_MAX, the most there can
 * be); `kept` says which of all samples they are: "all", "first", "evenly", "random". */
void run_set_samples(struct run *r, struct run_case *c, const uint64_t *ns, size_t n, const char *kept);

/* Copy the histogram of the case's latencies in. */
void run_set_histogram(struct run *r, struct run_histogram *to, const struct hist *h);

/* What a model is called in reports, series and baselines: its file as seen from the working folder, without .onnx, or
 * its whole path where it lies elsewhere. So A/m.onnx and B/m.onnx are two; models/m.onnx of two checkouts is one. */
void run_describe_model(struct run *r, const char *path);
/* What a command is called in reports, series and baselines: its program and its words, so that `python a.py` and
 * `python b.py` are two. Also its path, and config.command. `shell`: words[0] is a line for the shell. */
void run_describe_command(struct run *r, const char *const *words, bool shell);

/* Record why the quantity at `path`, relative to the object that holds `unknown`, is null. */
#define run_unknown(r, unknown, path, ...) run_map_textf(&(r)->arena, unknown, path, __VA_ARGS__)

/* Give every null of a case, or of the host, that has no reason yet the one that its producer gives by default
 * (reasons.c has the table). */
enum run_producer { RUN_BY_BENCH, RUN_BY_WATCH, RUN_BY_INSPECT, RUN_BY_IMPORT, RUN_PRODUCERS };
void run_explain_case(struct run *r, struct run_case *c, enum run_producer by);
/* The same of a case that failed: nothing of it is known, and that is why. */
void run_explain_failed(struct run *r, struct run_case *c);
void run_explain_host(struct run *r, enum run_producer by);

/* In a run's config: dimensions of the inputs that nobody gave a value, and what they were taken as. */
#define RUN_DIMS_BY_DEFAULT "dims_by_default"

/* Runs of the subject in all samples: several in each where they were too short to be timed alone. NAN: unknown. */
double run_case_runs(const struct run_case *c);

/* What stands before a total that is a bound: ">= ", "<= ", "~ " (some nodes count nothing, some too much), or "". */
const char *run_cost_bound(const struct run_cost *c);

/* Hash of what decides whether two hosts' numbers compare: "h1-0123456789abcdef". */
#define RUN_FINGERPRINT_SIZE 20
void run_host_fingerprint(const struct run_host *h, char out[RUN_FINGERPRINT_SIZE]);

/* Milliseconds of unix time of a document's `created`, whose form was checked. 0: it is none. */
int64_t run_unix_ms(const char *created);

/* ---- by name ---- */

/* A number of a case or of a launch by the path of its field: "latency_ns.p95", "memory.rss_peak". An object stands for
 * its value, with lo and hi. false: unknown, or no number. */
bool run_case_value(const struct run_case *c, const char *path, struct run_estimate *out);
bool run_launch_value(const struct run_launch *l, const char *path, struct run_estimate *out);

/* ---- text and files ---- */

/* Append the document as JSON text. TARE_INVALID, with the path of the field, when a value may not stand in
 * a document (NaN, above INT64_MAX, lo above hi, ..): what is written can always be read back. */
tare_status run_write(const struct run *r, struct buf *out, tare_error *err);

/* The same for a report page, which has no decompressor: without white space, and with `samples_ns` and `samples_kept`
 * in place of samples_raw; more than `samples_max` samples of all cases are thinned out evenly, and it is said. */
tare_status run_write_page(const struct run *r, size_t samples_max, struct buf *out, tare_error *err);

/* Only `watch` of the first case and the findings, schema tare.watched/1: what a trace alone tells. */
tare_status run_write_watched(const struct run *r, struct buf *out, tare_error *err);

/* Paths of all null quantities for which neither they nor a part around them has a reason, one per line. */
tare_status run_unexplained(struct run *r, struct buf *out, tare_error *err);

/* Read a document; `name` is what errors call it. Every field is checked. On success the caller owns *r and
 * releases it. Unknown fields are ignored where a newer minor version may add some. */
tare_status run_read(struct run *r, const char *name, const void *bytes, size_t len, tare_error *err);
tare_status run_load(struct run *r, const char *path, tare_error *err);

/* Write DIR/<kind>_<subject>_<YYYYMMDD-HHMMSS>.json, making DIR, never half a file, never over another
 * (-2, -3, ... are tried). The path goes to `path` unless NULL. */
tare_status run_save(const struct run *r, const char *dir, char *path, size_t size, tare_error *err);

/* The same for the text of any document. `created` is its time, 2026-11-15T02:17:21.123Z. */
struct run_file {
    const char *dir, *kind, *subject, *created;
};
tare_status run_save_text(const struct run_file *f, const struct buf *text, char *path, size_t size,
                          tare_error *err);
/* Before there is a document: a name without its ending for it and for a file beside it (`beside`: ".tare"), which is
 * made, empty, so that nobody else takes the name. */
tare_status run_reserve(const struct run_file *f, const char *beside, char *stem, size_t size,
                        tare_error *err);

#endif
