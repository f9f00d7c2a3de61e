/* SPDX-License-Identifier: MIT
 * alert.c - see alert.h: reads rules strictly, the whole text or an error that shows the place, and keeps per rule
 * since when it holds and whether it has fired. */
#include "analyze/watch/alert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/judge/judge.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/unit.h"

/* What the seeds of this project warn of, and what ends or cripples programs without a word. */
const char *const alert_defaults[] = {
    "cpu>80% for 10s",
    "memory>80%",
    "cgroup.memory.share>90% for 2s",
    "swap>1MB/s for 5s",
    "throttled>20% for 5s",
    "disk.busy>80% for 10s",
    "gpu.memory>80%",
    "gpu<70% for 10s while process.waiting>50%",
    "gpu.throttled>50% for 5s",
    NULL,
};

/* `own` over `whole`: the program's part of a quantity of the machine. Who takes less than half of it is told of the
 * others, not what to do less of. */
static const struct advice {
    const char *name;
    char op;
    const char *text, *own, *whole, *others;
} advice[] = {
    {"cpu", '>', "the processors are the limit: fewer workers, a faster kernel, or more cores",
     "process.cpu.share", "cpu",
     "other programs take the processors: stop them, or measure elsewhere; times are not comparable"},
    {"memory", '>', "free or spread memory before the kernel ends a process: smaller batches, streaming",
     "process.memory", "memory",
     "other programs hold the memory: stop them before the kernel ends a process"},
    {"cgroup.memory.share", '>',
     "raise the container's memory limit or hold less: the kernel kills beyond it", NULL, NULL, NULL},
    {"swap", '>', "the working set does not fit: hold less or add memory; swapping slows everything", NULL,
     NULL, NULL},
    {"throttled", '>', "the CPU quota stops the program: raise it, or start fewer threads than it allows",
     NULL, NULL, NULL},
    {"disk.busy", '>', "the disk is the limit: read larger pieces, cache, or use a faster disk", "process.io",
     "disk.throughput", "other programs keep the disk busy: stop them, or measure elsewhere"},
    {"gpu.memory", '>', "use a smaller batch or lower precision before an allocation fails",
     "gpu.memory.process", "gpu.memory.used",
     "other programs hold the GPU's memory: stop them before an allocation fails"},
    {"gpu", '<', "the GPU waits for the program: load and prepare data in parallel, with pinned memory", NULL,
     NULL, NULL},
    {"gpu.throttled", '>', "the card is too hot or its board limits it: cooling, or a lower power limit",
     NULL, NULL, NULL},
};

static const struct advice *advice_of(const struct alert_condition *c)
{
    for (size_t i = 0; i < sizeof advice / sizeof *advice; i++)
        if (advice[i].op == c->op && strcmp(advice[i].name, c->name) == 0) return &advice[i];
    return NULL;
}

/* ---- reading ---- */

static const char name_chars[] = "abcdefghijklmnopqrstuvwxyz0123456789_.";

static const char *const served[] = {ALERT_SLO_BURN, ALERT_REGRESSION};

static bool is_served(const char *name)
{
    for (size_t i = 0; i < sizeof served / sizeof *served; i++)
        if (strcmp(served[i], name) == 0) return true;
    return false;
}

static const char *unit_of(const char *name)
{
    return is_served(name) ? "1" : derived_unit(name);
}

