/* SPDX-License-Identifier: MIT
 * fields.c - see fields.h. Adding a field: one row here, one member in document.h or case.h, one property in
 * docs/schema/run-1.json, one line in docs/run-document.md. */
#include "run/fields.h"

#include <math.h>
#include <string.h>

#include "run/field_rows.h"
#include "run/run.h"

/* ---- rules for strings ---- */

static bool only(const char *s, const char *set, size_t min, size_t max)
{
    size_t n = strspn(s, set);
    return s[n] == 0 && n >= min && n <= max;
}

static bool one_of(const char *s, const char *const *words)
{
    while (*words && strcmp(*words, s) != 0) words++;
    return *words != NULL;
}

static bool is_ulid(const char *s)
{
    return s[0] >= '0' && s[0] <= '7' && only(s, "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 26, 26);
}

static bool is_word(const char *s)
{
    return s[0] >= 'a' && s[0] <= 'z' && only(s, "abcdefghijklmnopqrstuvwxyz0123456789-", 1, 32);
}

static bool is_sha256(const char *s)
{
    return only(s, "0123456789abcdef", 64, 64);
}

/* The two digits at s, or -1. */
static int two(const char *s)
{
    return strspn(s, "0123456789") >= 2 ? (s[0] - '0') * 10 + s[1] - '0' : -1;
}

static bool is_time(const char *s)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd.dddZ";
    for (size_t i = 0; i < sizeof shape; i++) {
        bool digit = s[i] >= '0' && s[i] <= '9';
        if (shape[i] == 'd' ? !digit : s[i] != shape[i]) return false;
    }
    return two(s + 5) >= 1 && two(s + 5) <= 12 && two(s + 8) >= 1 && two(s + 8) <= 31 && two(s + 11) <= 23 &&
           two(s + 14) <= 59 && two(s + 17) <= 60;
}

static bool is_severity(const char *s)
{
    return one_of(s, (const char *const[]){"info", "warn", "critical", NULL});
}

static bool is_verdict(const char *s)
{
    return one_of(s, (const char *const[]){"pass", "fail", "inconclusive", NULL});
}

static bool is_operator(const char *s)
{
    return one_of(s, (const char *const[]){"<=", ">=", "<", ">", "==", NULL});
}

static bool is_filled(const char *s)
{
    return s[0] != 0;
}

static bool is_file_name(const char *s)
{
    return s[0] != 0 && !strchr(s, '/') && strcmp(s, ".") != 0 && strcmp(s, "..") != 0;
}

const struct run_rule field_ulid = {"a ULID: 26 characters of Crockford base 32", is_ulid};
const struct run_rule field_word = {"1 to 32 of a-z, 0-9 and '-', beginning with a letter", is_word};
static const struct run_rule sha256 = {"64 lower-case hexadecimal digits", is_sha256};
const struct run_rule field_utc = {"a time like 2026-11-15T02:17:21.123Z", is_time};
static const struct run_rule severity = {"info, warn or critical", is_severity};
static const struct run_rule verdict = {"pass, fail or inconclusive", is_verdict};
static const struct run_rule comparison = {"<=, >=, <, > or ==", is_operator};
const struct run_rule field_filled = {"a text that is not empty", is_filled};
static const struct run_rule file_name = {"a file name without a folder", is_file_name};

/* ---- rules for numbers, keys and whole structs ---- */

const char *field_number_fault(const struct run_field *f, double v)
{
    if (!isfinite(v)) return "not a finite number";
    if ((f->flags & (FIELD_POSITIVE | FIELD_SHARE | FIELD_WHOLE)) && v < 0) return "must not be negative";
    if ((f->flags & FIELD_SHARE) && v > 1) return "a share must not be above 1";
    return NULL;
}

bool field_key_ok(const char *key)
{
    size_t n = 0;
    while (key[n] >= 0x20 && key[n] < 0x7f && n <= RUN_KEY_MAX) n++;
    return key[n] == 0 && n >= 1 && n <= RUN_KEY_MAX;
}

