/* SPDX-License-Identifier: MIT
 * memory_report.c - see memory_report.h. Sums are said once, for both; sites are tables by question for people, and one
 * list for programs. */
#include "report/memory/memory_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/memory/memory_resident.h"
#include "analyze/memory/memory_rules.h"
#include "core/fmt.h"
#include "report/finding_text.h"
#include "report/memory/memory_tables.h"
#include "report/memory/memory_words.h"
#include "report/text.h"

#define SMALL_PROCESS 0.02 /* of the peak of the largest */

/* ---- words ---- */

static void line(struct answer *a, const char *name, struct buf *words)
{
    if (a->as_json)
        buf_release(words);
    else
        text_line(&a->stream, name, words);
}

static void add_count(struct buf *b, double n, const char *one, const char *many)
{
    fmt_counted(b, memory_whole(n), one, many);
}

/* ---- the head ---- */

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
        buf_printf(&b, "one allocation in each %s, on average: sums are estimates, with their 95 %% interval",
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
    memory_put_bytes(a, "peak", p->peak);
    memory_add_bytes(&b, p->peak);
    buf_printf(&b, ", %s after the first record", show_time((double)(p->peak_ns - p->from_ns)).s);
    line(a, "peak", &b);
    memory_put_bytes(a, "at_end", p->at_end);
    b = (struct buf)BUF_INIT;
    memory_add_bytes(&b, p->at_end);
    line(a, "at the end", &b);
    answer_f64(a, "allocations", p->allocations, NULL);
    memory_put_bytes(a, "allocated", p->allocated);
    b = (struct buf)BUF_INIT;
    memory_add_bytes(&b, p->allocated);
    buf_add_str(&b, " in ");
    add_count(&b, p->allocations, "allocation", "allocations");
    line(a, "allocated", &b);
    answer_f64(a, "churned", p->churned, NULL);
    memory_put_bytes(a, "churn", p->churn);
    b = (struct buf)BUF_INIT;
    memory_add_bytes(&b, p->churn);
    buf_add_str(&b, " in ");
    add_count(&b, p->churned, "allocation", "allocations");
    buf_printf(&b, " freed within %s", show_time((double)MEMORY_CHURN_NS).s);
    line(a, "churn", &b);
}

/* What was read too long before or after the peak says nothing of it. */
static bool is_near_peak(const struct memory_process *p, uint64_t *apart, const char **when)
{
    bool before = p->heap.at_ns < p->peak_ns;
    *apart = before ? p->peak_ns - p->heap.at_ns : p->heap.at_ns - p->peak_ns;
    *when = before ? "before" : "after";
    return p->heap.known && *apart <= (p->to_ns - p->from_ns) / 10;
}

static void say_resident(struct answer *a, const struct memory_process *p)
{
    struct buf b = BUF_INIT;
    uint64_t apart;
    const char *when;
    if (is_near_peak(p, &apart, &when)) {
        answer_uint(a, "resident_bytes", p->heap.resident, NULL);
        fmt_bytes(&b, (double)p->heap.resident);
        buf_printf(&b, " as the kernel counts it, read %s %s the peak", show_time((double)apart).s, when);
    } else {
        answer_null(a, "resident_bytes", NULL);
        buf_add_str(&b, "unknown at the peak: ");
        if (p->heap.known)
            buf_printf(&b, "it was read %s %s it", show_time((double)apart).s, when);
        else
            buf_add_str(&b, "it was never read");
    }
    line(a, "resident", &b);
}

/* ---- resident memory explained ---- */

static const struct {
    const char *key, *title, *meaning;
} parts[] = {
#define X(name, title, meaning) {#name, title, meaning},
    MEMORY_PART_MAP(X)
#undef X
};

static void say_parts(struct answer *a, const struct memory_process *p)
{
    static const struct table_column columns[] = {
        {"bytes", false}, {"share", false}, {"resident memory", true}};
    struct memory_resident r = memory_resident(&p->heap);
    if (!r.known) {
        answer_null(a, "resident_parts", NULL);
        return;
    }
    uint64_t apart;
    const char *when;
    is_near_peak(p, &apart, &when);
    answer_say(a, "\n%sresident memory explained%s, as it was %s %s the peak\n", a->stream.style.bold,
               a->stream.style.plain, show_time((double)apart).s, when);
    answer_table(a, "resident_parts", columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < MEMORY_PARTS; i++) {
        if (r.part[i] == 0) continue;
        answer_object_flat(a, NULL);
        answer_str(a, "part", parts[i].title, NULL);
        answer_f64(a, "bytes", r.part[i], NULL);
        fmt_bytes(answer_text(a), r.part[i]);
        answer_say(a, "%s", isnan(r.part[i]) ? "-" : show_percent(r.part[i] / r.resident).s);
        answer_say(a, "%s: %s", parts[i].title, parts[i].meaning);
        answer_object_end(a);
    }
    answer_object_flat(a, NULL);
    answer_str(a, "part", "resident", NULL);
    answer_f64(a, "bytes", r.resident, NULL);
    fmt_bytes(answer_text(a), r.resident);
    answer_say(a, "100 %%");
    answer_say(a, "resident: as the kernel counts it");
    answer_object_end(a);
    answer_table_end(a);
    if (!r.malloc_told)
        answer_say(a, "malloc of this program does not tell what it holds: its row is from the record\n");
}

