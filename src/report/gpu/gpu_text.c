/* SPDX-License-Identifier: MIT
 * gpu_text.c - the GPU part of a report: how busy each GPU was and why it waited, then kernels, copies, calls and
 * ranges, and last what the record does not hold. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/fmt.h"
#include "report/finding_text.h"
#include "report/gpu/gpu_report.h"
#include "report/gpu/gpu_table.h"
#include "report/text.h"

static double number(struct known_u64 v)
{
    return v.known ? (double)v.v : NAN;
}

/* ---- one GPU ---- */

static struct shown percent(struct known_f64 v)
{
    return v.known ? show_percent(v.v) : (struct shown){"unknown"};
}

static void write_busy(struct stream *s, const struct gpu_card *d)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s of ", percent(d->busy).s);
    fmt_duration(&b, number(d->wall_ns));
    buf_add_str(&b, ": ");
    fmt_duration(&b, number(d->compute_ns));
    buf_add_str(&b, " computing, ");
    fmt_duration(&b, number(d->copy_ns));
    buf_add_str(&b, " copying, of which ");
    fmt_duration(&b, number(d->exposed_copy_ns));
    buf_add_str(&b, " beside no other work");
    text_line(s, "busy", &b);
    const char *why = run_reason(&d->unknown, "busy");
    if (!d->busy.known && why) {
        b = (struct buf)BUF_INIT;
        buf_add_str(&b, why);
        text_line(s, "unknown", &b);
    }
    if (d->unrecorded_ns.v) {
        b = (struct buf)BUF_INIT;
        fmt_duration(&b, number(d->unrecorded_ns));
        buf_add_str(&b, " of which it is not known whether it was busy: records are missing");
        text_line(s, "hole", &b);
    }
    if (!d->communication_ns.v) return;
    b = (struct buf)BUF_INIT;
    fmt_duration(&b, number(d->communication_ns));
    buf_add_str(&b, " communicating: ");
    fmt_duration(&b, number(d->exposed_communication_ns));
    buf_add_str(&b, " exposed, ");
    fmt_duration(&b, number(d->overlapped_communication_ns));
    buf_add_str(&b, " beside computing");
    text_line(s, "exposed", &b);
}

static void write_launches(struct stream *s, const struct gpu_card *d)
{
    struct buf b = BUF_INIT;
    if (!d->launch_ns.known) return;
    buf_printf(&b, "p50 %s, p95 %s from the call to the start; the call itself p50 %s",
               show_time((double)d->launch_ns.p50).s, show_time((double)d->launch_ns.p95).s,
               show_time((double)d->call_ns.p50).s);
    text_line(s, "launch", &b);
    b = (struct buf)BUF_INIT;
    buf_printf(
        &b, "p50 %" PRIu64 ", p95 %" PRIu64 ", at most %" PRIu64 " launched operations wait for their turn",
        d->queue.p50, d->queue.p95, d->queue.max);
    text_line(s, "queue", &b);
}

static void write_steps(struct stream *s, const struct gpu_steps *p)
{
    struct buf b = BUF_INIT;
    if (p->known) {
        fmt_count(&b, p->count);
        buf_add_str(&b,
                    strcmp(p->found_by, "range") == 0 ? " by the range " : " by the order of kernels, from ");
        text_name(&b, p->name ? p->name : "-", NAME_SHOWN);
        buf_printf(&b, ": p50 %s, p95 %s, ", show_time((double)p->step_ns.p50).s,
                   show_time((double)p->step_ns.p95).s);
        fmt_count(&b, p->operations);
        buf_printf(&b, " operations each, busy %s, the least busy %s", percent(p->busy).s,
                   percent(p->least_busy).s);
    } else {
        buf_add_str(&b, "none found: no range and no order of kernels repeats at least five times");
    }
    text_line(s, "steps", &b);
}

FILL(cause, gpu_idle, buf_add_str(b, r->cause))
FILL(idle_ns, gpu_idle, fmt_duration(b, (double)r->ns))
FILL(idle_share, gpu_idle, fmt_share(b, r->share.v))
FILL(gaps, gpu_idle, fmt_count(b, r->gaps))
FILL(longest, gpu_idle, fmt_duration(b, (double)r->longest_ns))
FILL(words, gpu_idle, buf_add_str(b, gpu_cause_words(r->cause)))