const struct run_field *field_find(const struct run_type *t, const char *key)
{
    for (size_t i = 0; i < t->n_fields; i++) {
        if (strcmp(t->fields[i].key, key) == 0) return &t->fields[i];
    }
    return NULL;
}

static const char *check_estimate(const void *p)
{
    const struct run_estimate *e = p;
    if (e->lo.known && e->lo.v > e->value) return "lo is above value";
    if (e->hi.known && e->hi.v < e->value) return "hi is below value";
    return NULL;
}

static const char *check_latency(const void *p)
{
    const struct run_latency *l = p;
    if (l->min.known && l->max.known && l->min.v > l->max.v) return "min is above max";
    return NULL;
}

static const char *check_histogram(const void *p)
{
    const struct run_histogram *h = p;
    if (h->scale < -10 || h->scale > 20) return "scale is not within -10 to 20";
    if (h->offset < INT32_MIN || h->offset > INT32_MAX) return "offset has more than 32 bits";
    return NULL;
}

static const char *check_proof(const void *p)
{
    const struct run_proof *f = p;
    if (f->ratio_lo.known && f->ratio_lo.v > f->ratio) return "ratio_lo is above ratio";
    if (f->ratio_hi.known && f->ratio_hi.v < f->ratio) return "ratio_hi is below ratio";
    return NULL;
}

/* ---- the rows ---- */

#define HERE run_tool
static const struct run_field tool_rows[] = {
    TEXT("version", FIELD_REQUIRED, version, &field_filled),
    TEXT("commit", 0, commit, NULL),
};
TYPE_SHARED(run_type_tool, tool_rows, false, NULL);
#undef HERE

#define HERE run_host_cpu
static const struct run_field host_cpu_rows[] = {
    TEXT("model", 0, model, NULL),
    NUM(cores, U64, 0),
    NUM(usable, F64, FIELD_POSITIVE),
};
TYPE(host_cpu, host_cpu_rows, false, NULL);
#undef HERE

#define HERE run_host_cgroup
static const struct run_field host_cgroup_rows[] = {
    NUM(version, U64, 0),
    TEXT("path", 0, path, NULL),
    NUM(cpu_quota, F64, FIELD_POSITIVE),
    NUM(memory_limit_bytes, U64, 0),
    TEXT("cpuset", 0, cpuset, NULL),
};
TYPE(host_cgroup, host_cgroup_rows, false, NULL);
#undef HERE

#define HERE run_host_gpu
static const struct run_field host_gpu_rows[] = {
    NUM(index, U64, FIELD_REQUIRED), TEXT("name", 0, name, NULL), TEXT("uuid", 0, uuid, NULL),
    TEXT("driver", 0, driver, NULL), NUM(memory_bytes, U64, 0),
};
TYPE(host_gpu, host_gpu_rows, false, NULL);
#undef HERE

#define HERE run_host
static const struct run_field host_rows[] = {
    TEXT("fingerprint", 0, fingerprint, NULL),
    TEXT("hostname", 0, hostname, NULL),
    TEXT("os", 0, os, NULL),
    TEXT("kernel", 0, kernel, NULL),
    TEXT("arch", 0, arch, NULL),
    SUB(cpu, OBJECT, FIELD_REQUIRED, host_cpu),
    NUM(memory_bytes, U64, 0),
    {ROW("virtual", BOOL, 0, is_virtual), NULL, NULL},
    TEXT("governor", 0, governor, NULL),
    SUB(cgroup, OBJECT, FIELD_REQUIRED, host_cgroup),
    SUB(gpus, LIST, FIELD_REQUIRED, host_gpu),
    NUM(load1, F64, FIELD_POSITIVE),
    NUM(unknown, REASONS, 0),
};
TYPE_SHARED(run_type_host, host_rows, false, NULL);
#undef HERE

#define HERE run_runtime
static const struct run_field runtime_rows[] = {
    TEXT("name", FIELD_REQUIRED, name, &field_filled),
    TEXT("version", 0, version, NULL),
};
TYPE(runtime, runtime_rows, false, NULL);
#undef HERE

