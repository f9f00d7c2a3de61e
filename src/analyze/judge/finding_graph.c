/* SPDX-License-Identifier: MIT
 * finding_graph.c - rules about the graph before it runs: work that could be done once, patterns that could be one
 * operator, numbers that could be smaller, cost that grows with the square. They rest on run_static alone (formulas,
 * operators, patterns), so they also hold for `tare inspect`, which runs nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/judge/finding.h"

#define MIB 0x1p20
#define GAIN_WARN 0.2

const struct run_static *finding_graph(const struct run *run)
{
    const struct run_subject *s = &run->subject;
    if (s->optimized.known) return &s->optimized;
    return s->as_file.known ? &s->as_file : NULL;
}

double graph_bytes(const struct run_static *s)
{
    return s->cost.known ? OR_NAN(s->cost.bytes_read) + OR_NAN(s->cost.bytes_written) : NAN;
}

const char *op_without_domain(const char *op)
{
    const char *dot = strrchr(op, '.');
    return dot ? dot + 1 : op;
}

const char *gain_severity(double share)
{
    return share >= GAIN_WARN ? "warn" : "info";
}

static double graph_macs(const struct run_static *s)
{
    const struct run_cost *c = &s->cost;
    double ints = c->int_macs.known ? (double)c->int_macs.v : 0;
    return c->known ? OR_NAN(c->macs) + ints : NAN;
}

static double pattern(const struct run_static *s, const char *key)
{
    double v;
    return s && s->known && map_number(&s->patterns, key, &v) ? v : NAN;
}

/* ---- constant parts ---- */

/* What share of the multiplications of a graph is the same in every run; NAN: unknown. */
static double foldable_share(const struct run_static *s)
{
    return pattern(s, "foldable_macs") / graph_macs(s);
}

/* Where the constant part was found decides what to say: it runs each time, or at each load, or nobody knows. */
static const struct fold_case {
    const char *where, *action;
    bool runs;
} folds_each_run = {"", "compute them once: fold constants when exporting, or raise the optimisation level",
                    true},
  folds_at_load = {" in the file, which the runtime does each time it loads the model",
                   "save the model as the runtime optimised it, and load that", false},
  folds_maybe = {" in the file", "fold constants when exporting; many runtimes do it, but at each load",
                 false};

static void tell_foldable(struct judging *j, const struct run_static *s, const struct fold_case *how)
{
    double share = foldable_share(s), nodes = pattern(s, "foldable_nodes");
    struct run_finding *f = finding_start(j, NULL, "%s made of constants only: %s of the multiplications%s",
                                          show_count(nodes, "node").s, show_percent(share).s, how->where);
    if (f) f->severity = how->runs ? gain_severity(share) : "info";
    finding_numbers(j, f, {"nodes", nodes}, {"macs", pattern(s, "foldable_macs")}, {"share", share});
    finding_action(j, f, "%s", how->action);
}

void find_foldable(struct judging *j)
{
    const struct run_subject *s = &j->run->subject;
    if (s->optimized.known && foldable_share(&s->optimized) >= 0.01)
        tell_foldable(j, &s->optimized, &folds_each_run);
    else if (s->as_file.known && foldable_share(&s->as_file) >= 0.01)
        tell_foldable(j, &s->as_file, s->optimized.known ? &folds_at_load : &folds_maybe);
}

/* ---- patterns left in small operators ---- */

static const struct spelled {
    const char *key, *one, *many;
} spelled[] = {
    {"layer_norm", "layer norm", "layer norms"},
    {"rms_norm", "RMS norm", "RMS norms"},
    {"gelu", "Gelu", "Gelus"},
    {"attention", "attention", "attentions"},
};

/* Only of the graph that ran: in the file a pattern in pieces is usual, and the runtime's work. */
void find_unfused(struct judging *j)
{
    const struct run_static *s = &j->run->subject.optimized;
    double share = pattern(s, "unfused_bytes") / graph_bytes(s), total = 0;
    char list[160] = "";
    for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++) {
        double n = pattern(s, spelled[i].key);
        if (!(n > 0)) continue;
        size_t at = strlen(list);
        snprintf(list + at, sizeof list - at, "%s%g %s", at ? ", " : "", n,
                 n == 1 ? spelled[i].one : spelled[i].many);
        total += n;
    }
    if (!(total > 0) || share < 0.02) return; /* a share that is not known is no reason for silence */
    struct run_finding *f =
        isnan(share)
            ? finding_start(j, NULL, "the optimised graph still has in pieces: %s", list)
            : finding_start(j, NULL, "the optimised graph still has in pieces: %s; they move %s of all bytes",
                            list, show_percent(share).s);
    if (f && share >= GAIN_WARN) f->severity = "warn";
    for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++)
        if (pattern(s, spelled[i].key) > 0) finding_number(j, f, spelled[i].key, pattern(s, spelled[i].key));
    finding_numbers(j, f, {"nodes", pattern(s, "unfused_nodes")}, {"bytes_share", share});
}