static bool same_words(const struct gpu_holder *a, const struct gpu_holder *b)
{
    return strcmp(a->call ? a->call : "", b->call ? b->call : "") == 0 &&
           strcmp(a->range ? a->range : "", b->range ? b->range : "") == 0;
}

/* Holders that differ by their thread alone (PyTorch's backward pass has its own) are told apart by it. */
static bool needs_thread(const struct gpu_card *d, size_t at, size_t shown)
{
    const struct gpu_holder *h = d->memory_holders.at[at];
    for (size_t i = 0; i < d->memory_holders.n && i < shown; i++)
        if (i != at && same_words(h, d->memory_holders.at[i])) return h->thread.known;
    return false;
}

/* The peak, and the three who had taken most of it. */
static void write_memory(struct stream *s, const struct gpu_card *d)
{
    enum { SHOWN = 3 };
    struct buf b = BUF_INIT;
    if (!d->memory_peak_bytes.known) return;
    fmt_bytes(&b, (double)d->memory_peak_bytes.v);
    buf_add_str(&b, " from the driver at the most");
    for (size_t i = 0; i < d->memory_holders.n && i < SHOWN; i++) {
        const struct gpu_holder *h = d->memory_holders.at[i];
        buf_add_str(&b, i ? ", " : ": ");
        fmt_bytes(&b, (double)h->bytes);
        buf_add_str(&b, " by ");
        text_name(&b, h->call ? h->call : "a call that was not recorded", NAME_SHOWN);
        if (h->range) {
            buf_add_str(&b, " in ");
            text_name(&b, h->range, NAME_SHOWN);
        }
        if (needs_thread(d, i, SHOWN)) buf_printf(&b, " in thread %" PRIu64, h->thread.v);
        if (h->step.known) buf_printf(&b, ", step %" PRIu64, h->step.v);
    }
    text_line(s, "memory", &b);
}

/* Measured by the card where it can; what launch shapes and names suggest is said to be an estimate. */
static void write_activity(struct stream *s, const struct gpu_card *d)
{
    const struct gpu_activity *a = &d->activity;
    struct buf b = BUF_INIT;
    if (a->known && a->samples.known) {
        buf_printf(
            &b, "multiprocessors active %s, warp slots in use %s, tensor cores %s, memory bandwidth %s (",
            percent(a->sm_active).s, percent(a->sm_occupancy).s, percent(a->tensor).s, percent(a->dram).s);
        fmt_counted(&b, a->samples.v, "sample", "samples");
        buf_add_str(&b, " of the card)");
        text_line(s, "activity", &b);
        b = (struct buf)BUF_INIT;
    }
    if (!d->sm_fill.known && !d->tensor_share.known) return;
    buf_printf(
        &b,
        "estimated: multiprocessors filled %s and occupancy %s by launch shapes, on tensor cores %s by names",
        percent(d->sm_fill).s, percent(d->occupancy).s, percent(d->tensor_share).s);
    text_line(s, "kernels", &b);
}

static void write_energy(struct stream *s, const struct gpu_energy *e)
{
    struct buf b = BUF_INIT;
    if (!e->known || (!e->joules.known && !e->window_ns.known)) return;
    if (e->joules.known) {
        if (e->per_step.known) {
            buf_printf(&b, "%s J a step (%s to %s)", show_number(e->per_step.v).s,
                       show_number(e->per_step_lo.v).s, show_number(e->per_step_hi.v).s);
            buf_add_str(&b, ", ");
        }
        buf_printf(&b, "%s J in %s", show_number(e->joules.v).s, show_time((double)e->window_ns.v).s);
        if (e->updates.known) buf_printf(&b, ", %" PRIu64 " readings", e->updates.v);
        if (e->idle_share.known) buf_printf(&b, "; %s of it while nothing ran", percent(e->idle_share).s);
        if (e->shared.known && e->shared.v) buf_add_str(&b, "; shared: other processes were on the GPU");
    } else {
        buf_printf(&b, "unknown: %s", e->why ? e->why : "-");
    }
    text_line(s, "energy", &b);
}

