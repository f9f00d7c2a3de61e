/* SPDX-License-Identifier: MIT
 * comparison_fields.c - the comparison document as a table, in the manner of fields.c. Adding a field: one row
 * here, one member in comparison.h, one property in docs/schema/comparison-1.json. */
#include <string.h>

#include "run/comparison.h"
#include "run/field_rows.h"

extern const struct run_type comparison_type_document;

static bool one_of(const char *s, const char *const *words)
{
    while (*words && strcmp(*words, s) != 0) words++;
    return *words != NULL;
}

static bool is_verdict(const char *s)
{
    return one_of(s,
                  (const char *const[]){"regressed", "improved", "same", "inconclusive", "unverified", NULL});
}

static bool is_better(const char *s)
{
    return one_of(s, (const char *const[]){"less", "more", NULL});
}

static bool is_role(const char *s)
{
    return one_of(s, (const char *const[]){"gate", "advisory", NULL});
}

static bool is_side(const char *s)
{
    return one_of(s, (const char *const[]){"base", "new", NULL});
}

static bool is_severity(const char *s)
{
    return one_of(s, (const char *const[]){"info", "warn", "critical", NULL});
}

static const struct run_rule verdict = {"regressed, improved, same, inconclusive or unverified", is_verdict};
static const struct run_rule better = {"less or more", is_better};
static const struct run_rule role = {"gate or advisory", is_role};
static const struct run_rule side_word = {"base or new", is_side};
static const struct run_rule severity = {"info, warn or critical", is_severity};

#define HERE run_runtime
static const struct run_field runtime_rows[] = {
    TEXT("name", FIELD_REQUIRED, name, &field_filled),
    TEXT("version", 0, version, NULL),
};
TYPE(runtime, runtime_rows, false, NULL);
#undef HERE

#define HERE comparison_side
static const struct run_field side_rows[] = {
    TEXT("name", FIELD_REQUIRED, name, &field_filled),
    TEXT("type", FIELD_REQUIRED, type, &field_word),
    TEXT("path", 0, path, NULL),
    TEXT("sha256", 0, sha256, NULL),
    SUB(runtime, OBJECT, FIELD_FLAT, runtime),
    TEXT("run_id", 0, run_id, NULL),
    NUM(options, MAP, FIELD_FLAT),
};
TYPE(side, side_rows, false, NULL);
#undef HERE

#define HERE comparison_difference
static const struct run_field difference_rows[] = {
    TEXT("what", FIELD_REQUIRED, what, &field_filled),
    TEXT("base", 0, base, NULL),
    TEXT("new", 0, new_, NULL),
    TEXT("severity", FIELD_REQUIRED, severity, &severity),
};
TYPE(difference, difference_rows, false, NULL);
#undef HERE

#define HERE comparison_unmatched
static const struct run_field unmatched_rows[] = {
    TEXT("side", FIELD_REQUIRED, side, &side_word),
    TEXT("name", FIELD_REQUIRED, name, NULL),
};
TYPE(unmatched_type, unmatched_rows, false, NULL);
#undef HERE

#define HERE comparison_note
static const struct run_field note_rows[] = {
    TEXT("id", FIELD_REQUIRED, id, &field_filled),
    TEXT("severity", FIELD_REQUIRED, severity, &severity),
    TEXT("text", FIELD_REQUIRED, text, NULL),
};
TYPE(note, note_rows, false, NULL);
#undef HERE

