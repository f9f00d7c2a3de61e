/* SPDX-License-Identifier: MIT
 * environment.c - see compare_saved.h. One row per property. */
#include "analyze/compare/compare_saved.h"

#include <stddef.h>
#include <string.h>

#include "core/buf.h"

enum kind { KIND_TEXT, KIND_U64, KIND_F64, KIND_CONFIG, KIND_FINGERPRINT };

static const struct row {
    const char *what, *severity;
    enum kind kind;
    size_t offset; /* in struct run */
} rows[] = {
    {"kind", "info", KIND_TEXT, offsetof(struct run, kind)},
    {"host.cpu.model", "critical", KIND_TEXT, offsetof(struct run, host.cpu.model)},
    {"host.cpu.usable", "critical", KIND_F64, offsetof(struct run, host.cpu.usable)},
    {"host.arch", "critical", KIND_TEXT, offsetof(struct run, host.arch)},
    {"host.hostname", "info", KIND_TEXT, offsetof(struct run, host.hostname)},
    {"host.kernel", "warn", KIND_TEXT, offsetof(struct run, host.kernel)},
    {"host.governor", "warn", KIND_TEXT, offsetof(struct run, host.governor)},
    {"host.cgroup.cpu_quota", "warn", KIND_F64, offsetof(struct run, host.cgroup.cpu_quota)},
    {"host.cgroup.memory_limit_bytes", "warn", KIND_U64,
     offsetof(struct run, host.cgroup.memory_limit_bytes)},
    {"host.cgroup.cpuset", "warn", KIND_TEXT, offsetof(struct run, host.cgroup.cpuset)},
    {"host.fingerprint", "critical", KIND_FINGERPRINT, 0}, /* after its parts, which say what it is */
    {"subject.type", "critical", KIND_TEXT, offsetof(struct run, subject.type)},
    {"subject.name", "warn", KIND_TEXT, offsetof(struct run, subject.name)},
    {"subject.sha256", "warn", KIND_TEXT, offsetof(struct run, subject.sha256)},
    {"subject.runtime.name", "warn", KIND_TEXT, offsetof(struct run, subject.runtime.name)},
    {"subject.runtime.version", "warn", KIND_TEXT, offsetof(struct run, subject.runtime.version)},
    {"tool.version", "warn", KIND_TEXT, offsetof(struct run, tool.version)},
    {"load", "critical", KIND_CONFIG, 0},
    {"rate", "warn", KIND_CONFIG, 0},
    {"arrivals", "warn", KIND_CONFIG, 0},
    {"concurrency", "warn", KIND_CONFIG, 0},
    {"scenario", "warn", KIND_CONFIG, 0},
    {"inputs", "warn", KIND_CONFIG, 0},
    {"warmup", "info", KIND_CONFIG, 0},
    {"providers", "warn", KIND_CONFIG, 0},
    {"session_config", "warn", KIND_CONFIG, 0},
    {"command", "info", KIND_CONFIG, 0},
    {"shell", "warn", KIND_CONFIG, 0},
    {"prepare", "warn", KIND_CONFIG, 0},
    {"git_commit", "info", KIND_CONFIG, 0},
};

/* ---- a property as text; nothing written: unknown ---- */

static void value_text(struct buf *b, const struct run_value *v, int depth)
{
    switch (v->kind) {
    case RUN_NULL: break;
    case RUN_BOOL: buf_add_str(b, v->yes ? "yes" : "no"); break;
    case RUN_INT: buf_printf(b, "%lld", (long long)v->i); break;
    case RUN_REAL: buf_printf(b, "%.9g", v->d); break;
    case RUN_TEXT: buf_add_str(b, v->s ? v->s : ""); break;
    case RUN_LIST:
    case RUN_MAP:
        for (size_t i = 0; i < v->items.n && depth < RUN_MAP_DEPTH; i++) {
            const struct run_entry *e = &v->items.at[i];
            buf_printf(b, "%s%s%s", i ? " " : "", e->key ? e->key : "", e->key ? "=" : "");
            value_text(b, &e->value, depth + 1);
        }
    }
}

/* A document that holds no fingerprint is given the one that the parts of its host make. */
static void property(struct buf *b, const struct row *row, const struct run *run)
{
    char print[RUN_FINGERPRINT_SIZE];
    const char *at = (const char *)run + row->offset;
    const struct run_value *v;
    switch (row->kind) {
    case KIND_TEXT:
        if (*(const char *const *)at) buf_add_str(b, *(const char *const *)at);
        break;
    case KIND_U64:
        if (((const struct known_u64 *)at)->known)
            buf_printf(b, "%llu", (unsigned long long)((const struct known_u64 *)at)->v);
        break;
    case KIND_F64:
        if (((const struct known_f64 *)at)->known) buf_printf(b, "%.6g", ((const struct known_f64 *)at)->v);
        break;
    case KIND_CONFIG:
        v = run_map_get(&run->config, row->what);
        if (v) value_text(b, v, 0);
        break;
    case KIND_FINGERPRINT:
        run_host_fingerprint(&run->host, print);
        buf_add_str(b, run->host.fingerprint ? run->host.fingerprint : print);
    }
}

