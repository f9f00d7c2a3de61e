/* SPDX-License-Identifier: MIT
 * alloc_text.c - the allocations of a run, for people: how many and how large, a row per case; then where, by case. */
#include <inttypes.h>

#include "core/fmt.h"
#include "core/str.h"
#include "report/run/run_report.h"
#include "report/text.h"

enum { NAME_MOST = 60, SITES_SHOWN = 10 };

static const struct run_alloc_stage *each_of(const void *c)
{
    return &((const struct run_case *)c)->allocations.each;
}

static void add_bytes(struct buf *b, bool known, double bytes)
{
    if (known)
        fmt_bytes(b, bytes);
    else
        buf_add_char(b, '-');
}

static void add_name(struct buf *b, const void *c)
{
    const char *name = ((const struct run_case *)c)->name;
    text_name(b, *name ? name : "a run", NAME_MOST);
}
static void add_blocks(struct buf *b, const void *c)
{
    buf_add_str(b, show_number(each_of(c)->blocks.v).s);
}
static void add_all(struct buf *b, const void *c)
{
    fmt_bytes(b, each_of(c)->bytes.v);
}
static void add_largest(struct buf *b, const void *c)
{
    fmt_bytes(b, (double)each_of(c)->largest.v);
}
static void add_peak(struct buf *b, const void *c)
{
    fmt_bytes(b, (double)each_of(c)->peak.v);
}
static void add_kept(struct buf *b, const void *c)
{
    fmt_bytes(b, each_of(c)->kept.v);
}
static void add_first(struct buf *b, const void *c)
{
    const struct run_alloc_stage *first = &((const struct run_case *)c)->allocations.first;
    add_bytes(b, first->known, first->bytes.v);
}
static void add_load(struct buf *b, const void *c)
{
    const struct run_alloc_stage *load = &((const struct run_case *)c)->allocations.load;
    add_bytes(b, load->known, load->bytes.v);
}

static const struct table_fill columns[] = {{"", true, add_name},
                                            {"blocks", false, add_blocks},
                                            {"bytes", false, add_all},
                                            {"largest", false, add_largest},
                                            {"at once", false, add_peak},
                                            {"kept", false, add_kept},
                                            {"first run", false, add_first},
                                            {"loading", false, add_load}};

/* ---- where ---- */

static void add_place(struct buf *b, const struct run_alloc_site *site)
{
    const char *file = site->file ? str_file_name(site->file) : NULL;
    if (site->function) {
        text_name(b, site->function, NAME_MOST);
        if (file) buf_add_char(b, ' ');
    } else if (!file) {
        buf_add_str(b, "unknown");
    }
    if (file) text_name(b, file, NAME_MOST);
    if (site->line.known) buf_printf(b, ":%" PRIu64, site->line.v);
    if (site->offset.known) buf_printf(b, "+0x%" PRIx64, site->offset.v);
}

static void site_blocks(struct buf *b, const void *row)
{
    buf_add_str(b, show_number(((const struct run_alloc_site *)row)->blocks).s);
}
static void site_bytes(struct buf *b, const void *row)
{
    fmt_bytes(b, ((const struct run_alloc_site *)row)->bytes);
}
static void site_largest(struct buf *b, const void *row)
{
    const struct known_u64 *n = &((const struct run_alloc_site *)row)->largest;
    add_bytes(b, n->known, (double)n->v);
}
static void site_where(struct buf *b, const void *row)
{
    add_place(b, row);
}
static const struct table_fill site_columns[] = {{"blocks", false, site_blocks},
                                                 {"bytes", false, site_bytes},
                                                 {"largest", false, site_largest},
                                                 {"where", true, site_where}};

static void write_sizes(struct stream *s, const struct run_allocations *a)
{
    struct buf note = BUF_INIT;
    for (size_t i = 0; i < a->sizes.n; i++) {
        const struct run_alloc_size *size = a->sizes.at[i];
        buf_printf(&note, "%s%s ", i ? ", " : "sizes: ", show_number(size->blocks).s);
        if (size->up_to.known)
            buf_printf(&note, "up to %s", show_bytes((double)size->up_to.v).s);
        else
            buf_add_str(&note, "larger");
    }
    text_note(s, &note);
}

static void write_sites(struct stream *s, const struct run *run, const struct run_case *c)
{
    const struct run_allocations *a = &c->allocations;
    struct table t;
    if (!a->sites.n) return;
    if (run->cases.n > 1) {
        buf_printf(&s->out, "\n%s[", s->style.dim);
        text_name(&s->out, c->name, NAME_MOST);
        buf_printf(&s->out, "]%s\n", s->style.plain);
    }
    write_sizes(s, a);
    table_of(&t, site_columns, sizeof site_columns / sizeof *site_columns);
    size_t n = a->sites.n < SITES_SHOWN ? a->sites.n : SITES_SHOWN;
    for (size_t i = 0; i < n; i++) table_row(&t, a->sites.at[i]);
    table_end(&t, s, s->style.bold);
    uint64_t more = a->sites.n - n + (a->other_sites.known ? a->other_sites.v : 0);
    if (more) buf_printf(&s->out, "%s%" PRIu64 " more%s\n", s->style.dim, more, s->style.plain);
}

/* ---- all of it ---- */

static void write_note(struct stream *s, const struct run_allocations *a)
{
    struct buf note = BUF_INIT;
    buf_add_str(&note, "mean of ");
    fmt_counted(&note, a->runs.v, "run", "runs");
    buf_add_str(&note,
                " of a process of its own, in which each allocation was recorded; none of them is timed");
    if (a->lost.known)
        buf_printf(&note, "; %" PRIu64 " records were lost: too small by as many at most", a->lost.v);
    text_note(s, &note);
}

void run_alloc_text(struct stream *s, const struct run *run)
{
    const struct run_allocations *first = NULL;
    struct table t;
    table_of(&t, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < run->cases.n; i++) {
        const struct run_case *c = run->cases.at[i];
        if (!c->allocations.known) continue;
        if (!first) text_heading(s, "allocations of a run");
        if (!first || c->allocations.lost.known) first = &c->allocations;
        table_row(&t, c);
    }
    table_drop_empty(&t);
    table_end(&t, s, s->style.bold);
    if (!first) return;
    write_note(s, first);
    for (size_t i = 0; i < run->cases.n; i++)
        if (run->cases.at[i]->allocations.known) write_sites(s, run, run->cases.at[i]);
}
