/* SPDX-License-Identifier: MIT
 * finding_text.c - see finding_text.h. */
#include "report/finding_text.h"

#include <inttypes.h>
#include <string.h>

#include "core/fmt.h"
#include "report/text.h"

enum { TEXT_MOST = 1000, INDENT = 12 };

static void add_sentence(struct stream *s, const char *text, unsigned column, unsigned indent)
{
    struct buf plain = BUF_INIT;
    text_name(&plain, text, TEXT_MOST);
    if (plain.failed)
        s->out.failed = 1;
    else if (plain.len)
        text_wrap(&s->out, plain.data, (struct text_box){column, indent, s->style.width});
    buf_release(&plain);
}

static void add_value(struct buf *b, const struct run_value *v)
{
    if (v->kind == RUN_TEXT && v->s)
        text_name(b, v->s, TEXT_MOST);
    else if (v->kind == RUN_INT)
        fmt_int(b, v->i);
    else if (v->kind == RUN_REAL)
        buf_add_str(b, show_number(v->d).s);
    else if (v->kind == RUN_BOOL)
        buf_add_str(b, v->yes ? "yes" : "no");
    else
        buf_add_str(b, "-");
}

/* "busy_share" is said as "busy share". */
static void add_key(struct buf *b, const char *key)
{
    for (const char *c = key; *c; c++) buf_add_char(b, *c == '_' ? ' ' : *c);
}

/* Where a rule says on what it rests, its numbers stand beside that. */
static void write_basis(struct stream *s, const struct run_finding *f)
{
    struct buf *b = &s->out;
    if (!f->basis) return;
    buf_printf(b, "\n            %s", s->style.dim);
    text_name(b, f->basis, TEXT_MOST);
    for (size_t i = 0; i < f->evidence.n; i++) {
        buf_add_str(b, i ? ", " : ": ");
        add_key(b, f->evidence.at[i].key);
        buf_add_char(b, ' ');
        add_value(b, &f->evidence.at[i].value);
    }
    if (f->gain.known) buf_printf(b, "; can win at most %s of the time", show_percent(f->gain.v).s);
    if (f->disproof) {
        buf_add_str(b, "\n            not so if ");
        text_name(b, f->disproof, TEXT_MOST);
    }
    buf_add_str(b, s->style.plain);
}

void text_finding(struct stream *s, const struct run_finding *f, bool several_cases)
{
    struct buf *b = &s->out;
    const char *colour = text_verdict_style(&s->style, f->severity, strlen(f->severity));
    buf_printf(b, "  %s%-8s%s  ", colour, f->severity, *colour ? s->style.plain : "");
    add_sentence(s, f->title, INDENT, INDENT);
    if (f->case_name && *f->case_name && several_cases) {
        buf_printf(b, "  %s[", s->style.dim);
        text_name(b, f->case_name, TEXT_MOST);
        buf_printf(b, "]%s", s->style.plain);
    }
    if (f->action) {
        buf_printf(b, "\n%*s-> ", INDENT, "");
        add_sentence(s, f->action, INDENT + 3, INDENT + 3);
    }
    write_basis(s, f);
    buf_add_char(b, '\n');
}
