/* SPDX-License-Identifier: MIT
 * alert.h - alert rules as data: a quantity, a comparison, a threshold, for how long, under which other condition, and
 * at what value it clears. Fed with samples one by one; says when a rule fires and when it clears, each once. Pure:
 * acts on nothing.
 *
 *     "cpu>80% for 10s"   "memory>80%"   "disk.busy[sda]>80% for 5s"   "process.memory.rss>4GB for 1m clear 3GB"
 *     "gpu<70% for 10s while process.waiting>50%" */
#ifndef ANALYZE_ALERT_H
#define ANALYZE_ALERT_H

#include "analyze/watch/derive.h"
#include "core/vec.h"

struct alert_condition {
    char name[48];   /* of the quantity; "": none */
    char label[64];  /* "sda"; "": the whole, see derived_value() */
    size_t quantity; /* derived_index() of the name; DERIVED_NONE: of a server, see alert_parse_served() */
    char op;         /* '>' or '<' */
    double threshold;
};

struct alert_rule {
    struct alert_condition when;
    struct alert_condition also; /* "while ..": must hold too; name "": none */
    double clear;                /* falls back beyond this; the default is 5 % of the threshold inside */
    uint64_t for_ns;
    char text[160];     /* as written */
    const char *unit;   /* of the quantity */
    const char *action; /* advice; "" */
};
/* Errors show the place: "cpu>80% fro 10s: at 'fro': expected for, while or clear". */
tare_status alert_parse(struct alert_rule *out, const char *text, tare_error *err);
/* The same with the quantities that only a server has: "slo.burn[shop]>14.4", "regression[latency.p50]>5%". */
#define ALERT_SLO_BURN "slo.burn"     /* the smaller of the burn rates over an hour and six; label: a service */
#define ALERT_REGRESSION "regression" /* by how much runs got worse lately; label: a number of runs */
tare_status alert_parse_served(struct alert_rule *out, const char *text, tare_error *err);
extern const char *const alert_defaults[]; /* ends with NULL */
struct alert_rules {
    VEC(struct alert_rule) items;
};
/* The default rules, if wanted, and those of n texts behind what is there already. */
tare_status alert_rules_add(struct alert_rules *to, bool defaults, const char *const *texts, size_t n,
                            tare_error *err);

struct alert_event {
    size_t rule;
    bool fired; /* false: cleared */
    uint64_t at_ns, since_ns;
    double value;
    double own;         /* the watched program's part of it; NAN: unknown, or there is none */
    const char *action; /* the rule's, or another where others take most of it; "" */
};
struct alert_events {
    VEC(struct alert_event) items;
};
struct alerts;
tare_status alerts_new(struct alerts **out, const struct alert_rule *rules, size_t n, tare_error *err);
void alerts_free(struct alerts *a); /* NULL is fine */
size_t alerts_count(const struct alerts *a);
const struct alert_rule *alerts_rule(const struct alerts *a, size_t rule);
/* Was it ever known whether the rule holds? If not, that it did not fire means nothing. */
bool alerts_judged(const struct alerts *a, size_t rule);
/* It fired before, of which whoever asks was told: it goes on, or it did and has cleared since. */
void alerts_resume(struct alerts *a, size_t rule, bool firing);
/* Append what fires or clears at this sample. An unknown value neither fires nor clears. */
tare_status alerts_feed(struct alerts *a, const struct deriver *d, uint64_t at_ns, struct alert_events *out,
                        tare_error *err);
/* One rule without a second condition, whose value the caller has, NAN: unknown. +1: fires now, -1: clears now,
 * 0: neither. */
int alerts_tell(struct alerts *a, size_t rule, double value, uint64_t at_ns);

#endif