/* ---- growth with the square of a dimension ---- */

/* One factor of a printed term: a number, or a dimension with an exponent. */
struct factor {
    double value; /* NAN: not understood */
    size_t dim;   /* index in dims; SIZE_MAX: a number */
    unsigned power;
};

/* A word that is neither a number nor a dimension of the document stays NAN: the growth is then unknown rather than too
 * small. */
static struct factor read_factor(const struct run_map *dims, const char *text, size_t n)
{
    char word[RUN_KEY_MAX + 16], *end;
    struct factor f = {NAN, SIZE_MAX, 1};
    if (n == 0 || n >= sizeof word) return f;
    memcpy(word, text, n);
    word[n] = 0;
    bool plain =
        strspn(word, "-0123456789.e+") == n; /* a dimension may be called inf, and 0x10 is none of ours */
    double v = plain ? strtod(word, &end) : NAN, number;
    if (plain && *end == 0 && isfinite(v)) f.value = v;
    char *caret = strrchr(word, '^');
    if (caret && caret[1] >= '1' && caret[1] <= '9') {
        f.power = (unsigned)strtoul(caret + 1, NULL, 10);
        *caret = 0;
    }
    for (size_t i = 0; i < dims->n && isnan(f.value); i++) {
        if (strcmp(dims->at[i].key, word) != 0 || !map_number(dims, word, &number)) continue;
        f.value = pow(number, f.power);
        f.dim = i;
    }
    return f;
}

/* End of the piece that begins at `at`: the next `mark` outside of brackets, or the end. */
static const char *piece_end(const char *at, const char *mark)
{
    int depth = 0;
    for (; *at; at++) {
        if (*at == '(') depth++;
        if (*at == ')') depth--;
        if (depth == 0 && strncmp(at, mark, strlen(mark)) == 0) break;
    }
    return at;
}

/* The value of one term [at, end), and whether it has `dim` squared or more. */
static double read_term(const struct run_map *dims, const char *at, const char *end, size_t dim,
                        bool *squared)
{
    double product = 1;
    *squared = false;
    while (at < end) {
        const char *stop = piece_end(at, "*");
        if (stop > end) stop = end;
        struct factor f = read_factor(dims, at, (size_t)(stop - at));
        product *= f.value;
        if (f.dim == dim && f.power >= 2) *squared = true;
        at = stop + 1;
    }
    return product;
}

struct growth {
    double total, squared; /* NAN: a part is not understood */
};

/* "12*batch*seq^2 + 4*batch - 3" at the dims of the document. */
static struct growth growth_of(const struct run_map *dims, const char *formula, size_t dim)
{
    struct growth g = {0, 0};
    double sign = 1;
    formula += strspn(formula, "<>~= "); /* a bound: of the parts that are known */
    for (const char *at = formula; *at;) {
        const char *plus = piece_end(at, " + "), *minus = piece_end(at, " - ");
        const char *end = plus < minus ? plus : minus;
        bool squared;
        double v = sign * read_term(dims, at, end, dim, &squared);
        g.total += v;
        if (squared) g.squared += v;
        sign = *end && end[1] == '-' ? -1 : 1;
        at = *end ? end + 3 : end;
    }
    return g;
}

static bool has_attention(const struct run_static *s)
{
    for (size_t i = 0; i < s->ops.n; i++)
        if (strstr(s->ops.at[i].key, "Attention") || strcmp(s->ops.at[i].key, "Softmax") == 0) return true;
    return false;
}

static void tell_quadratic(struct judging *j, const struct run_static *s, size_t dim, struct growth g)
{
    const char *name = s->dims.at[dim].key;
    double length = 0, share = g.squared / g.total;
    map_number(&s->dims, name, &length);
    struct run_finding *f =
        finding_start(j, NULL, "at %.60s = %g, %s of the multiplications grow with its square", name, length,
                      show_percent(share).s);
    if (f && share >= 0.5) f->severity = "warn";
    finding_text(j, f, "dim", name);
    finding_numbers(j, f, {"length", length}, {"share", share},
                    {"half_at", round(length * (g.total - g.squared) / g.squared)});
}