static tare_status read_name(struct rule_text *r, struct alert_condition *out)
{
    size_t n = strspn(r->at, name_chars);
    if (n == 0) return rule_refuse(r, r->at, "a quantity was expected, as in cpu>80% for 10s");
    if (n >= sizeof out->name) return rule_refuse(r, r->at, "too long for a quantity");
    memcpy(out->name, r->at, n);
    out->name[n] = 0;
    out->quantity = derived_index(out->name);
    if (out->quantity == DERIVED_NONE && !is_served(out->name)) {
        const char *near = derived_suggest(out->name);
        return error_set(r->err, TARE_INVALID, "%s: '%s' is not a quantity%s%s%s", r->text, out->name,
                         near ? "; did you mean " : " (tare help run lists them)", near ? near : "",
                         near ? "?" : "");
    }
    r->at += n;
    if (*r->at != '[') return TARE_OK;
    n = strcspn(r->at, "]");
    if (r->at[n] != ']') return rule_refuse(r, r->at, "the ] is missing");
    if (n < 2 || n > sizeof out->label)
        return rule_refuse(r, r->at, "expected a label, as in disk.busy[sda]");
    snprintf(out->label, sizeof out->label, "%.*s", (int)(n - 1), r->at + 1);
    r->at += n + 1;
    return TARE_OK;
}

/* A value in the unit of a quantity (derived_unit()). Times are in seconds there, and several may add up: 1m30s. */
static tare_status read_value(struct rule_text *r, const char *unit, double *out)
{
    static const struct {
        const char *unit;
        enum unit_kind kind;
        const char *expected;
    } rows[] = {
        {"1", UNIT_SHARE, "expected a number or a percentage, as in 80%"},
        {"B", UNIT_BYTES, "expected bytes, as in 4GB or 512MiB"},
        {"B/s", UNIT_BYTE_RATE, "expected bytes per second, as in 100MB/s"},
        {"1/s", UNIT_FREQUENCY, "expected a number per second, as in 1000/s"},
        {"s", UNIT_TIME, "expected a time, as in 20ms"},
        {"W", UNIT_WATT, "expected watts, as in 250W"},
        {"C", UNIT_CELSIUS, "expected degrees Celsius, as in 85C"},
        {"Hz", UNIT_HERTZ, "expected a frequency, as in 1.2GHz"},
    };
    char word[32];
    struct duration t = {0};
    size_t n = strcspn(r->at, " \t"), i = 0, last = sizeof rows / sizeof *rows - 1;
    while (i < last && strcmp(rows[i].unit, unit) != 0) i++;
    snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), r->at);
    bool time = rows[i].kind == UNIT_TIME;
    bool good = time ? unit_parse_duration(word, &t, NULL) == TARE_OK : unit_parse(rows[i].kind, word, out);
    if (n >= sizeof word || !good) return rule_refuse(r, r->at, rows[i].expected);
    if (time) *out = (double)t.ns / 1e9;
    r->at += n;
    rule_skip_blanks(r);
    return TARE_OK;
}

static tare_status read_condition(struct rule_text *r, struct alert_condition *out)
{
    rule_skip_blanks(r);
    tare_status s = read_name(r, out);
    if (s != TARE_OK) return s;
    rule_skip_blanks(r);
    if (*r->at != '>' && *r->at != '<') return rule_refuse(r, r->at, "expected > or <");
    out->op = *r->at++;
    if (*r->at == '=') return rule_refuse(r, r->at, "use > or < alone");
    rule_skip_blanks(r);
    const char *number = r->at;
    s = read_value(r, unit_of(out->name), &out->threshold);
    if (s != TARE_OK || out->threshold <= 1 || !derived_is_share(out->quantity)) return s;
    if (memchr(number, '%', (size_t)(r->at - number))) return s;
    return error_set(r->err, TARE_INVALID, "%s: %s is a share of the whole, 1 at most; write %s%c%g%%",
                     r->text, out->name, out->name, out->op, out->threshold);
}

/* ---- what follows the condition ---- */

static tare_status read_for(struct rule_text *r, struct alert_rule *out)
{
    double seconds;
    tare_status s = read_value(r, "s", &seconds);
    if (s == TARE_OK) out->for_ns = (uint64_t)(seconds * 1e9);
    return s;
}

static tare_status read_while(struct rule_text *r, struct alert_rule *out)
{
    return read_condition(r, &out->also);
}

