/* SPDX-License-Identifier: MIT
 * finding_layer.c - rules about timed layers: far under the roof, moved instead of computed, on another provider than
 * asked for. What a layer could give is its share of the time (Amdahl), so small layers are never mentioned. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "analyze/judge/finding.h"
#include "core/vec.h"

#define GAIN_WORTH_TELLING 0.05 /* of the time of a run */
#define FAR 0.5                 /* of what the roof allows */
#define SHAKY 0.1               /* half-width of the median's interval */
#define MOVING_WORTH_TELLING 0.03
enum { KINDS_TOLD = 3 };

static const char *verb_end(double n) /* one takes, two take */
{
    return n == 1 ? "s" : "";
}

/* ---- distance to the roof: layers of one operator together, as they would be improved together ---- */

struct kind {
    const char *op;
    const struct run_case *c;
    double share, allowed; /* of a run: what they take, what the roof would let them take */
    double layers;
    const struct run_layer *worst; /* the one with the most to gain */
    bool told;
};
typedef VEC(struct kind) kinds_of;

static double gain_of(const struct kind *k)
{
    return k->share - k->allowed;
}

static double layer_gain(const struct run_layer *l)
{
    return l->share.v * (1 - fmin(l->roof_share.v, 1));
}

static struct kind *find_kind(kinds_of *kinds, const char *op)
{
    for (size_t i = 0; i < kinds->n; i++)
        if (strcmp(kinds->items[i].op, op) == 0) return &kinds->items[i];
    return NULL;
}

/* Into the kind of its operator. */
static void add_layer(struct judging *j, kinds_of *kinds, const struct run_case *c, const struct run_layer *l)
{
    if (!l->share.known || !l->roof_share.known || !l->bound) return;
    const char *op = l->op ? l->op : l->name;
    struct kind *k = find_kind(kinds, op), fresh = {.op = op, .c = c, .worst = l};
    if (!k && vec_push(kinds, fresh, NULL) < 0) {
        j->failed = true;
        return;
    }
    if (!k) k = vec_last(kinds);
    k->share += l->share.v;
    k->allowed += l->share.v - layer_gain(l);
    k->layers++;
    if (layer_gain(l) > layer_gain(k->worst)) k->worst = l;
}

/* Keep of each operator the case in which it could gain the most. */
static void merge_kinds(struct judging *j, kinds_of *into, const kinds_of *more)
{
    for (size_t i = 0; i < more->n; i++) {
        struct kind *k = find_kind(into, more->items[i].op);
        if (!k)
            j->failed |= vec_push(into, more->items[i], NULL) < 0;
        else if (gain_of(&more->items[i]) > gain_of(k))
            *k = more->items[i];
    }
}

/* Was the machine disturbed so much that times of single layers are worth little? */
static bool is_shaky(const struct run_case *c)
{
    const struct run_estimate *t = &c->latency_ns.p50;
    if (!t->known || !t->lo.known || !t->hi.known) return false; /* another rule speaks of that */
    return t->hi.v - t->lo.v > 2 * SHAKY * t->value;
}

/* The roof that a layer is held against, and what brings it nearer; [on a GPU][bound by memory]. */
static const struct roof_words {
    const char *roof, *action;
} roof_words[2][2] = {
    {{"the processors' arithmetic",
      "try a larger batch, other thread counts, or a precision with faster instructions"},
     {"the memory's bandwidth",
      "fuse it with its neighbours, or move fewer bytes (smaller types, fewer layout changes)"}},
    {{"the GPU's arithmetic", "try a larger batch, or a precision with faster instructions (fp16, bf16)"},
     {"the bandwidth of the GPU's memory",
      "fuse it with its neighbours, or move fewer bytes (smaller types, fewer layout changes)"}},
};

/* 1 / (1 - gain) is Amdahl's law: only the nodes of this kind get faster, all else takes as long as before. Of a shaky
 * measurement it is told as information, never as a warning. */