/* "312 (290 to 335)" */
static void fill_estimate(struct buf *b, const struct run_estimate *e)
{
    if (!e->known) {
        buf_add_str(b, "unknown");
        return;
    }
    buf_printf(b, "%s (%s to %s)", show_number(e->value).s, show_number(e->lo.v).s, show_number(e->hi.v).s);
}

FILL(energy_group, gpu_energy_group, buf_add_str(b, r->group))
FILL(energy_time, gpu_energy_group, fmt_duration(b, (double)r->time_ns))
FILL(energy_watts, gpu_energy_group, fill_estimate(b, &r->watts))
FILL(energy_joules, gpu_energy_group, fill_estimate(b, &r->joules))
FILL(energy_why, gpu_energy_group, buf_add_str(b, r->why ? r->why : ""))

static void write_energy_groups(struct stream *s, const struct gpu_energy *e)
{
    static const struct table_fill columns[] = {{"energy while", true, fill_energy_group},
                                                {"time", false, fill_energy_time},
                                                {"W (95 %)", false, fill_energy_watts},
                                                {"J (95 %)", false, fill_energy_joules},
                                                {"", true, fill_energy_why}};
    if (e->groups.n) PRINT_TABLE(s, e->groups, columns);
}

static void write_card(struct stream *s, const struct gpu_card *d)
{
    static const struct table_fill columns[] = {
        {"idle", true, fill_cause}, {"time", false, fill_idle_ns},    {"share", false, fill_idle_share},
        {"gaps", false, fill_gaps}, {"longest", false, fill_longest}, {"because", true, fill_words}};
    struct buf b = BUF_INIT;
    buf_printf(&b, "gpu %" PRIu64, d->number);
    if (d->rank.known) buf_printf(&b, " of rank %" PRIu64, d->rank.v);
    if (d->name) {
        buf_add_str(&b, ": ");
        text_plain(&b, d->name, strlen(d->name));
    }
    text_heading(s, b.data);
    buf_release(&b);
    write_busy(s, d);
    write_launches(s, d);
    write_steps(s, &d->steps);
    write_memory(s, d);
    write_activity(s, d);
    write_energy(s, &d->energy);
    PRINT_TABLE(s, d->idle, columns);
    write_energy_groups(s, &d->energy);
}

/* ---- kernels and what is beside them ---- */

FILL(kernel, gpu_kernel, text_name(b, r->name, NAME_SHOWN))
FILL(kernel_group, gpu_kernel, buf_add_str(b, r->group))
FILL(kernel_count, gpu_kernel, fmt_count(b, r->count))
FILL(kernel_total, gpu_kernel, fmt_duration(b, (double)r->total_ns))
FILL(kernel_share, gpu_kernel, fmt_share(b, r->share.v))
FILL(kernel_mean, gpu_kernel, fmt_duration(b, (double)r->total_ns / (double)r->count))
FILL(kernel_p50, gpu_kernel, if (r->p50_ns.known) fmt_duration(b, (double)r->p50_ns.v))
FILL(kernel_p95, gpu_kernel, if (r->p95_ns.known) fmt_duration(b, (double)r->p95_ns.v))
FILL(kernel_max, gpu_kernel, fmt_duration(b, (double)r->max_ns))
FILL(blocks, gpu_kernel, if (r->blocks) buf_printf(b, "%" PRIu64 " x %" PRIu64, r->blocks, r->threads))

static void fill_copy(struct buf *b, const void *row)
{
    const struct gpu_copy *c = row;
    buf_printf(b, "%s%s%s", c->direction, c->host_memory ? ", " : "", c->host_memory ? c->host_memory : "");
}
FILL(copy_count, gpu_copy, fmt_count(b, r->count))
FILL(copy_bytes, gpu_copy, fmt_bytes(b, (double)r->bytes))
FILL(copy_total, gpu_copy, fmt_duration(b, (double)r->total_ns))
FILL(bandwidth, gpu_copy, if (r->bandwidth.known) fmt_si(b, r->bandwidth.v, "B/s"))

