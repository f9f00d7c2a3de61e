/* SPDX-License-Identifier: MIT
 * stacks_report.c - see stacks_report.h. */
#include "report/stacks/stacks_report.h"

#include <inttypes.h>
#include <math.h>

#include "core/fmt.h"
#include "report/stacks/stacks_export.h"

enum { ROWS_SHOWN = 30 };

/* ---- how it was sampled ---- */

/* What --consistent cost the program. */
static void say_held(struct answer *a, const struct stacks_profile *p)
{
    const struct memory_record *r = &p->held;
    if (!r->kind) {
        answer_null(a, "held", NULL);
        return;
    }
    double total = (double)r->HELD.total, share = p->cpu_ns > 0 ? total / p->cpu_ns : NAN;
    answer_object(a, "held");
    answer_uint(a, "threads", r->HELD.threads,
                "held       %" PRIu64 " threads stood still while they were read, ", r->HELD.threads);
    answer_uint(a, "refused", r->HELD.refused, "%" PRIu64 " would not; ", r->HELD.refused);
    answer_f64(a, "total_ns", total, "%s in all", show_time(total).s);
    answer_f64(a, "longest_ns", (double)r->HELD.longest, ", %s at most",
               show_time((double)r->HELD.longest).s);
    answer_f64(a, "cpu_share", share, ": %s of the processor time of the program\n", show_percent(share).s);
    answer_object_end(a);
}

/* How far native stacks came, and why no further. */
static void say_ends(struct answer *a, const struct stacks_profile *p)
{
    const struct memory_record *r = &p->ends;
    if (!r->kind) {
        answer_null(a, "native", NULL);
        return;
    }
    const struct {
        const char *key, *text;
        uint64_t n;
    } why[] = {{"no_tables", "code without unwind tables", r->NATIVE_ENDS.no_tables},
               {"no_register", "registers of a waiting thread not known", r->NATIVE_ENDS.no_register},
               {"no_memory", "stack not readable", r->NATIVE_ENDS.no_memory},
               {"nonsense", "tables that make no sense", r->NATIVE_ENDS.nonsense},
               {"deep", "too deep", r->NATIVE_ENDS.deep}};
    uint64_t n = r->NATIVE_ENDS.stacks;
    double whole = n ? (double)r->NATIVE_ENDS.whole / (double)n : NAN;
    answer_object(a, "native");
    answer_uint(a, "stacks", n, "native     %" PRIu64 " stacks, ", n);
    answer_f64(a, "whole_share", whole, "%s whole", show_percent(whole).s);
    for (size_t i = 0; i < sizeof why / sizeof *why; i++)
        answer_uint(a, why[i].key, why[i].n, why[i].n ? "; %s: %" PRIu64 : NULL, why[i].text, why[i].n);
    answer_uint(a, "unread", r->NATIVE_ENDS.unread, "; not read: %" PRIu64, r->NATIVE_ENDS.unread);
    answer_uint(a, "uneven", r->NATIVE_ENDS.uneven, "; joined with Python by guess: %" PRIu64 "\n",
                r->NATIVE_ENDS.uneven);
    answer_object_end(a);
}