static void tell_kind(struct judging *j, const struct kind *k)
{
    double gain = gain_of(k), share = k->allowed / k->share;
    bool memory = strcmp(k->worst->bound, "memory") == 0, gpu = k->worst->gpu_ns.known;
    const struct roof_words *words = &roof_words[gpu][memory];
    struct run_finding *f = finding_start(j, k->c, "%.60s: %s take%s %s of the time, at %s of what %s allows",
                                          k->op, show_count(k->layers, "node").s, verb_end(k->layers),
                                          show_percent(k->share).s, show_percent(share).s, words->roof);
    if (f) f->severity = is_shaky(k->c) ? "info" : gain_severity(gain);
    finding_numbers(j, f, {"share", k->share}, {"roof_share", share}, {"nodes", k->layers},
                    {"speedup_at_roof", 1 / (1 - gain)});
    finding_text(j, f, "bound", k->worst->bound);
    finding_text(j, f, "worst", k->worst->name);
    finding_action(j, f, "%s%s; at that peak the whole would be %s times as fast",
                   is_shaky(k->c) ? "first measure again on a quiet machine; then " : "", words->action,
                   show_number(1 / (1 - gain)).s);
}

static bool is_worth_telling(const struct kind *k)
{
    return !k->told && gain_of(k) >= GAIN_WORTH_TELLING && k->allowed < FAR * k->share;
}

static void tell_kinds(struct judging *j, kinds_of *kinds)
{
    for (int told = 0; told < KINDS_TOLD; told++) {
        struct kind *best = NULL;
        for (size_t i = 0; i < kinds->n; i++) {
            struct kind *k = &kinds->items[i];
            if (is_worth_telling(k) && (!best || gain_of(k) > gain_of(best))) best = k;
        }
        if (!best) return;
        tell_kind(j, best);
        best->told = true;
    }
}

void find_far_from_roof(struct judging *j)
{
    kinds_of all = VEC_INIT, here = VEC_INIT;
    for (size_t i = 0; i < j->run->cases.n; i++) {
        const struct run_case *c = j->run->cases.at[i];
        vec_clear(&here);
        for (size_t k = 0; k < c->layers.n; k++) add_layer(j, &here, c, c->layers.at[k]);
        merge_kinds(j, &all, &here);
    }
    tell_kinds(j, &all);
    vec_release(&here);
    vec_release(&all);
}

/* ---- layers that only move ---- */

struct moved {
    const struct run_case *c;
    double nodes, share, bytes; /* share NAN: no times; bytes NAN: not all known */
};

typedef bool op_fn(const char *op);

static bool is_layout(const char *op)
{
    return strcmp(op, "Transpose") == 0 || strcmp(op, "ReorderInput") == 0 ||
           strcmp(op, "ReorderOutput") == 0;
}

static bool is_copy(const char *op)
{
    return strncmp(op_without_domain(op), "Memcpy", 6) == 0;
}

static struct moved moved_in(const struct run_case *c, op_fn *wanted)
{
    struct moved m = {c, 0, 0, 0};
    bool timed = false;
    for (size_t i = 0; i < c->layers.n; i++) {
        const struct run_layer *l = c->layers.at[i];
        timed = timed || l->share.known;
        if (!l->op || !wanted(l->op)) continue;
        m.nodes++;
        m.share += l->share.known ? l->share.v : 0;
        m.bytes += OR_NAN(l->bytes);
    }
    if (!timed) m.share = NAN;
    return m;
}

/* The case in which they take the largest part of the time; c NULL: no case has timed layers. */
static struct moved most_moved(const struct run *run, op_fn *wanted)
{
    struct moved worst = {.share = NAN};
    for (size_t i = 0; i < run->cases.n; i++) {
        struct moved m = moved_in(run->cases.at[i], wanted);
        if (isnan(m.share) || m.share <= worst.share) continue;
        worst = m;
    }
    return worst;
}