FILL(call, gpu_call, text_name(b, r->name, NAME_SHOWN))
FILL(call_count, gpu_call, fmt_count(b, r->count))
FILL(call_total, gpu_call, fmt_duration(b, (double)r->total_ns))
FILL(call_mean, gpu_call, fmt_duration(b, (double)r->total_ns / (double)r->count))
FILL(call_max, gpu_call, fmt_duration(b, (double)r->max_ns))

static void fill_range(struct buf *b, const void *row)
{
    const struct gpu_range *r = row;
    if (r->domain) {
        text_name(b, r->domain, NAME_SHOWN);
        buf_add_str(b, ": ");
    }
    text_name(b, r->name, NAME_SHOWN);
}
FILL(range_count, gpu_range, fmt_count(b, r->count))
static void fill_range_host(struct buf *b, const void *row)
{
    const struct gpu_range *r = row;
    if (r->open < r->count) fmt_duration(b, (double)r->total_ns);
    if (r->open) buf_printf(b, "%s%" PRIu64 " without end", r->open < r->count ? ", " : "", r->open);
}
FILL(range_gpu, gpu_range, fmt_duration(b, (double)r->gpu_ns))
FILL(range_ops, gpu_range, fmt_count(b, r->operations))

FILL(origin_module, gpu_origin, text_name(b, r->module ? r->module : "-", NAME_SHOWN))
FILL(origin_phase, gpu_origin, buf_add_str(b, r->phase ? r->phase : ""))
FILL(origin_operator, gpu_origin, text_name(b, r->op ? r->op : "-", NAME_SHOWN))
FILL(origin_kernel, gpu_origin, text_name(b, r->kernel, NAME_SHOWN))
FILL(origin_count, gpu_origin, fmt_count(b, r->count))
FILL(origin_total, gpu_origin, fmt_duration(b, (double)r->total_ns))
FILL(origin_share, gpu_origin, fmt_share(b, r->share.v))

static void fill_thread(struct buf *b, const void *row)
{
    const struct gpu_thread *r = row;
    if (!r->thread.known) buf_add_str(b, "unknown: not recorded");
    if (r->thread.known) buf_printf(b, "%" PRIu64 " ", r->thread.v);
    if (r->name) text_name(b, r->name, NAME_SHOWN);
}
FILL(thread_ops, gpu_thread, fmt_count(b, r->operations))
FILL(thread_gpu, gpu_thread, fmt_duration(b, (double)r->gpu_ns))
FILL(thread_in_range, gpu_thread,
     if (r->in_range.known) fmt_share(b, (double)r->in_range.v / (double)r->operations))

/* Of a program with ranges: what they do not hold is seen by thread, for a thread's ranges hold only what it launches
 * itself. */
static void write_threads(struct stream *s, const struct gpu_profile *p)
{
    static const struct table_fill columns[] = {{"launched by thread", true, fill_thread},
                                                {"operations", false, fill_thread_ops},
                                                {"on the gpu", false, fill_thread_gpu},
                                                {"in a range", false, fill_thread_in_range}};
    uint64_t inside = 0, without = 0;
    for (size_t i = 0; i < p->threads.n; i++) {
        const struct gpu_thread *t = p->threads.at[i];
        inside += t->in_range.v;
        if (t->thread.known && t->in_range.known && !t->in_range.v) without++;
    }
    if (!p->ranges.n && p->threads.n < 2) return;
    PRINT_TABLE(s, p->threads, columns);
    if (!inside || !without) return;
    struct buf b = BUF_INIT;
    buf_add_str(&b, "a range holds what its own thread launches: the backward pass of PyTorch runs on another");
    text_note(s, &b);
}

/* ---- what is missing ---- */

/* Only what was lost is told. Each row says for itself what is missing in the tables above, or how far clocks were
 * apart. */
