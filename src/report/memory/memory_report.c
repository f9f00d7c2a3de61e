/* SPDX-License-Identifier: MIT
 * memory_report.c - see memory_report.h. Sums are said once, for both; sites are tables by question for people, and one
 * list for programs. */
#include "report/memory/memory_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/fmt.h"
#include "report/text.h"

enum { ROWS_SHOWN = 20, CALLERS_SHOWN = 3, NAME_SHOWN = 60 };
#define SMALL_PROCESS 0.02 /* of the peak of the largest */

/* ---- words ---- */

static void line(struct answer *a, const char *name, struct buf *words)
{
    if (a->as_json)
        buf_release(words);
    else
        text_line(&a->stream, name, words);
}

static void add_bytes(struct buf *b, struct memory_bytes v)
{
    fmt_bytes(b, v.sum);
    if (v.variance <= 0) return;
    buf_add_str(b, " +/- ");
    struct interval i = memory_interval(v);
    fmt_bytes(b, i.hi - i.value);
}

static uint64_t whole_number(double n)
{
    return (uint64_t)(fmin(n, 1e18) + 0.5); /* who lies about sizes may claim more */
}

static void add_count(struct buf *b, double n, const char *one, const char *many)
{
    fmt_counted(b, whole_number(n), one, many);
}

/* The last part of a path. */
static const char *base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void add_frame(struct buf *b, const struct memory_frame_named *f)
{
    const char *file = f->file ? base(f->file) : NULL;
    if (f->kind == MEMORY_NATIVE) {
        if (file) text_name(b, file, NAME_SHOWN);
        buf_printf(b, "%s0x%" PRIx64, file ? "+" : "", f->offset);
        return;
    }
    if (f->kind != MEMORY_PYTHON) buf_add_str(b, "[");
    text_name(b, f->name ? f->name : "unknown", NAME_SHOWN);
    if (f->kind != MEMORY_PYTHON) buf_add_str(b, "]");
    if (file) {
        buf_add_char(b, ' ');
        text_name(b, file, NAME_SHOWN);
    }
    if (f->line) buf_printf(b, ":%" PRIu64, f->line);
}

static void add_site(struct buf *b, const struct memory_site *s)
{
    const struct memory_frame_named *f = s->frame;
    if (!f) buf_add_str(b, "unknown: its stack is not in the trace");
    for (int i = 0; f && i <= CALLERS_SHOWN; i++, f = f->caller) {
        if (i) buf_add_str(b, " < ");
        add_frame(b, f);
    }
    if (f) buf_add_str(b, " < ..");
}

/* ---- the head ---- */

static void put_bytes(struct answer *a, const char *key, struct memory_bytes v)
{
    struct interval i = memory_interval(v);
    answer_object_flat(a, key);
    answer_f64(a, "bytes", i.value, NULL);
    answer_f64(a, "lo", i.lo, NULL);
    answer_f64(a, "hi", i.hi, NULL);
    answer_object_end(a);
}

static bool lost_any(const struct memory_process *p)
{
    return p->lost_records || p->lost_stacks || p->lost_samples || p->unseen_frees;
}

static void say_mode(struct answer *a, const struct memory_process *p)
{
    struct buf b = BUF_INIT;
    answer_uint(a, "pid", p->pid, NULL);
    answer_uint(a, "from_ns", p->from_ns, NULL);
    answer_uint(a, "to_ns", p->to_ns, NULL);
    answer_uint(a, "recorded", p->noted, NULL);
    if (p->started)
        answer_uint(a, "every_bytes", p->every, NULL);
    else
        answer_null(a, "every_bytes", NULL);
    if (!p->started)
        buf_add_str(&b, "how is not in the trace: sums are of what was recorded");
    else if (p->every)
        buf_printf(&b,
                   "one allocation in each %s, on average: sums are estimates, +/- is their 95 %% interval",
                   show_bytes((double)p->every).s);
    else
        buf_add_str(&b, lost_any(p) ? "every allocation, but for what was lost"
                                    : "every allocation: sums are exact");
    buf_add_str(&b, "; ");
    add_count(&b, (double)p->noted, "record", "records");
    buf_printf(&b, " in %s", show_time((double)(p->to_ns - p->from_ns)).s);
    line(a, "recorded", &b);
}

