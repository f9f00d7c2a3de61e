/* SPDX-License-Identifier: MIT
 * run_answer.c - the answer of a benchmark in a few lines, before any table: what failed, whether targets are met,
 * which case to use and why; of one case its time. Says nothing that the document does not say. */
#include <math.h>
#include <string.h>

#include "core/fmt.h"
#include "report/run/run_report.h"
#include "report/text.h"

enum { TEXT_MOST = 300, LINES_MOST = 4 };

struct lines {
    struct stream *s;
    unsigned n;
};

/* The first has its name before it, the others stand below it. Takes the words. */
static void add_line(struct lines *l, struct buf *words)
{
    struct buf wrapped = BUF_INIT;
    if (l->n < LINES_MOST && words->len && !words->failed) {
        text_wrap(&wrapped, words->data, (struct text_box){11, 11, l->s->style.width});
        buf_printf(&l->s->out, "%s%-10s%s %s", l->s->style.dim, l->n ? "" : "answer", l->s->style.plain,
                   l->s->style.bold);
        buf_add(&l->s->out, wrapped.data, wrapped.len);
        buf_printf(&l->s->out, "%s\n", l->s->style.plain);
        l->n++;
    }
    if (words->failed || wrapped.failed) l->s->out.failed = 1;
    buf_release(&wrapped);
    buf_release(words);
}

/* ---- findings that are an answer by themselves ---- */

static bool is_answer(const struct run_finding *f)
{
    static const char *const ids[] = {"latency.limit", "variant.faster", "variant.slower", "variant.same",
                                      NULL};
    if (strcmp(f->severity, "critical") == 0) return true;
    for (const char *const *id = ids; *id; id++)
        if (strcmp(f->id, *id) == 0) return true;
    return false;
}

static void add_finding(struct lines *l, const struct run *run, const struct run_finding *f)
{
    struct buf b = BUF_INIT;
    text_name(&b, f->title, TEXT_MOST);
    if (run->cases.n > 1 && f->case_name && *f->case_name) {
        buf_add_str(&b, " [");
        text_name(&b, f->case_name, TEXT_MOST);
        buf_add_char(&b, ']');
    }
    add_line(l, &b);
}

static void add_findings(struct lines *l, const struct run *run)
{
    for (size_t i = 0; i < run->findings.n; i++)
        if (is_answer(run->findings.at[i])) add_finding(l, run, run->findings.at[i]);
}

/* Whoever asked for layers wants to know which of them: the one whose finding weighs most stands first. */
static void add_layer(struct lines *l, const struct run *run)
{
    for (size_t i = 0; i < run->findings.n; i++) {
        if (strncmp(run->findings.at[i]->id, "layer.", 6) != 0) continue;
        add_finding(l, run, run->findings.at[i]);
        return;
    }
}

/* ---- targets ---- */

static void add_targets(struct lines *l, const struct run *run)
{
    size_t pass = 0, fail = 0, n = run->targets.n;
    const struct run_target *first = NULL;
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        const char *verdict = run->targets.at[i]->verdict ? run->targets.at[i]->verdict : "";
        pass += strcmp(verdict, "pass") == 0;
        if (strcmp(verdict, "fail") == 0 && fail++ == 0) first = run->targets.at[i];
    }
    if (!n) return;
    if (pass == n)
        buf_printf(&b, "%s", n == 1 ? "the target is met" : "all targets are met");
    else if (fail)
        buf_printf(&b, "%zu of %zu targets missed: ", fail, n);
    else
        buf_printf(&b, "%zu of %zu targets undecided: measure longer", n - pass, n);
    if (first) {
        run_target_text(&b, first);
        buf_add_str(&b, " (achieved ");
        run_achieved_text(&b, first);
        buf_add_char(&b, ')');
    }
    add_line(l, &b);
}

/* ---- cases ---- */

static void add_interval(struct buf *b, const struct measure *m, const struct run_estimate *e)
{
    if (!e->lo.known || !e->hi.known) return;
    buf_add_str(b, " (");
    run_measure_text(b, m, e->lo.v);
    buf_add_str(b, " to ");
    run_measure_text(b, m, e->hi.v);
    buf_add_char(b, ')');
}

static void add_time(struct buf *b, const char *name, double ns)
{
    buf_add_str(b, name);
    fmt_duration(b, ns);
}

/* Processor time of a run: what of it the program spent itself, and what the kernel did for it. */
static void add_processor(struct buf *b, const struct run_case *c)
{
    double runs = run_case_runs(c);
    if (!(runs > 0) || !c->cpu.user_ns.known || !c->cpu.system_ns.known) return;
    add_time(b, "; user ", (double)c->cpu.user_ns.v / runs);
    add_time(b, ", system ", (double)c->cpu.system_ns.v / runs);
    buf_add_str(b, " each");
}

static void add_only_case(struct lines *l, const struct run_case *c, bool command)
{
    struct run_estimate e;
    const struct measure *m = measure_find("latency.p50");
    struct buf b = BUF_INIT;
    if (!measure_named(c, m->name, &e)) return;
    run_measure_text(&b, m, e.value);
    buf_add_str(&b, " a run");
    add_interval(&b, m, &e);
    if (c->latency_ns.min.known && c->latency_ns.max.known) {
        add_time(&b, ", fastest ", (double)c->latency_ns.min.v);
        add_time(&b, ", slowest ", (double)c->latency_ns.max.v);
    }
    bool together = c->calls_per_sample.known && c->calls_per_sample.v > 1;
    if (c->samples.known)
        buf_printf(&b, ", %llu %s", (unsigned long long)c->samples.v, together ? "samples of " : "runs");
    if (c->samples.known && together) buf_printf(&b, "%llu runs", (unsigned long long)c->calls_per_sample.v);
    if (command) add_processor(&b, c);
    add_line(l, &b);
}

static void add_choice(struct lines *l, const struct run *run)
{
    const struct run_recommendation *r = &run->recommendation;
    struct buf b = BUF_INIT;
    if (!r->known || !r->case_name) return;
    buf_add_str(&b, "use ");
    text_name(&b, r->case_name, TEXT_MOST);
    if (r->objective) buf_printf(&b, " for %s", r->objective);
    if (r->why && *r->why) buf_add_str(&b, ": ");
    if (r->why) text_name(&b, r->why, TEXT_MOST);
    add_line(l, &b);
}

void run_answer_text(struct stream *s, const struct run *run)
{
    struct lines l = {.s = s};
    if (strcmp(run->kind, "tune") == 0)
        return; /* it has an answer of its own, about what was not measured, too */
    add_targets(&l, run);
    add_findings(&l, run);
    if (run->cases.n > 1)
        add_choice(&l, run);
    else if (run->cases.n == 1)
        add_only_case(&l, run->cases.at[0], strcmp(run->subject.type, "command") == 0);
    add_layer(&l, run);
}