static tare_status read_clear(struct rule_text *r, struct alert_rule *out)
{
    const char *at = r->at;
    tare_status s = read_value(r, out->unit, &out->clear);
    if (s != TARE_OK) return s;
    bool inside = out->when.op == '>' ? out->clear <= out->when.threshold : out->clear >= out->when.threshold;
    return inside ? TARE_OK : rule_refuse(r, at, "it would clear where it fires");
}

static tare_status read_clause(struct rule_text *r, struct alert_rule *out, unsigned *seen)
{
    static const struct {
        const char *word;
        tare_status (*read)(struct rule_text *, struct alert_rule *);
    } clauses[] = {{"for", read_for}, {"while", read_while}, {"clear", read_clear}};
    size_t n = strcspn(r->at, " \t");
    for (unsigned i = 0; i < sizeof clauses / sizeof *clauses; i++) {
        if (n != strlen(clauses[i].word) || strncmp(r->at, clauses[i].word, n) != 0) continue;
        if (*seen & 1u << i) return rule_refuse(r, r->at, "given twice");
        *seen |= 1u << i;
        r->at += n;
        rule_skip_blanks(r);
        return clauses[i].read(r, out);
    }
    return rule_refuse(r, r->at, "expected for, while or clear");
}

/* Unless a clause says otherwise, an alert ends 5 % on the good side of its threshold: a value that hovers about it
 * must not raise one alert after the other. */
static tare_status parse(struct alert_rule *out, const char *text, tare_error *err)
{
    struct rule_text r = {text, text, err, NULL};
    unsigned seen = 0;
    *out = (struct alert_rule){.action = ""};
    if (strlen(text) >= sizeof out->text || !str_is_utf8(text, strlen(text)))
        return error_set(err, TARE_INVALID, "an alert rule is at most %zu bytes of text",
                         sizeof out->text - 1);
    snprintf(out->text, sizeof out->text, "%s", text);
    tare_status s = read_condition(&r, &out->when);
    if (s != TARE_OK) return s;
    out->unit = unit_of(out->when.name);
    out->clear = out->when.threshold * (out->when.op == '>' ? 0.95 : 1.05);
    while (*r.at)
        if ((s = read_clause(&r, out, &seen)) != TARE_OK) return s;
    if (advice_of(&out->when)) out->action = advice_of(&out->when)->text;
    return TARE_OK;
}

tare_status alert_parse(struct alert_rule *out, const char *text, tare_error *err)
{
    tare_status s = parse(out, text, err);
    const struct alert_condition *c = s == TARE_OK && is_served(out->when.name) ? &out->when : &out->also;
    if (s != TARE_OK || !is_served(c->name)) return s;
    return error_set(err, TARE_INVALID, "%s: '%s' is known to a server only (docs/server-jobs.md)", text,
                     c->name);
}

tare_status alert_parse_served(struct alert_rule *out, const char *text, tare_error *err)
{
    tare_status s = parse(out, text, err);
    if (s != TARE_OK) return s;
    if (is_served(out->also.name) || (is_served(out->when.name) && out->also.name[0]))
        return error_set(err, TARE_INVALID, "%s: while does not go with %s", text,
                         is_served(out->when.name) ? out->when.name : out->also.name);
    if (is_served(out->when.name) && out->when.op != '>')
        return error_set(err, TARE_INVALID, "%s: %s is good when it is small: use >", text, out->when.name);
    return TARE_OK;
}

/* ---- watching ---- */

struct rule_state {
    struct alert_rule rule;
    bool judged; /* its quantities were known once */
    bool active, holding;
    uint64_t since_ns; /* holding since; of an active one: before it fired */
    uint64_t back_ns;  /* of an active one that does not hold: since when */
};

struct alerts {
    size_t n;
    struct rule_state at[];
};

tare_status alert_rules_add(struct alert_rules *to, bool defaults, const char *const *texts, size_t n,
                            tare_error *err)
{
    struct alert_rule rule;
    size_t own = 0;
    tare_status s = TARE_OK;
    while (defaults && alert_defaults[own]) own++;
    for (size_t i = 0; s == TARE_OK && i < own + n; i++) {
        s = alert_parse(&rule, i < own ? alert_defaults[i] : texts[i - own], err);
        if (s == TARE_OK) s = vec_push(&to->items, rule, err);
    }
    return s;
}