static void say_sums(struct answer *a, const struct memory_process *p)
{
    struct buf b = BUF_INIT;
    answer_uint(a, "peak_ns", p->peak_ns, NULL);
    put_bytes(a, "peak", p->peak);
    add_bytes(&b, p->peak);
    buf_printf(&b, ", %s after the first record", show_time((double)(p->peak_ns - p->from_ns)).s);
    line(a, "peak", &b);
    put_bytes(a, "at_end", p->at_end);
    b = (struct buf)BUF_INIT;
    add_bytes(&b, p->at_end);
    line(a, "at the end", &b);
    answer_f64(a, "allocations", p->allocations, NULL);
    put_bytes(a, "allocated", p->allocated);
    b = (struct buf)BUF_INIT;
    add_bytes(&b, p->allocated);
    buf_add_str(&b, " in ");
    add_count(&b, p->allocations, "allocation", "allocations");
    line(a, "allocated", &b);
    answer_f64(a, "churned", p->churned, NULL);
    put_bytes(a, "churn", p->churn);
    b = (struct buf)BUF_INIT;
    add_bytes(&b, p->churn);
    buf_add_str(&b, " in ");
    add_count(&b, p->churned, "allocation", "allocations");
    buf_printf(&b, " freed within %s", show_time((double)MEMORY_CHURN_NS).s);
    line(a, "churn", &b);
}

/* What was read too long before or after the peak says nothing of it. */
static void say_resident(struct answer *a, const struct memory_process *p)
{
    struct buf b = BUF_INIT;
    bool before = p->resident_ns < p->peak_ns;
    uint64_t apart = before ? p->peak_ns - p->resident_ns : p->resident_ns - p->peak_ns;
    const char *when = before ? "before" : "after";
    if (p->resident && apart <= (p->to_ns - p->from_ns) / 10) {
        answer_uint(a, "resident_bytes", p->resident, NULL);
        fmt_bytes(&b, (double)p->resident);
        buf_printf(&b, " as the kernel counts it, read %s %s the peak", show_time((double)apart).s, when);
    } else {
        answer_null(a, "resident_bytes", NULL);
        buf_add_str(&b, "unknown at the peak: ");
        if (p->resident)
            buf_printf(&b, "it was read %s %s it", show_time((double)apart).s, when);
        else
            buf_add_str(&b, "it was never read");
    }
    line(a, "resident", &b);
}

static void add_lost(struct buf *b, uint64_t n, const char *one, const char *many)
{
    if (!n) return;
    if (b->len) buf_add_str(b, ", ");
    fmt_counted(b, n, one, many);
}

static void say_lost(struct answer *a, const struct memory_process *p)
{
    struct buf b = BUF_INIT;
    answer_object_flat(a, "lost");
    answer_uint(a, "records", p->lost_records, NULL);
    answer_uint(a, "stacks", p->lost_stacks, NULL);
    answer_uint(a, "samples", p->lost_samples, NULL);
    answer_uint(a, "frees", p->unseen_frees, NULL);
    answer_object_end(a);
    add_lost(&b, p->lost_records, "record", "records");
    add_lost(&b, p->lost_stacks, "stack", "stacks");
    add_lost(&b, p->lost_samples, "allocation whose free was not seen",
             "allocations whose free was not seen");
    add_lost(&b, p->unseen_frees, "free that is not in the record", "frees that are not in the record");
    if (b.len) buf_add_str(&b, ": sums are without them");
    line(a, "lost", &b);
    answer_list(a, "notes");
    for (size_t i = 0; i < p->n_notes; i++) {
        b = (struct buf)BUF_INIT;
        text_name(&b, p->notes[i], TEXT_NAME_MAX);
        answer_str(a, NULL, p->notes[i], NULL);
        line(a, "note", &b);
    }
    answer_list_end(a);
}

/* ---- tables for people ---- */

struct question {
    const char *heading, *first;
    double (*rank)(const struct memory_site *s); /* 0 and less: not in the table */
    struct memory_bytes (*value)(const struct memory_site *s);
    struct memory_bytes (*whole)(const struct memory_process *p);
};

static double rank_peak(const struct memory_site *s)
{
    return s->at_peak.sum;
}
static struct memory_bytes value_peak(const struct memory_site *s)
{
    return s->at_peak;
}
static struct memory_bytes whole_peak(const struct memory_process *p)
{
    return p->peak;
}
static double rank_churn(const struct memory_site *s)
{
    return s->churn.sum;
}
static struct memory_bytes value_churn(const struct memory_site *s)
{
    return s->churn;
}
static struct memory_bytes whole_churn(const struct memory_process *p)
{
    return p->churn;
}
static double rank_growth(const struct memory_site *s)
{
    return memory_site_grows(s) ? s->growth.rate : 0;
}