static void write_lost(struct stream *s, const struct gpu_profile *p)
{
    const struct {
        uint64_t n;
        const char *words;
    } rows[] = {
        {p->lost.dropped, "records that CUPTI had no room for"},
        {p->lost.untimed, "records without times"},
        {p->lost.unread, "buffers that could not be read to their end"},
        {p->lost.unwritten, "records that could not be written"},
        {p->lost.ranges, "ranges for which no room was left"},
        {p->lost.holes, "times another tool had CUPTI's buffers and nothing was recorded"},
        {p->lost.graphs, "launches of CUDA graphs of which nothing was recorded"},
        {p->lost.before_launch, "operations that seem to start before their call: clocks differ a little"},
        {p->lost.rows, "rows with the least time are not listed: a list has 65,536"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].n) continue;
        struct buf b = BUF_INIT;
        fmt_count(&b, rows[i].n);
        buf_printf(&b, " %s", rows[i].words);
        text_line(s, "lost", &b);
    }
    for (size_t i = 0; i < p->notes.n; i++) {
        struct buf b = BUF_INIT;
        buf_printf(&b, "process %" PRIu64 ": ", p->notes.at[i]->pid);
        text_plain(&b, p->notes.at[i]->text, strlen(p->notes.at[i]->text));
        text_line(s, "note", &b);
    }
}

/* What recording cost, and what the driver loaded meanwhile. */
static void write_self(struct stream *s, const struct gpu_self *self)
{
    for (size_t i = 0; i < self->overheads.n; i++) {
        const struct gpu_overheads *o = self->overheads.at[i];
        struct buf b = BUF_INIT;
        fmt_duration(&b, (double)o->total_ns);
        buf_printf(&b, ", %s on threads of the program, in ", show_time((double)o->program_ns).s);
        fmt_counted(&b, o->count, "time", "times");
        buf_printf(&b, ": %s", o->words);
        text_line(s, i ? "" : "self", &b);
    }
}

void gpu_report_text(struct stream *s, const struct gpu_profile *p)
{
    static const struct table_fill kernels[] = {
        {"kernel", true, fill_kernel},       {"group", true, fill_kernel_group}, {"runs", false, fill_kernel_count},
        {"total", false, fill_kernel_total}, {"share", false, fill_kernel_share}, {"mean", false, fill_kernel_mean},
        {"p50", false, fill_kernel_p50},     {"p95", false, fill_kernel_p95},
        {"max", false, fill_kernel_max},     {"blocks x threads", false, fill_blocks}};
    static const struct table_fill copies[] = {{"copy", true, fill_copy}, {"count", false, fill_copy_count},
                                               {"bytes", false, fill_copy_bytes}, {"total", false, fill_copy_total},
                                               {"while it ran", false, fill_bandwidth}};
    static const struct table_fill calls[] = {{"call", true, fill_call}, {"count", false, fill_call_count},
                                              {"total", false, fill_call_total}, {"mean", false, fill_call_mean},
                                              {"max", false, fill_call_max}};
    static const struct table_fill ranges[] = {{"range", true, fill_range}, {"count", false, fill_range_count},
                                               {"on the host", false, fill_range_host},
                                               {"on the gpu", false, fill_range_gpu},
                                               {"operations", false, fill_range_ops}};
    static const struct table_fill origins[] = {
        {"module", true, fill_origin_module},   {"", true, fill_origin_phase},
        {"operator", true, fill_origin_operator}, {"kernel", true, fill_origin_kernel},
        {"runs", false, fill_origin_count},     {"total", false, fill_origin_total},
        {"share", false, fill_origin_share}};
    if (p->job.known) gpu_job_text(s, &p->job);
    for (size_t i = 0; i < p->devices.n; i++) write_card(s, p->devices.at[i]);
    if (p->findings.n) text_heading(s, "findings");
    for (size_t i = 0; i < p->findings.n; i++) text_finding(s, p->findings.at[i], p->devices.n > 1);
    if (!p->devices.n) text_heading(s, "gpu: no operation was recorded");
    if (p->kernels.n) PRINT_TABLE(s, p->kernels, kernels);
    if (p->copies.n) PRINT_TABLE(s, p->copies, copies);
    if (p->calls.n) PRINT_TABLE(s, p->calls, calls);
    if (p->ranges.n) PRINT_TABLE(s, p->ranges, ranges);
    write_threads(s, p);
    if (p->origins.n) PRINT_TABLE(s, p->origins, origins);
    write_self(s, &p->self);
    write_lost(s, p);
}