static void tell_static_transposes(struct judging *j)
{
    const struct run_static *s = finding_graph(j->run);
    double nodes, bytes, all = s ? graph_bytes(s) : NAN;
    if (!s || !map_number(&s->patterns, "transposes", &nodes) ||
        !map_number(&s->patterns, "transpose_bytes", &bytes))
        return;
    double share = bytes / all;
    if (!(nodes > 0) || !(share >= GAIN_WORTH_TELLING)) return;
    struct run_finding *f =
        finding_start(j, NULL, "%s move%s %s of all bytes", show_count(nodes, "layout change").s,
                      verb_end(nodes), show_percent(share).s);
    if (f) f->severity = gain_severity(share);
    finding_numbers(j, f, {"nodes", nodes}, {"bytes", bytes}, {"bytes_share", share});
}

void find_transposes(struct judging *j)
{
    struct moved m = most_moved(j->run, is_layout);
    if (!m.c) tell_static_transposes(j);
    if (!(m.share >= MOVING_WORTH_TELLING)) return; /* NAN without a case */
    struct run_finding *f =
        finding_start(j, m.c, "%s take%s %s of the time", show_count(m.nodes, "layout change").s,
                      verb_end(m.nodes), show_percent(m.share).s);
    if (f) f->severity = gain_severity(m.share);
    finding_numbers(j, f, {"nodes", m.nodes}, {"share", m.share}, {"bytes", m.bytes});
}

/* ---- providers ---- */

/* "cuda" asked for, "CUDAExecutionProvider" reported. */
static bool is_provider(const char *reported, const char *asked)
{
    return strncasecmp(reported, asked, strlen(asked)) == 0;
}

/* By the times of layers, where the runtime gave no account of its own (then find_placement() speaks). */
void find_layer_provider(struct judging *j, const struct run_case *c)
{
    const char *asked = param_text(c, "provider"), *other = NULL;
    double all = 0, elsewhere = 0, share = 0;
    if (!*asked || strcasecmp(asked, "cpu") == 0 || c->placement.n) return;
    for (size_t i = 0; i < c->layers.n; i++) {
        const struct run_layer *l = c->layers.at[i];
        if (!l->provider) continue;
        all++;
        if (is_provider(l->provider, asked)) continue;
        elsewhere++;
        share += l->share.known ? l->share.v : 0;
        if (!other) other = l->provider; /* layers come in order of time */
    }
    if (!other) return;
    struct run_finding *f =
        finding_start(j, c, "%g of %g nodes ran on %.60s, not on %.60s as requested: %s of the time",
                      elsewhere, all, other, asked, show_percent(share).s);
    if (f) f->severity = share < GAIN_WORTH_TELLING && elsewhere < 0.05 * all ? "info" : "warn";
    finding_numbers(j, f, {"nodes_elsewhere", elsewhere}, {"nodes", all}, {"share", share});
    finding_text(j, f, "asked", asked);
    finding_text(j, f, "ran_on", other);
}

/* Copies between providers that the runtime put into the graph. */
static double static_copies(const struct run *run)
{
    const struct run_map *ops = &run->subject.optimized.ops;
    double n = 0, v;
    for (size_t i = 0; run->subject.optimized.known && i < ops->n; i++)
        if (is_copy(ops->at[i].key) && map_number(ops, ops->at[i].key, &v)) n += v;
    return n;
}

void find_copies(struct judging *j)
{
    struct moved m = most_moved(j->run, is_copy);
    if (!m.c) m = (struct moved){NULL, static_copies(j->run), NAN, NAN};
    if (!(m.nodes > 0)) return;
    const char *word = m.nodes == 1 ? "copy" : "copies";
    struct run_finding *f = isnan(m.share)
                                ? finding_start(j, NULL, "%g %s between providers", m.nodes, word)
                                : finding_start(j, m.c, "%g %s between providers take%s %s of the time",
                                                m.nodes, word, verb_end(m.nodes), show_percent(m.share).s);
    if (f && m.share >= GAIN_WORTH_TELLING) f->severity = "warn";
    finding_numbers(j, f, {"copies", m.nodes}, {"share", m.share}, {"bytes", m.bytes});
}