/* ---- lifetimes ---- */

static void say_lifetimes(struct answer *a, const struct memory_process *p)
{
    static const struct table_column columns[] = {
        {"freed within", false}, {"allocations", false}, {"share", false}, {"", true}};
    double all = 0, below = 1000;
    for (size_t i = 0; i < MEMORY_LIFETIMES; i++) all += p->lifetimes[i];
    if (!(all > 0)) return;
    memory_say_heading(a, "how long freed blocks lived");
    answer_table(a, NULL, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < MEMORY_LIFETIMES; i++, below *= 10) {
        double share = p->lifetimes[i] / all;
        if (share == 0) continue;
        answer_say(a, "%s", i + 1 < MEMORY_LIFETIMES ? show_time(below).s : "longer");
        fmt_count(answer_text(a), memory_whole(p->lifetimes[i]));
        fmt_share(answer_text(a), share);
        struct buf *bar = answer_text(a);
        for (int k = 0; k < (int)ceil(share * 30); k++) buf_add_char(bar, '#');
    }
    answer_table_end(a);
}

/* ---- findings ---- */

static void put_finding(struct answer *a, const struct run_finding *f)
{
    answer_object(a, NULL);
    answer_str(a, "id", f->id, NULL);
    answer_str(a, "severity", f->severity, NULL);
    answer_str(a, "title", f->title, NULL);
    answer_str(a, "action", f->action, NULL);
    answer_object(a, "evidence");
    for (size_t i = 0; i < f->evidence.n; i++) {
        const struct run_value *v = &f->evidence.at[i].value;
        if (v->kind == RUN_TEXT) answer_str(a, f->evidence.at[i].key, v->s, NULL);
        if (v->kind == RUN_INT) answer_int(a, f->evidence.at[i].key, v->i, NULL);
        if (v->kind == RUN_REAL) answer_f64(a, f->evidence.at[i].key, v->d, NULL);
    }
    answer_object_end(a);
    answer_object_end(a);
}

static void say_findings(struct answer *a, const struct memory_findings *all)
{
    if (all->n) memory_say_heading(a, "findings");
    answer_list(a, "findings");
    for (size_t i = 0; i < all->n; i++) {
        if (a->as_json)
            put_finding(a, &all->all[i]);
        else
            text_finding(&a->stream, &all->all[i], false);
    }
    answer_list_end(a);
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

/* ---- processes ---- */

static void say_end(struct answer *a, const struct memory_process *p, const struct memory_report_options *o)
{
    answer_bool(a, "ended", p->closed, NULL);
    if (p->closed) return;
    struct buf b = BUF_INIT;
    buf_add_str(&b, "it was killed, still ran when this was read, or its disk was full and the record ends there");
    if (o->oom_kills)
        buf_add_str(&b, "; the kernel killed a process of its group for want of memory while it was watched");
    line(a, "ended", &b);
}

static tare_status say_process(struct answer *a, const struct memory_process *p, struct arena *arena,
                               const struct memory_report_options *o)
{
    char heading[60];
    struct memory_groups lines, groups;
    struct memory_findings found;
    tare_status s = memory_group(p, MEMORY_BY_LINE, arena, &lines, a->stream.err);
    if (s == TARE_OK) s = memory_group(p, o->by, arena, &groups, a->stream.err);
    if (s == TARE_OK) s = memory_find(p, &lines, arena, &found, a->stream.err);
    if (s != TARE_OK) return s;
    snprintf(heading, sizeof heading, "memory of process %" PRIu32 "\n", p->pid);
    answer_section(a, NULL, heading);
    say_mode(a, p);
    say_end(a, p, o);
    say_sums(a, p);
    say_resident(a, p);
    say_lost(a, p);
    say_findings(a, &found);
    if (a->as_json) {
        memory_put_times(a, p);
        memory_put_groups(a, &groups);
        if (!o->no_sites) memory_put_sites(a, p);
    } else {
        memory_say_tables(a, p, &groups);
        say_lifetimes(a, p);
    }
    say_parts(a, p);
    answer_object_end(a);
    return stream_poll(&a->stream);
}

/* A shell and its helpers are many processes that hold next to nothing: for people, one line for all of them. */
tare_status memory_report(struct answer *a, struct memory_profile *all, const struct memory_report_options *o)
{
    size_t shown = all->n;
    tare_status s = TARE_OK;
    if (!a->as_json)
        while (shown > 1 && all->processes[shown - 1].peak.sum < all->processes[0].peak.sum * SMALL_PROCESS)
            shown--;
    answer_str(a, "schema", "tare.memory/1", NULL);
    answer_uint(a, "churn_within_ns", MEMORY_CHURN_NS, NULL);
    answer_list(a, "processes");
    for (size_t i = 0; i < shown && s == TARE_OK; i++) s = say_process(a, &all->processes[i], &all->arena, o);
    answer_list_end(a);
    if (s != TARE_OK || shown == all->n) return s;
    answer_say(a, "\n");
    fmt_counted(answer_text(a), all->n - shown, "process more", "processes more");
    answer_say(a, ", each below %s at its peak (--json has all)\n",
               show_bytes(all->processes[0].peak.sum * SMALL_PROCESS).s);
    return s;
}