static const struct question at_peak = {"held at the peak", "held", rank_peak, value_peak, whole_peak};
static const struct question churned = {"freed within 1 ms", "churn", rank_churn, value_churn, whole_churn};
static const struct question growing = {"growing", "rate", rank_growth, NULL, NULL};

/* The largest first; of equals the one that comes first in the list. */
static const struct memory_site *next_of(const struct question *q, const struct memory_process *p,
                                         const struct memory_site *last)
{
    const struct memory_site *best = NULL;
    for (const struct memory_site *s = p->sites; s < p->sites + p->n_sites; s++) {
        double rank = q->rank(s);
        bool after = !last || rank < q->rank(last) || (rank == q->rank(last) && s > last);
        if (rank > 0 && after && (!best || rank > q->rank(best))) best = s;
    }
    return best;
}

static void say_heading(struct answer *a, const char *heading)
{
    answer_say(a, "\n%s%s%s\n", a->stream.style.bold, heading, a->stream.style.plain);
}

static void say_row(struct answer *a, const struct question *q, const struct memory_process *p,
                    const struct memory_site *s)
{
    if (q->value) {
        double whole = q->whole(p).sum;
        add_bytes(answer_text(a), q->value(s));
        fmt_share(answer_text(a), whole > 0 ? q->value(s).sum / whole : 0);
    } else {
        answer_say(a, "%s/s", show_bytes(s->growth.rate).s);
        answer_say(a, "%s", show_percent(s->growth.confidence).s);
    }
    add_bytes(answer_text(a), s->at_end);
    fmt_count(answer_text(a), whole_number(s->allocations));
    add_site(answer_text(a), s);
}

/* A thousandth of the whole and more; of what grows, everything. */
static bool is_worth_a_row(const struct question *q, const struct memory_process *p,
                           const struct memory_site *s)
{
    return !q->whole || q->rank(s) >= q->whole(p).sum / 1000;
}

static void say_table(struct answer *a, const struct question *q, const struct memory_process *p)
{
    struct table_column columns[] = {
        {q->first, false}, {q->value ? "share" : "confidence", false}, {"at the end", false}, {"allocations", false},
        {"site", true}};
    size_t n = 0;
    const struct memory_site *s = next_of(q, p, NULL);
    if (!s) return;
    say_heading(a, q->heading);
    answer_table(a, NULL, columns, sizeof columns / sizeof *columns);
    for (; s && n < ROWS_SHOWN && (n == 0 || is_worth_a_row(q, p, s)); n++, s = next_of(q, p, s)) say_row(a, q, p, s);
    answer_table_end(a);
    if (s) answer_say(a, "the %zu largest (--json has all)\n", n);
}

/* ---- lists for programs ---- */

static void put_frames(struct answer *a, const struct memory_site *s)
{
    static const char *const kinds[] = {
        [MEMORY_NATIVE] = "native", [MEMORY_PYTHON] = "python", [MEMORY_SCOPE] = "scope", [MEMORY_CUT] = "cut"};
    int n = 0;
    answer_list(a, "frames");
    for (const struct memory_frame_named *f = s->frame; f && n < MEMORY_FRAMES_MOST; f = f->caller, n++) {
        answer_object_flat(a, NULL);
        answer_str(a, "kind", kinds[f->kind], NULL);
        answer_str(a, "name", f->name, NULL);
        answer_str(a, "file", f->file, NULL);
        if (f->line)
            answer_uint(a, "line", f->line, NULL);
        else
            answer_null(a, "line", NULL);
        if (f->kind == MEMORY_NATIVE) answer_uint(a, f->file ? "offset" : "address", f->offset, NULL);
        answer_object_end(a);
    }
    answer_list_end(a);
}

static void put_growth(struct answer *a, const struct memory_site *s)
{
    if (!s->judged) {
        answer_null(a, "growth", NULL);
        return;
    }
    answer_object_flat(a, "growth");
    answer_str(a, "verdict", s->growth.verdict, NULL);
    answer_f64(a, "confidence", s->growth.confidence, NULL);
    answer_f64(a, "bytes_per_s", s->growth.rate, NULL);
    answer_f64(a, "lo", s->growth.lo, NULL);
    answer_f64(a, "hi", s->growth.hi, NULL);
    answer_object_end(a);
}

