/* SPDX-License-Identifier: MIT
 * gpu_job_text.c - the ranks of a job, one row each: their steps, what they computed, communicated and waited, how
 * often they came last, and by what their clocks were aligned. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/gpu/gpu_report.h"
#include "report/gpu/gpu_table.h"

static void add_time(struct buf *b, struct known_u64 v)
{
    if (v.known)
        fmt_duration(b, (double)v.v);
    else
        buf_add_str(b, "-");
}

static void fill_rank(struct buf *b, const void *row)
{
    const struct gpu_rank *r = row;
    if (r->rank.known)
        buf_printf(b, "%" PRIu64, r->rank.v);
    else
        buf_add_str(b, "-");
}
FILL(host, gpu_rank, text_name(b, r->host ? r->host : "-", NAME_SHOWN))
FILL(pid, gpu_rank, buf_printf(b, "%" PRIu64, r->pid))
FILL(busy, gpu_rank, buf_add_str(b, r->busy.known ? show_percent(r->busy.v).s : "-"))
FILL(compute, gpu_rank, add_time(b, r->compute_ns))
FILL(communication, gpu_rank, add_time(b, r->communication_ns))
FILL(transfer, gpu_rank, add_time(b, r->transfer_ns))
FILL(waiting, gpu_rank, add_time(b, r->waiting_ns))
FILL(step_p95, gpu_rank, add_time(b, r->step_p95_ns))

static void fill_step(struct buf *b, const void *row)
{
    const struct gpu_rank *r = row;
    add_time(b, (struct known_u64){r->step_ns.known, (uint64_t)r->step_ns.value});
}

static void fill_last(struct buf *b, const void *row)
{
    const struct gpu_rank *r = row;
    if (!r->last_share.known) {
        buf_add_str(b, "-");
        return;
    }
    buf_printf(b, "%.0f %% [%.0f, %.0f]", r->last_share.value * 100, r->last_share.lo.v * 100,
               r->last_share.hi.v * 100);
}

/* Which clock was believed, and how far the ends of collectives are from it. */
static void fill_clock(struct buf *b, const void *row)
{
    const struct gpu_rank *r = row;
    buf_add_str(b, r->aligned_by);
    if (!r->offset_ns.known || strcmp(r->aligned_by, "reference") == 0) return;
    buf_add_str(b, r->offset_ns.value < 0 ? ", behind by " : ", ahead by ");
    fmt_duration(b, fabs(r->offset_ns.value));
    if (!r->offset_ns.lo.known || !r->offset_ns.hi.known) return;
    buf_add_str(b, " +/- ");
    fmt_duration(b, fmax(r->offset_ns.hi.v - r->offset_ns.value, r->offset_ns.value - r->offset_ns.lo.v));
}

static void write_unknown(struct stream *s, const struct gpu_job *j)
{
    static const char *const fields[] = {"world_size", "ranks", "transfer_ns", "step_skew"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *why = run_reason(&j->unknown, fields[i]);
        struct buf b = BUF_INIT;
        if (!why) continue;
        buf_printf(&b, "%s: %s", fields[i], why);
        text_line(s, "unknown", &b);
    }
}

void gpu_job_text(struct stream *s, const struct gpu_job *j)
{
    static const struct table_fill columns[] = {
        {"rank", false, fill_rank},
        {"host", true, fill_host},
        {"process", false, fill_pid},
        {"step p50", false, fill_step},
        {"p95", false, fill_step_p95},
        {"busy", false, fill_busy},
        {"computing", false, fill_compute},
        {"communicating", false, fill_communication},
        {"transfer", false, fill_transfer},
        {"waiting", false, fill_waiting},
        {"last", false, fill_last},
        {"clock", true, fill_clock}};
    struct buf b = BUF_INIT;
    buf_printf(&b, "ranks: %zu", j->ranks.n);
    if (j->world_size.known) buf_printf(&b, " of %" PRIu64, j->world_size.v);
    if (j->hosts.known) buf_printf(&b, " on %" PRIu64 " host%s", j->hosts.v, j->hosts.v == 1 ? "" : "s");
    text_heading(s, b.data);
    buf_release(&b);
    PRINT_TABLE(s, j->ranks, columns);
    b = (struct buf)BUF_INIT;
    fmt_count(&b, j->collectives);
    buf_add_str(&b, " found in all ranks, ");
    fmt_count(&b, j->unmatched);
    buf_add_str(&b, " communicating kernels without their like");
    text_line(s, "collectives", &b);
    b = (struct buf)BUF_INIT;
    if (j->step_skew.known) buf_printf(&b, "steps %.3g times, ", j->step_skew.v);
    if (j->compute_skew.known) buf_printf(&b, "computing %.3g times", j->compute_skew.v);
    if (b.len) buf_add_str(&b, " as long in the longest rank as in the shortest");
    text_line(s, "skew", &b);
    b = (struct buf)BUF_INIT;
    text_plain(&b, j->evidence ? j->evidence : "-", strlen(j->evidence ? j->evidence : "-"));
    text_line(s, "slowest", &b);
    write_unknown(s, j);
}