#define HERE run_cost
static const struct run_field cost_rows[] = {
    NUM(complete, BOOL, 0),
    NUM(macs, U64, 0),
    NUM(int_macs, U64, 0),
    NUM(flops, U64, 0),
    NUM(simple, U64, 0),
    NUM(division, U64, 0),
    NUM(transcendental, U64, 0),
    NUM(integer, U64, 0),
    NUM(bytes_read, U64, 0),
    NUM(bytes_written, U64, 0),
    NUM(useful_macs, U64, 0),
};
TYPE(cost, cost_rows, false, NULL);
#undef HERE

#define HERE run_static
static const struct run_field static_rows[] = {
    NUM(dims, MAP, FIELD_FLAT),
    NUM(nodes, U64, 0),
    NUM(unknown_nodes, U64, 0),
    NUM(parameters, U64, 0),
    NUM(parameter_bytes, U64, 0),
    NUM(bytes_by_type, MAP, FIELD_FLAT),
    NUM(ops, MAP, FIELD_FLAT),
    NUM(unknown_ops, MAP, FIELD_FLAT),
    NUM(patterns, MAP, FIELD_FLAT),
    SUB(cost, OBJECT, 0, cost),
    SUB(cost_per_run, OBJECT, 0, cost),
    NUM(activation_sum, U64, 0),
    NUM(activation_peak, U64, 0),
    NUM(activation_arena, U64, 0),
    TEXT("activation_peak_node", 0, activation_peak_node, NULL),
    NUM(formulas, MAP, 0),
    NUM(unknown, REASONS, 0),
};
TYPE(static_cost, static_rows, false, NULL);
#undef HERE

#define HERE run_roof
static const struct run_field roof_rows[] = {
    NUM(threads, U64, 0),
    NUM(flops, F64, FIELD_POSITIVE),
    NUM(int_ops, F64, FIELD_POSITIVE),
    NUM(bandwidth, F64, FIELD_POSITIVE),
    TEXT("measured", 0, measured, NULL),
};
TYPE(roof, roof_rows, false, NULL);
#undef HERE

#define HERE run_subject
static const struct run_field subject_rows[] = {
    TEXT("type", FIELD_REQUIRED, type, &field_word),
    TEXT("name", FIELD_REQUIRED, name, &field_filled),
    TEXT("path", 0, path, NULL),
    TEXT("sha256", 0, sha256, &sha256),
    NUM(size_bytes, U64, 0),
    SUB(runtime, OBJECT, 0, runtime),
    {ROW("static", OBJECT, 0, as_file), &static_cost, NULL},
    {ROW("static_optimized", OBJECT, 0, optimized), &static_cost, NULL},
};
TYPE(subject, subject_rows, false, NULL);
#undef HERE

#define HERE run_estimate
static const struct run_field time_rows[] = {
    NUM(value, F64, FIELD_REQUIRED | FIELD_PLAIN | FIELD_WHOLE),
    NUM(lo, F64, FIELD_WHOLE),
    NUM(hi, F64, FIELD_WHOLE),
};
TYPE(time_estimate, time_rows, true, check_estimate);
#undef HERE

#define HERE run_estimate
static const struct run_field estimate_rows[] = {
    NUM(value, F64, FIELD_REQUIRED | FIELD_PLAIN),
    NUM(lo, F64, 0),
    NUM(hi, F64, 0),
};
TYPE_SHARED(run_type_estimate, estimate_rows, true, check_estimate);
#undef HERE

#define HERE run_histogram
static const struct run_field histogram_rows[] = {
    NUM(scale, I64, FIELD_REQUIRED | FIELD_PLAIN),
    NUM(offset, I64, FIELD_REQUIRED | FIELD_PLAIN),
    NUM(zero, U64, FIELD_REQUIRED | FIELD_PLAIN),
    NUM(counts, COUNTS, FIELD_REQUIRED),
};
TYPE(histogram, histogram_rows, true, check_histogram);
#undef HERE