#define HERE comparison_metric
static const struct run_field metric_rows[] = {
    TEXT("metric", FIELD_REQUIRED, metric, &field_filled),
    TEXT("unit", 0, unit, NULL),
    TEXT("better", FIELD_REQUIRED, better, &better),
    TEXT("role", FIELD_REQUIRED, role, &role),
    TEXT("method", 0, method, &field_word),
    SUB(base, OBJECT, FIELD_FLAT, run_type_estimate),
    {ROW("new", OBJECT, FIELD_FLAT, new_), &run_type_estimate, NULL},
    SUB(ratio, OBJECT, FIELD_FLAT, run_type_estimate),
    NUM(confidence, F64, FIELD_SHARE),
    SUB(gate, OBJECT, FIELD_FLAT, run_type_estimate),
    NUM(gate_confidence, F64, FIELD_SHARE),
    TEXT("verdict", FIELD_REQUIRED, verdict, &verdict),
    TEXT("why", 0, why, NULL),
    NUM(min_effect, F64, FIELD_POSITIVE),
    NUM(mde, F64, FIELD_POSITIVE),
    NUM(p_value, F64, FIELD_SHARE),
    NUM(samples, U64, 0),
    NUM(needed, U64, 0),
    NUM(sd_sample, F64, FIELD_POSITIVE),
    NUM(sd_launch, F64, FIELD_POSITIVE),
    NUM(evidence, MAP, FIELD_FLAT),
    NUM(unknown, REASONS, 0),
};
TYPE(metric, metric_rows, false, NULL);
#undef HERE

#define HERE comparison_evidence
static const struct run_field evidence_rows[] = {
    NUM(contended, BOOL, 0),
    NUM(cpu_share, F64, FIELD_POSITIVE),
    NUM(interrupted, F64, FIELD_SHARE),
    NUM(pressure, F64, FIELD_SHARE),
    NUM(steal, F64, FIELD_SHARE),
};
TYPE(interference_type, evidence_rows, false, NULL);
#undef HERE

#define HERE comparison_samples
static const struct run_field samples_rows[] = {
    NUM(base_wall_ns, SAMPLES, 0), NUM(new_wall_ns, SAMPLES, 0), NUM(base_cpu_ns, SAMPLES, 0),
    NUM(new_cpu_ns, SAMPLES, 0),   NUM(launch, SAMPLES, 0),      NUM(order, SAMPLES, 0),
};
TYPE(samples_type, samples_rows, false, NULL);
#undef HERE

#define HERE comparison_case
static const struct run_field case_rows[] = {
    TEXT("name", FIELD_REQUIRED, name, NULL),
    NUM(params, MAP, FIELD_FLAT),
    TEXT("verdict", FIELD_REQUIRED, verdict, &verdict),
    NUM(pairs, U64, 0),
    NUM(failed_pairs, U64, 0),
    NUM(launches, U64, 0),
    NUM(repeats, U64, 0),
    NUM(spent_s, F64, FIELD_POSITIVE),
    TEXT("stopped", 0, stopped, &field_word),
    SUB(interference, OBJECT, FIELD_FLAT, interference_type),
    SUB(metrics, LIST, FIELD_REQUIRED, metric),
    SUB(notes, LIST, FIELD_REQUIRED, note),
    SUB(samples, OBJECT, 0, samples_type),
    NUM(launch, MAP, 0),
    NUM(unknown, REASONS, 0),
};
TYPE(case_type, case_rows, false, NULL);
#undef HERE

#define HERE comparison
static const struct run_field document_rows[] = {
    TEXT("id", FIELD_REQUIRED, id, &field_ulid),
    TEXT("created", FIELD_REQUIRED, created, &field_utc),
    SUB(tool, OBJECT, FIELD_REQUIRED | FIELD_FLAT, run_type_tool),
    SUB(host, OBJECT, FIELD_REQUIRED, run_type_host),
    TEXT("method", FIELD_REQUIRED, method, &field_word),
    SUB(base, OBJECT, FIELD_REQUIRED, side),
    {ROW("new", OBJECT, FIELD_REQUIRED, new_), &side, NULL},
    NUM(config, MAP, 0),
    TEXT("verdict", FIELD_REQUIRED, verdict, &verdict),
    TEXT("reproduce", 0, reproduce, NULL),
    SUB(differences, LIST, FIELD_REQUIRED, difference),
    SUB(unmatched, LIST, FIELD_REQUIRED, unmatched_type),
    SUB(cases, LIST, FIELD_REQUIRED, case_type),
    SUB(notes, LIST, FIELD_REQUIRED, note),
};
TYPE_SHARED(comparison_type_document, document_rows, false, NULL);
#undef HERE