tare_status alerts_new(struct alerts **out, const struct alert_rule *rules, size_t n, tare_error *err)
{
    *out = mem_new(1, sizeof **out + n * sizeof *(*out)->at);
    if (!*out) return error_nomem(err, "%zu alert rules", n);
    (*out)->n = n;
    for (size_t i = 0; i < n; i++) (*out)->at[i].rule = rules[i];
    return TARE_OK;
}

void alerts_free(struct alerts *a)
{
    mem_free(a);
}

const struct alert_rule *alerts_rule(const struct alerts *a, size_t rule)
{
    return &a->at[rule].rule;
}

size_t alerts_count(const struct alerts *a)
{
    return a->n;
}

bool alerts_judged(const struct alerts *a, size_t rule)
{
    return a->at[rule].judged;
}

static bool is_beyond(char op, double value, double threshold)
{
    return op == '>' ? value > threshold : value < threshold;
}

/* Does the second condition hold? One that is unknown holds as little as it fails: *known says. */
static bool is_also(const struct alert_condition *c, const struct deriver *d, bool *known)
{
    double v = 0;
    *known = !c->name[0] || derived_at(d, c->quantity, c->label, &v);
    return !c->name[0] || (*known && is_beyond(c->op, v, c->threshold));
}

/* +1: fires now, -1: clears now, 0: neither. */
static int step(struct rule_state *w, bool also, double value, uint64_t at_ns)
{
    const struct alert_condition *c = &w->rule.when;
    if (isnan(value)) return 0;
    w->judged = true;
    if (w->active) {
        bool beyond = also && is_beyond(c->op, value, w->rule.clear);
        if (w->holding && !beyond) w->back_ns = at_ns;
        w->holding = beyond;
        if (beyond || at_ns - w->back_ns < w->rule.for_ns) return 0; /* back for as long as it took to fire */
        w->active = false;
        return -1;
    }
    bool holds = also && is_beyond(c->op, value, c->threshold);
    if (holds && !w->holding) w->since_ns = at_ns;
    w->holding = holds;
    if (!holds || at_ns - w->since_ns < w->rule.for_ns) return 0;
    w->active = true;
    return 1;
}

/* Whose is it? */
static void attribute(struct alert_event *e, const struct alert_rule *r, const struct deriver *d)
{
    const struct advice *about = advice_of(&r->when);
    double own, whole;
    e->own = NAN;
    e->action = r->action;
    if (!about || !about->own || !derived_value(d, about->own, "", &own) ||
        !derived_value(d, about->whole, r->when.label, &whole) || !(whole > 0))
        return;
    e->own = fmin(own / whole, 1);
    if (e->own < 0.5) e->action = about->others;
}

tare_status alerts_feed(struct alerts *a, const struct deriver *d, uint64_t at_ns, struct alert_events *out,
                        tare_error *err)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct alert_rule *r = &a->at[i].rule;
        double value = NAN;
        bool known, also = is_also(&r->also, d, &known);
        if (!derived_at(d, r->when.quantity, r->when.label, &value) || !known) continue;
        int what = step(&a->at[i], also, value, at_ns);
        if (what == 0) continue;
        struct alert_event e = {i, what > 0, at_ns, a->at[i].since_ns, value, NAN, ""};
        attribute(&e, r, d);
        tare_status s = vec_push(&out->items, e, err);
        if (s != TARE_OK) return s;
    }
    return TARE_OK;
}

void alerts_resume(struct alerts *a, size_t rule, bool firing)
{
    a->at[rule].judged = true;
    a->at[rule].active = a->at[rule].holding = firing;
}

int alerts_tell(struct alerts *a, size_t rule, double value, uint64_t at_ns)
{
    return step(&a->at[rule], true, value, at_ns);
}