static void put_sites(struct answer *a, const struct memory_process *p)
{
    answer_list(a, "sites");
    for (const struct memory_site *s = p->sites; s < p->sites + p->n_sites; s++) {
        answer_object(a, NULL);
        put_bytes(a, "at_peak", s->at_peak);
        put_bytes(a, "at_end", s->at_end);
        put_bytes(a, "allocated", s->allocated);
        answer_f64(a, "allocations", s->allocations, NULL);
        put_bytes(a, "churn", s->churn);
        answer_f64(a, "churned", s->churned, NULL);
        put_growth(a, s);
        put_frames(a, s);
        answer_object_end(a);
        stream_poll(&a->stream);
    }
    answer_list_end(a);
}

static void put_times(struct answer *a, const struct memory_process *p)
{
    uint64_t below = 1000;
    answer_list(a, "lifetimes");
    for (size_t i = 0; i < MEMORY_LIFETIMES; i++, below *= 10) {
        answer_object_flat(a, NULL);
        if (i + 1 < MEMORY_LIFETIMES)
            answer_uint(a, "below_ns", below, NULL);
        else
            answer_null(a, "below_ns", NULL);
        answer_f64(a, "allocations", p->lifetimes[i], NULL);
        answer_object_end(a);
    }
    answer_list_end(a);
    answer_list(a, "held_over_time");
    for (size_t i = 0; i < MEMORY_MOMENTS; i++) answer_f64(a, NULL, p->moments[i], NULL);
    answer_list_end(a);
}

/* ---- modules ---- */

static void say_modules(struct answer *a, const struct memory_process *p)
{
    static const struct table_column columns[] = {
        {"at the peak", false}, {"at the end", false}, {"allocated", false}, {"module", true}};
    if (p->n_modules) say_heading(a, "by module of the innermost frame");
    answer_table(a, "modules", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < p->n_modules && (a->as_json || i < ROWS_SHOWN); i++) {
        const struct memory_module *m = &p->modules[i];
        answer_object(a, NULL);
        answer_str(a, "name", m->name, NULL);
        put_bytes(a, "at_peak", m->at_peak);
        put_bytes(a, "at_end", m->at_end);
        put_bytes(a, "allocated", m->allocated);
        add_bytes(answer_text(a), m->at_peak);
        add_bytes(answer_text(a), m->at_end);
        add_bytes(answer_text(a), m->allocated);
        text_name(answer_text(a), m->name, NAME_SHOWN);
        answer_object_end(a);
    }
    answer_table_end(a);
}

/* ---- processes ---- */

static void say_process(struct answer *a, const struct memory_process *p)
{
    char heading[60];
    snprintf(heading, sizeof heading, "memory of process %" PRIu32 "\n", p->pid);
    answer_section(a, NULL, heading);
    say_mode(a, p);
    say_sums(a, p);
    say_resident(a, p);
    say_lost(a, p);
    if (a->as_json) {
        put_times(a, p);
        put_sites(a, p);
    } else {
        say_table(a, &at_peak, p);
        say_table(a, &growing, p);
        say_table(a, &churned, p);
    }
    say_modules(a, p);
    answer_object_end(a);
    stream_poll(&a->stream);
}

/* A shell and its helpers are many processes that hold next to nothing: for people, one line for all of them. */
void memory_report(struct answer *a, const struct memory_profile *all)
{
    size_t shown = all->n;
    if (!a->as_json)
        while (shown > 1 && all->processes[shown - 1].peak.sum < all->processes[0].peak.sum * SMALL_PROCESS) shown--;
    answer_str(a, "schema", "tare.memory/1", NULL);
    answer_uint(a, "churn_within_ns", MEMORY_CHURN_NS, NULL);
    answer_list(a, "processes");
    for (size_t i = 0; i < shown; i++) say_process(a, &all->processes[i]);
    answer_list_end(a);
    if (shown == all->n) return;
    answer_say(a, "\n");
    fmt_counted(answer_text(a), all->n - shown, "process more", "processes more");
    answer_say(a, ", each below %s at its peak (--json has all)\n",
               show_bytes(all->processes[0].peak.sum * SMALL_PROCESS).s);
}