#define HERE run_latency
static const struct run_field latency_rows[] = {
    NUM(mean, U64, 0),
    NUM(stddev, U64, 0),
    NUM(min, U64, 0),
    NUM(max, U64, 0),
    SUB(p50, OBJECT, FIELD_FLAT, time_estimate),
    SUB(p90, OBJECT, FIELD_FLAT, time_estimate),
    SUB(p95, OBJECT, FIELD_FLAT, time_estimate),
    SUB(p99, OBJECT, FIELD_FLAT, time_estimate),
    SUB(p999, OBJECT, FIELD_FLAT, time_estimate),
    SUB(histogram, OBJECT, FIELD_FLAT, histogram),
};
TYPE(latency, latency_rows, false, check_latency);
#undef HERE

#define HERE run_throughput
static const struct run_field throughput_rows[] = {
    {ROW("value", F64, FIELD_REQUIRED | FIELD_PLAIN | FIELD_POSITIVE, rate.value), NULL, NULL},
    {ROW("lo", F64, FIELD_POSITIVE, rate.lo), NULL, NULL},
    {ROW("hi", F64, FIELD_POSITIVE, rate.hi), NULL, NULL},
    TEXT("unit", FIELD_REQUIRED, unit, &field_filled),
};
TYPE(throughput, throughput_rows, false, check_estimate);
#undef HERE

#define HERE run_memory
static const struct run_field memory_rows[] = {
    NUM(rss_before, U64, 0),   NUM(rss_peak, U64, 0), NUM(rss_mean, U64, 0),
    NUM(delta, I64, 0),        NUM(per_unit, I64, 0), NUM(minor_faults, U64, 0),
    NUM(major_faults, U64, 0), NUM(arena, MAP, 0),    NUM(fragmentation, F64, FIELD_POSITIVE),
    SUB(growth, OBJECT, FIELD_FLAT, run_type_estimate),
};
TYPE(memory, memory_rows, false, NULL);
#undef HERE

#define HERE run_cpu
static const struct run_field cpu_rows[] = {
    NUM(utilization, F64, FIELD_POSITIVE),
    NUM(user_ns, U64, 0),
    NUM(system_ns, U64, 0),
    NUM(voluntary_switches, U64, 0),
    NUM(involuntary_switches, U64, 0),
    NUM(throttled_ns, U64, 0),
    NUM(steal, F64, FIELD_SHARE),
};
TYPE(cpu, cpu_rows, false, NULL);
#undef HERE

#define HERE run_outliers
static const struct run_field outliers_rows[] = {
    NUM(count, U64, 0),
    NUM(explained, U64, 0),
    NUM(limit_ns, U64, 0),
};
TYPE(outliers, outliers_rows, false, NULL);
#undef HERE

#define HERE run_io
static const struct run_field io_rows[] = {
    NUM(read_bytes, U64, 0), NUM(write_bytes, U64, 0),  NUM(read_ops, U64, 0),
    NUM(write_ops, U64, 0),  NUM(net_rx_bytes, U64, 0), NUM(net_tx_bytes, U64, 0),
};
TYPE(io, io_rows, false, NULL);
#undef HERE

#define HERE run_gpu_device
static const struct run_field gpu_device_rows[] = {
    NUM(index, U64, FIELD_REQUIRED),     TEXT("name", 0, name, NULL),
    NUM(utilization, F64, FIELD_SHARE),  NUM(memory_utilization, F64, FIELD_SHARE),
    NUM(memory_before, U64, 0),          NUM(memory_peak, U64, 0),
    NUM(power_w, F64, FIELD_POSITIVE),   NUM(temperature_c, F64, 0),
    NUM(clock_mhz, F64, FIELD_POSITIVE), NUM(throttled_ns, U64, 0),
};
TYPE(gpu_device, gpu_device_rows, false, NULL);
#undef HERE

#define HERE run_gpu
static const struct run_field gpu_rows[] = {
    NUM(kernel_ns, U64, 0),
    NUM(copy_ns, U64, 0),
    NUM(copy_bytes, U64, 0),
    SUB(devices, LIST, FIELD_REQUIRED, gpu_device),
};
TYPE(gpu, gpu_rows, false, NULL);
#undef HERE