static void say_rate(struct answer *a, const struct stacks_profile *p)
{
    const struct memory_record *r = &p->rate;
    if (!r->kind) {
        answer_null(a, "rate",
                    "how it was sampled is not in the trace: whoever sampled was killed at once\n");
        say_held(a, p);
        say_ends(a, p);
        return;
    }
    double seconds = (double)r->RATE.wall / 1e9, got = seconds > 0 ? (double)r->RATE.rounds / seconds : NAN;
    double samples = (double)r->RATE.samples, moved = samples > 0 ? (double)r->RATE.moved / samples : NAN;
    double broken = samples > 0 ? (double)r->RATE.broken / samples : NAN;
    double cost = r->RATE.wall ? (double)r->RATE.cost / (double)r->RATE.wall : NAN;
    double each = samples > 0 ? (double)r->RATE.cost / samples : NAN;
    answer_object(a, "rate");
    answer_f64(a, "asked_hz", (double)r->RATE.hz / 1000, "rate       %s asked, ",
               show_rate((double)r->RATE.hz / 1000, NULL).s);
    bool held_back = got < 0.8 * (double)r->RATE.hz / 1000 && r->RATE.late < r->RATE.rounds / 2;
    answer_f64(a, "achieved_hz", got, "%s achieved%s", show_rate(got, NULL).s,
               held_back ? ": more would take more of a processor than the budget" : "");
    answer_uint(a, "late", r->RATE.late, "; rounds missed: %" PRIu64 "\n", r->RATE.late);
    answer_uint(a, "stacks_read", r->RATE.samples, "read       %" PRIu64 " stacks; ", r->RATE.samples);
    answer_f64(a, "moved_share", moved, "%s moved under the read and may be wrong, ", show_percent(moved).s);
    answer_f64(a, "broken_share", broken, "%s broken\n", show_percent(broken).s);
    answer_f64(a, "cost_share", cost, "cost       %s of a processor", show_percent(cost).s);
    answer_f64(a, "ns_per_stack", each, ", %s a stack%s\n", show_time(each).s,
               p->held.kind ? "" : ", none of it in the program");
    answer_object_end(a);
    say_held(a, p);
    say_ends(a, p);
}

static void say_waits(struct answer *a, const struct stacks_profile *p)
{
    static const char *const names[] = {
#define X(name, text) text,
        STACK_DOING_MAP(X)
#undef X
    };
    answer_object_flat(a, "state_ns");
    answer_say(a, "threads    ");
    bool any = false;
    for (unsigned i = 0; i < STACK_DOINGS; i++) {
        if (!(p->waits_ns[i] > 0)) continue;
        answer_f64(a, names[i], p->waits_ns[i], "%s%s %s", any ? ", " : "", names[i],
                   show_percent(p->waits_ns[i] / p->wall_ns).s);
        any = true;
    }
    answer_say(a, any ? " of their time\n" : "none was looked at twice\n");
    answer_object_end(a);
}

/* ---- functions ---- */

static void say_interval(struct answer *a, const char *key, struct interval i, const char *text)
{
    answer_object_flat(a, key);
    answer_f64(a, "share", i.value, "%s", text);
    answer_f64(a, "lo", i.lo, NULL);
    answer_f64(a, "hi", i.hi, NULL);
    answer_object_end(a);
}

static void put_share(struct buf *b, struct interval i)
{
    fmt_share(b, i.value);
    buf_printf(b, " +/- %.1f", interval_half(i) * 100);
}

static void say_function(struct answer *a, const struct stacks_function *f)
{
    struct buf own = BUF_INIT, total = BUF_INIT;
    put_share(&own, f->own);
    put_share(&total, f->total);
    answer_object(a, NULL);
    say_interval(a, "own", f->own, own.data);
    answer_f64(a, "own_ns", f->own_ns, NULL);
    say_interval(a, "total", f->total, total.data);
    answer_f64(a, "total_ns", f->total_ns, NULL);
    answer_str(a, "name", f->name, "%s", f->name);
    answer_bool(a, "native", f->native, NULL);
    if (f->line) {
        answer_str(a, "file", f->file, "%s:%" PRIu64, f->file, f->line);
        answer_uint(a, "line", f->line, NULL);
    } else {
        answer_str(a, "file", f->file, "%s", f->file);
        answer_null(a, "line", NULL);
    }
    answer_object_end(a);
    buf_release(&own);
    buf_release(&total);
}