void find_quadratic(struct judging *j)
{
    const struct run_subject *u = &j->run->subject;
    const struct run_static *s = u->as_file.known ? &u->as_file : finding_graph(j->run);
    const struct run_value *v = s ? run_map_get(&s->formulas, "macs") : NULL;
    struct growth most = {0};
    size_t dim = SIZE_MAX;
    if (!v || v->kind != RUN_TEXT || !v->s || !has_attention(s)) return;
    for (size_t i = 0; i < s->dims.n; i++) {
        struct growth g = growth_of(&s->dims, v->s, i);
        if (!(g.total > 0) || !(g.squared > most.squared)) continue;
        most = g;
        dim = i;
    }
    if (dim != SIZE_MAX && most.squared / most.total >= 0.2) tell_quadratic(j, s, dim, most);
}

/* ---- size of the numbers ---- */

static bool tried_other_precision(const struct run *run)
{
    for (size_t i = 0; i < run->cases.n; i++) {
        const char *p = param_text(run->cases.at[i], "precision");
        if (*p && strcmp(p, "fp32") != 0) return true;
    }
    return false;
}

/* Operators that runtimes also have for small integers. */
static bool has_contractions(const struct run_static *s)
{
    static const char *const ops[] = {"MatMul", "FusedMatMul", "Gemm",     "FusedGemm",
                                      "Conv",   "FusedConv",   "Attention"};
    for (size_t i = 0; i < s->ops.n; i++)
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
            if (strcmp(op_without_domain(s->ops.at[i].key), ops[k]) == 0) return true;
    return false;
}

/* Is the whole, by its arithmetic, waiting for memory on this machine? False also when that is not known. */
static bool is_memory_bound(const struct run *run, const struct run_static *s)
{
    const struct run_roof *r = &run->roof;
    return r->known && OR_NAN(s->cost.flops) / OR_NAN(r->flops) < graph_bytes(s) / OR_NAN(r->bandwidth);
}

/* Silent where another precision was tried: then the cases themselves tell. */
void find_precision(struct judging *j)
{
    const struct run_static *s = &j->run->subject.as_file;
    double fp32, traffic;
    if (!s->known || !s->parameter_bytes.known || !map_number(&s->bytes_by_type, "float32", &fp32)) return;
    if (fp32 < 16 * MIB || fp32 < 0.5 * (double)s->parameter_bytes.v || !has_contractions(s)) return;
    if (tried_other_precision(j->run)) return;
    traffic = fp32 / graph_bytes(s);
    struct run_finding *f =
        finding_start(j, NULL, "%s of weights are fp32: fp16 would save %s, int8 %s", show_bytes(fp32).s,
                      show_bytes(fp32 / 2).s, show_bytes(fp32 * 3 / 4).s);
    bool memory = is_memory_bound(j->run, s);
    if (f && memory) f->severity = gain_severity(0.75 * fmin(traffic, 1));
    finding_numbers(j, f, {"fp32_bytes", fp32}, {"saved_fp16", fp32 / 2}, {"saved_int8", fp32 * 3 / 4},
                    {"traffic_share", traffic});
    if (j->run->roof.known)
        finding_number(j, f, "int8_over_fp32", OR_NAN(j->run->roof.int_ops) / OR_NAN(j->run->roof.flops));
    finding_action(
        j, f, "compare a quantised variant with this one, with its accuracy: int8 on CPUs, fp16 on GPUs%s",
        memory ? "; this model waits for memory, so fewer bytes are time saved" : "");
}

/* ---- embeddings ---- */

void find_embedding(struct judging *j)
{
    const struct run_static *s = &j->run->subject.as_file;
    double bytes = pattern(s, "embedding_bytes");
    if (!(bytes >= 8 * MIB) || !s->parameter_bytes.known || !s->parameter_bytes.v) return;
    double share = bytes / (double)s->parameter_bytes.v;
    if (!(share >= 0.3)) return;
    double tables = pattern(s, "embedding_tables");
    struct run_finding *f = finding_start(j, NULL, "%g embedding table%s: %s, %s of the weights", tables,
                                          tables == 1 ? "" : "s", show_bytes(bytes).s, show_percent(share).s);
    finding_numbers(j, f, {"tables", tables}, {"bytes", bytes},
                    {"parameters", pattern(s, "embedding_parameters")}, {"share", share});
}