#define HERE run_energy
static const struct run_field energy_rows[] = {
    NUM(joules, F64, FIELD_POSITIVE),
    NUM(per_unit, F64, FIELD_POSITIVE),
    TEXT("method", FIELD_REQUIRED, method, &field_word),
    TEXT("why", 0, why, NULL),
};
TYPE(energy, energy_rows, false, NULL);
#undef HERE

#define HERE run_accuracy
static const struct run_field accuracy_rows[] = {
    TEXT("metric", FIELD_REQUIRED, metric, &field_filled),
    {ROW("value", F64, FIELD_REQUIRED | FIELD_PLAIN, score.value), NULL, NULL},
    {ROW("lo", F64, 0, score.lo), NULL, NULL},
    {ROW("hi", F64, 0, score.hi), NULL, NULL},
    NUM(baseline, F64, 0),
    NUM(examples, U64, 0),
    TEXT("dataset", 0, dataset, NULL),
};
TYPE(accuracy, accuracy_rows, false, check_estimate);
#undef HERE

#define HERE run_layer
static const struct run_field layer_rows[] = {
    TEXT("name", FIELD_REQUIRED, name, NULL),
    TEXT("op", 0, op, NULL),
    TEXT("group", 0, group, NULL),
    TEXT("provider", 0, provider, NULL),
    NUM(nodes, U64, 0),
    NUM(calls, U64, 0),
    NUM(total_ns, U64, 0),
    NUM(share, F64, FIELD_SHARE),
    NUM(flops, U64, 0),
    NUM(bytes, U64, 0),
    NUM(macs, U64, 0),
    NUM(int_macs, U64, 0),
    NUM(parameters, U64, 0),
    NUM(output_bytes, U64, 0),
    TEXT("output", 0, output, NULL),
    NUM(time_ns, F64, FIELD_POSITIVE),
    NUM(intensity, F64, FIELD_POSITIVE),
    NUM(rate, F64, FIELD_POSITIVE),
    NUM(bandwidth, F64, FIELD_POSITIVE),
    TEXT("bound", 0, bound, NULL),
    NUM(roof_share, F64, FIELD_POSITIVE),
    NUM(speedup_if_free, F64, FIELD_POSITIVE),
};
TYPE(layer, layer_rows, false, NULL);
#undef HERE

#define HERE run_profile
static const struct run_field profile_rows[] = {
    NUM(runs, U64, 0),
    NUM(latency_ns, U64, 0),
    NUM(overhead, F64, 0),
    NUM(node_ns, U64, 0),
    NUM(covered, F64, FIELD_POSITIVE),
    NUM(dropped_events, U64, 0),
};
TYPE(profile, profile_rows, false, NULL);
#undef HERE

#define HERE run_launch
static const struct run_field launch_rows[] = {
    TEXT("created", FIELD_REQUIRED, created, &field_utc),
    NUM(samples, U64, 0),
    SUB(p50, OBJECT, FIELD_FLAT, time_estimate),
    NUM(mean, U64, 0),
    NUM(p90, U64, 0),
    NUM(p95, U64, 0),
    NUM(p99, U64, 0),
    NUM(load_ns, U64, 0),
    NUM(throughput, F64, FIELD_POSITIVE),
    NUM(cpu_ns_per_run, F64, FIELD_POSITIVE),
    NUM(rss_peak, U64, 0),
    NUM(env_pad, U64, 0),
};
TYPE(launch, launch_rows, false, NULL);
#undef HERE

#define HERE run_anchored
static const struct run_field anchored_rows[] = {
    TEXT("anchor", FIELD_REQUIRED, anchor, &field_filled),
    TEXT("metric", FIELD_REQUIRED, metric, &field_filled),
    {ROW("value", F64, FIELD_REQUIRED | FIELD_PLAIN | FIELD_POSITIVE, ratio.value), NULL, NULL},
    {ROW("lo", F64, FIELD_POSITIVE, ratio.lo), NULL, NULL},
    {ROW("hi", F64, FIELD_POSITIVE, ratio.hi), NULL, NULL},
    NUM(confidence, F64, FIELD_SHARE),
    NUM(pairs, U64, 0),
};
TYPE(anchored, anchored_rows, false, check_estimate);
#undef HERE