void stacks_report(struct answer *a, const struct stacks_profile *p, const struct stacks_wish *wish)
{
    static const struct table_column columns[] = {
        {"own", false}, {"total", false}, {"function", true}, {"file", true}};
    answer_str(a, "schema", "tare.stacks/1", NULL);
    answer_str(a, "time", stacks_time_words[wish->time], NULL);
    answer_uint(a, "processes", p->processes, "%" PRIu64 " process%s, ", p->processes,
                p->processes == 1 ? "" : "es");
    answer_uint(a, "threads", p->threads, "%s, ", show_count((double)p->threads, "thread").s);
    answer_f64(a, "wall_ns", p->wall_ns, "%s in all, ", show_time(p->wall_ns).s);
    answer_f64(a, "cpu_ns", p->cpu_ns, "%s of it on processors\n", show_time(p->cpu_ns).s);
    say_rate(a, p);
    say_waits(a, p);
    answer_f64(a, "sum_ns", p->sum_ns, "\n%s time: %s", stacks_time_words[wish->time], show_time(p->sum_ns).s);
    bool apart = p->ends.kind && !wish->no_native;
    answer_f64(a, "independent_samples", p->n_eff, ", worth %.0f independent samples; ", p->n_eff);
    if (apart)
        answer_f64(a, "native_ns", p->native_ns, "%s of it in native code\n\n",
                   show_percent(p->sum_ns > 0 ? p->native_ns / p->sum_ns : 0).s);
    else
        answer_null(a, "native_ns", "native code is part of the function that called it\n\n");
    size_t shown = a->as_json || p->n < ROWS_SHOWN ? p->n : ROWS_SHOWN;
    answer_table(a, "functions", columns, 4);
    for (size_t i = 0; i < shown; i++) say_function(a, &p->functions[i]);
    answer_table_end(a);
    if (shown < p->n) answer_say(a, "\nand %zu more: --json has all of them\n", p->n - shown);
}

/* ---- for the page ---- */

static void put_frames(struct json *j, const struct stacks_profile *p)
{
    json_key(j, "frames");
    json_object_begin(j);
    json_key(j, "name");
    json_array_begin_flat(j);
    for (size_t i = 0; i < p->n; i++) json_put_string(j, p->functions[i].name);
    json_array_end(j);
    json_key(j, "file");
    json_array_begin_flat(j);
    for (size_t i = 0; i < p->n; i++) json_put_string(j, p->functions[i].file);
    json_array_end(j);
    json_key(j, "line");
    json_array_begin_flat(j);
    for (size_t i = 0; i < p->n; i++) {
        if (p->functions[i].line)
            json_put_uint(j, p->functions[i].line);
        else
            json_put_null(j);
    }
    json_array_end(j);
    json_object_end(j);
}

static void put_column(struct json *j, const struct stacks_profile *p, const char *key)
{
    json_key(j, key);
    json_array_begin_flat(j);
    for (size_t i = 1; i < p->n_nodes; i++) {
        const struct stacks_node *n = &p->nodes[i];
        if (key[0] == 'p')
            json_put_int(j, (int64_t)n->parent - 1);
        else if (key[0] == 'f')
            json_put_uint(j, n->function);
        else
            json_put_double(j, round(key[0] == 's' ? n->own_ns : n->total_ns));
    }
    json_array_end(j);
}

tare_status stacks_profile_json(struct buf *out, const struct stacks_profile *p, const char *name,
                                tare_error *err)
{
    struct json j;
    json_init(&j, out, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "schema", "tare.profile/1");
    json_kv_string(&j, "name", name);
    json_kv_string(&j, "unit", "ns");
    json_key(&j, "notes");
    json_array_begin(&j);
    json_put_string(&j, p->ends.kind ? "Sampled from outside: widths are estimates."
                                     : "Sampled from outside: widths are estimates. Native code belongs to "
                                       "the function that called it.");
    json_array_end(&j);
    put_frames(&j, p);
    json_key(&j, "nodes");
    json_object_begin(&j);
    static const char *const columns[] = {"parent", "frame", "self", "total"};
    for (unsigned i = 0; i < 4; i++) put_column(&j, p, columns[i]);
    json_object_end(&j);
    json_object_end(&j);
    return json_finish(&j, err);
}