#define OR " or "

/* Is `text` one of the values in "a or b"? */
static bool listed(const struct buf *list, const char *text)
{
    size_t n = strlen(text), gap = sizeof OR - 1;
    for (const char *at = list->len ? list->data : NULL; at; at = strstr(at, OR)) {
        if (at != list->data) at += gap;
        if (strncmp(at, text, n) == 0 && (at[n] == 0 || strncmp(at + n, OR, gap) == 0)) return true;
    }
    return false;
}

/* All different values of a side, in the order of its runs: "1.20.1 or 1.30.0". How many. */
static size_t side_text(struct buf *b, const struct row *row, struct environment_runs side)
{
    struct buf one = BUF_INIT;
    size_t values = 0;
    for (size_t i = 0; i < side.n && !one.failed && values < 8; i++) {
        buf_clear(&one);
        property(&one, row, side.at[i]);
        const char *text = one.len ? one.data : "unknown";
        if (!one.failed && !listed(b, text)) buf_printf(b, "%s%s", values++ ? OR : "", text);
    }
    if (one.failed) b->failed = 1;
    buf_release(&one);
    return values;
}

static bool differ(const char *const side[2])
{
    return strcmp(side[0] ? side[0] : "", side[1] ? side[1] : "") != 0;
}

/* NULL is "unknown". What one side does not tell is no proof that numbers do not compare. */
static void add_difference(struct comparison *c, const char *what, const char *const side[2],
                           const char *severity)
{
    bool told = side[0] && side[1];
    struct comparison_difference *d = comparison_add_difference(c, what, side[0], side[1]);
    if (d) d->severity = !told && strcmp(severity, "critical") == 0 ? "warn" : severity;
}

static const char *text_or_null(struct comparison *c, const struct buf *b)
{
    if (b->failed) c->arena.failed = true;
    return !b->failed && b->len && strcmp(b->data, "unknown") != 0 ? b->data : NULL;
}

static void compare_row(struct comparison *c, const struct row *row, struct environment_runs base,
                        struct environment_runs new_)
{
    struct buf a = BUF_INIT, b = BUF_INIT;
    bool mixed = side_text(&a, row, base) > 1;
    mixed |= side_text(&b, row, new_) > 1;
    const char *const side[2] = {text_or_null(c, &a), text_or_null(c, &b)};
    if (mixed || differ(side)) add_difference(c, row->what, side, row->severity);
    buf_release(&a);
    buf_release(&b);
}

void environment_compare(struct comparison *c, struct environment_runs base, struct environment_runs new_)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) compare_row(c, &rows[i], base, new_);
}

const struct comparison_difference *environment_critical(const struct comparison *c)
{
    for (size_t i = 0; i < c->differences.n; i++)
        if (strcmp(c->differences.at[i]->severity, "critical") == 0) return c->differences.at[i];
    return NULL;
}

/* ---- cases ---- */

static void compare_param(struct comparison *c, const struct run_case *base, const struct run_case *new_,
                          const char *key)
{
    const struct run_value *x = run_map_get(&base->params, key), *y = run_map_get(&new_->params, key);
    struct buf a = BUF_INIT, b = BUF_INIT;
    if (x) value_text(&a, x, 0);
    if (y) value_text(&b, y, 0);
    const char *const side[2] = {text_or_null(c, &a), text_or_null(c, &b)};
    if (differ(side)) add_difference(c, arena_printf(&c->arena, "%s: %s", new_->name, key), side, "warn");
    buf_release(&a);
    buf_release(&b);
}

static void compare_unit(struct comparison *c, const char *name, const char *what, const char *const units[2])
{
    if (differ(units)) add_difference(c, arena_printf(&c->arena, "%s: %s", name, what), units, "critical");
}

void environment_compare_case(struct comparison *c, const struct run_case *base, const struct run_case *new_)
{
    for (size_t i = 0; i < base->params.n; i++) compare_param(c, base, new_, base->params.at[i].key);
    for (size_t i = 0; i < new_->params.n; i++)
        if (!run_map_get(&base->params, new_->params.at[i].key))
            compare_param(c, base, new_, new_->params.at[i].key);
    compare_unit(c, new_->name, "unit", (const char *const[]){base->unit, new_->unit});
    compare_unit(c, new_->name, "throughput.unit",
                 (const char *const[]){base->throughput.unit, new_->throughput.unit});
}