#define HERE run_self
static const struct run_field self_rows[] = {
    NUM(ns_per_run, U64, 0),
    NUM(share, F64, FIELD_POSITIVE),
};
TYPE(self, self_rows, false, NULL);
#undef HERE

#define HERE run_case
static const struct run_field case_rows[] = {
    TEXT("name", FIELD_REQUIRED, name, NULL),
    {ROW("params", MAP, FIELD_FLAT, params), NULL, NULL},
    NUM(samples, U64, 0),
    NUM(warmup_runs, U64, 0),
    TEXT("unit", 0, unit, NULL),
    NUM(units_per_run, U64, 0),
    NUM(confidence, F64, FIELD_SHARE),
    NUM(load_ns, U64, 0),
    NUM(first_run_ns, U64, 0),
    SUB(latency_ns, OBJECT, 0, latency),
    NUM(samples_raw, SAMPLES, 0),
    SUB(throughput, OBJECT, FIELD_FLAT, throughput),
    SUB(memory, OBJECT, 0, memory),
    SUB(cpu, OBJECT, 0, cpu),
    SUB(outliers, OBJECT, FIELD_FLAT, outliers),
    SUB(io, OBJECT, 0, io),
    SUB(gpu, OBJECT, 0, gpu),
    SUB(energy, OBJECT, 0, energy),
    SUB(accuracy, OBJECT, 0, accuracy),
    SUB(cost, OBJECT, 0, cost),
    SUB(layers, LIST, 0, layer),
    SUB(profile, OBJECT, 0, profile),
    SUB(launches, LIST, 0, launch),
    SUB(anchored, LIST, 0, anchored),
    SUB(watch, OBJECT, 0, run_type_watch),
    SUB(self, OBJECT, FIELD_FLAT, self),
    NUM(unknown, REASONS, 0),
};
TYPE(run_case_type, case_rows, false, NULL);
#undef HERE

#define HERE run_finding
static const struct run_field finding_rows[] = {
    TEXT("id", FIELD_REQUIRED, id, &field_filled),
    TEXT("severity", FIELD_REQUIRED, severity, &severity),
    TEXT("title", FIELD_REQUIRED, title, NULL),
    TEXT("case", 0, case_name, NULL),
    NUM(evidence, MAP, 0),
    TEXT("action", 0, action, NULL),
};
TYPE(finding, finding_rows, false, NULL);
#undef HERE

#define HERE run_proof
static const struct run_field proof_rows[] = {
    TEXT("against", FIELD_REQUIRED, against, NULL),
    TEXT("metric", FIELD_REQUIRED, metric, &field_filled),
    NUM(ratio, F64, FIELD_REQUIRED | FIELD_PLAIN | FIELD_POSITIVE),
    NUM(ratio_lo, F64, FIELD_POSITIVE),
    NUM(ratio_hi, F64, FIELD_POSITIVE),
    NUM(confidence, F64, FIELD_SHARE),
    TEXT("verdict", FIELD_REQUIRED, verdict, &verdict),
};
TYPE(proof, proof_rows, false, check_proof);
#undef HERE

#define HERE run_recommendation
static const struct run_field recommendation_rows[] = {
    TEXT("objective", FIELD_REQUIRED, objective, &field_filled),
    TEXT("case", FIELD_REQUIRED, case_name, NULL),
    TEXT("why", 0, why, NULL),
    SUB(proof, OBJECT, 0, proof),
};
TYPE(recommendation, recommendation_rows, false, NULL);
#undef HERE

