/* SPDX-License-Identifier: MIT
 * memory_words.c - see memory_words.h. */
#include "report/memory/memory_words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/fmt.h"
#include "core/str.h"
#include "report/text.h"

enum { CALLERS_SHOWN = 3, NAME_SHOWN = 60 };

void memory_add_bytes(struct buf *b, struct memory_bytes v)
{
    fmt_bytes(b, v.sum);
    if (v.variance <= 0) return;
    struct interval i = memory_interval(v);
    buf_printf(b, " (%s to %s)", show_bytes(i.lo).s, show_bytes(i.hi).s);
}

uint64_t memory_whole(double n)
{
    return (uint64_t)(fmin(n, 1e18) + 0.5); /* who lies about sizes may claim more */
}

static void add_frame(struct buf *b, const struct memory_frame_named *f)
{
    const char *file = f->file ? str_file_name(f->file) : NULL;
    if (f->source) file = str_file_name(f->source);
    if (f->kind == MEMORY_NATIVE && !f->name) {
        if (file) text_name(b, file, NAME_SHOWN);
        buf_printf(b, "%s0x%" PRIx64, file ? "+" : "", f->offset);
        return;
    }
    bool bracket = f->kind == MEMORY_SCOPE || f->kind == MEMORY_CUT;
    if (bracket) buf_add_str(b, "[");
    text_name(b, f->name ? f->name : "unknown", NAME_SHOWN);
    if (bracket) buf_add_str(b, "]");
    if (file) {
        buf_add_char(b, ' ');
        text_name(b, file, NAME_SHOWN);
    }
    if (f->line) buf_printf(b, ":%" PRIu64, f->line);
}

static void add_stack(struct buf *b, const struct memory_site *s)
{
    const struct memory_frame_named *f = s->frame;
    if (!f) buf_add_str(b, "unknown: its stack is not in the trace");
    for (int i = 0; f && i <= CALLERS_SHOWN; i++, f = f->caller) {
        if (i) buf_add_str(b, " < ");
        add_frame(b, f);
    }
    if (f) buf_add_str(b, " < ..");
}

void memory_add_group(struct buf *b, const struct memory_group *g, enum memory_by by)
{
    if (by == MEMORY_BY_STACK) {
        add_stack(b, &g->own);
        return;
    }
    const struct memory_frame_named *f = g->own.frame;
    if (g->name)
        text_name(b, g->name, NAME_SHOWN);
    else if (!f)
        buf_add_str(b, "unknown: its stack is not in the trace");
    else if (by == MEMORY_BY_LINE || f->kind == MEMORY_SCOPE || f->kind == MEMORY_CUT)
        add_frame(b, f);
    else { /* of a function: its lines are many */
        text_name(b, f->name ? f->name : "unknown", NAME_SHOWN);
        if (f->file) buf_add_char(b, ' ');
        if (f->file) text_name(b, str_file_name(f->file), NAME_SHOWN);
    }
}

void memory_put_bytes(struct answer *a, const char *key, struct memory_bytes v)
{
    struct interval i = memory_interval(v);
    answer_object_flat(a, key);
    answer_f64(a, "bytes", i.value, NULL);
    answer_f64(a, "lo", i.lo, NULL);
    answer_f64(a, "hi", i.hi, NULL);
    answer_object_end(a);
}