#define HERE run_target
static const struct run_field target_rows[] = {
    TEXT("metric", FIELD_REQUIRED, metric, &field_filled),
    TEXT("op", FIELD_REQUIRED, op, &comparison),
    NUM(value, F64, FIELD_REQUIRED | FIELD_PLAIN),
    TEXT("unit", 0, unit, NULL),
    TEXT("case", 0, case_name, NULL),
    NUM(achieved, F64, 0),
    NUM(ratio, F64, 0),
    TEXT("verdict", FIELD_REQUIRED, verdict, &verdict),
    NUM(confidence, F64, FIELD_SHARE),
};
TYPE(target, target_rows, false, NULL);
#undef HERE

#define HERE run_watched
static const struct run_field watched_rows[] = {
    SUB(watch, OBJECT, FIELD_REQUIRED, run_type_watch),
    SUB(findings, LIST, FIELD_REQUIRED, finding),
};
TYPE_SHARED(run_type_watched, watched_rows, false, NULL);
#undef HERE

#define HERE run
static const struct run_field document_rows[] = {
    TEXT("id", FIELD_REQUIRED, id, &field_ulid),
    TEXT("kind", FIELD_REQUIRED, kind, &field_word),
    TEXT("created", FIELD_REQUIRED, created, &field_utc),
    SUB(tool, OBJECT, FIELD_REQUIRED | FIELD_FLAT, run_type_tool),
    SUB(host, OBJECT, FIELD_REQUIRED, run_type_host),
    SUB(subject, OBJECT, FIELD_REQUIRED, subject),
    NUM(config, MAP, 0),
    SUB(roof, OBJECT, 0, roof),
    TEXT("trace", 0, trace, &file_name),
    SUB(cases, LIST, FIELD_REQUIRED, run_case_type),
    SUB(findings, LIST, FIELD_REQUIRED, finding),
    SUB(recommendation, OBJECT, 0, recommendation),
    SUB(targets, LIST, FIELD_REQUIRED, target),
};
const struct run_type run_type_document = {
    document_rows, sizeof document_rows / sizeof *document_rows, sizeof(struct run), false, NULL,
};

/* ---- numbers by path ---- */

static bool number_at(const struct run_type *t, const void *obj, const char *key, struct known_f64 *out)
{
    const struct run_field *f = field_find(t, key);
    if (!f) return false;
    const void *p = (const char *)obj + f->offset;
    const struct known_u64 *u = p;
    const struct known_i64 *i = p;
    const struct known_f64 *d = p;
    bool plain = f->flags & FIELD_PLAIN;
    if (f->kind == FIELD_F64) *out = plain ? known_f64(*(const double *)p) : *d;
    if (f->kind == FIELD_U64 && !plain) *out = (struct known_f64){u->known, (double)u->v};
    if (f->kind == FIELD_I64 && !plain) *out = (struct known_f64){i->known, (double)i->v};
    return out->known;
}

/* Into the parts that a path names, down to a number; an object stands for its value. */
static bool value_at(const struct run_type *t, const void *obj, const char *path, struct run_estimate *out)
{
    char key[64];
    struct known_f64 value = {0}, lo = {0}, hi = {0};
    size_t n = strcspn(path, ".");
    if (n >= sizeof key) return false;
    memcpy(key, path, n);
    key[n] = 0;
    const struct run_field *f = field_find(t, key);
    if (f && f->kind == FIELD_OBJECT) {
        const void *inner = (const char *)obj + f->offset;
        if (!(f->flags & FIELD_REQUIRED) && !*(const bool *)inner) return false;
        return value_at(f->type, inner, path[n] ? path + n + 1 : "value", out);
    }
    if (path[n] || !number_at(t, obj, key, &value)) return false;
    if (strcmp(key, "value") == 0) {
        number_at(t, obj, "lo", &lo);
        number_at(t, obj, "hi", &hi);
    }
    *out = (struct run_estimate){true, value.v, lo, hi};
    return true;
}

bool run_case_value(const struct run_case *c, const char *path, struct run_estimate *out)
{
    return value_at(&run_case_type, c, path, out);
}

bool run_launch_value(const struct run_launch *l, const char *path, struct run_estimate *out)
{
    return value_at(&launch, l, path, out);
}
