/* SPDX-License-Identifier: MIT
 * help.c - the text of -h, made from the option rows alone, so that it cannot disagree with the parser.
 * Always 80 columns and never coloured: the pages in docs/cli embed it and a test compares them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/opt.h"
#include "report/text.h"

#define COLUMN 28 /* where the descriptions begin */

void opt_wrap(struct buf *out, const char *text, unsigned column, unsigned indent)
{
    text_wrap(out, text, (struct text_box){column, indent, OPT_HELP_WIDTH});
}

const char *opt_default_arg(const struct opt *row)
{
    static const char *const usual[] = {
        [OPT_TYPE_STRING] = "<text>",   [OPT_TYPE_LIST] = "<text>",     [OPT_TYPE_CALLBACK] = "<text>",
        [OPT_TYPE_ENUM] = "<word>",     [OPT_TYPE_INT] = "<n>",         [OPT_TYPE_UINT] = "<n>",
        [OPT_TYPE_DURATION] = "<time>", [OPT_TYPE_DOUBLE] = "<number>",
    };
    return row->arg ? row->arg : usual[row->type];
}

static void print_duration(struct buf *out, struct duration d)
{
    static const struct {
        const char *unit;
        int64_t ns;
    } units[] = {{"h", INT64_C(3600000000000)},
                 {"m", INT64_C(60000000000)},
                 {"s", 1000000000},
                 {"ms", 1000000},
                 {"us", 1000}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (d.ns < units[i].ns || d.ns % (units[i].ns / (i < 2 ? 1 : 10))) continue;
        buf_printf(out, "%g%s", (double)d.ns / (double)units[i].ns, units[i].unit);
        return;
    }
    buf_printf(out, "%" PRId64 "ns", d.ns);
}

static const char *choice_name(const struct opt *row)
{
    for (const struct opt_choice *c = row->choices; c->name; c++)
        if (c->value == *row->to.choice) return c->name;
    return NULL;
}

/* " (default 10)", or nothing where the default says nothing. */
static void print_default(struct buf *out, const struct opt *row)
{
    struct buf value = BUF_INIT;
    const char *text = NULL;
    switch (row->type) {
    case OPT_TYPE_FLAG: text = row->to.flag && *row->to.flag ? "on" : NULL; break;
    case OPT_TYPE_STRING: text = *row->to.string; break;
    case OPT_TYPE_ENUM: text = choice_name(row); break;
    case OPT_TYPE_INT: buf_printf(&value, "%" PRId64, *row->to.sint); break;
    case OPT_TYPE_UINT: buf_printf(&value, "%" PRIu64, *row->to.uint); break;
    case OPT_TYPE_DURATION: print_duration(&value, *row->to.duration); break;
    case OPT_TYPE_DOUBLE: buf_printf(&value, "%g", *row->to.real); break;
    case OPT_TYPE_LIST:
    case OPT_TYPE_CALLBACK:
    case OPT_TYPE_GROUP:
    case OPT_TYPE_END: break;
    }
    if (!text && value.len) text = value.data;
    if (text && *text && !(row->flags & OPT_NO_DEFAULT)) buf_printf(out, " (default %s)", text);
    if (value.failed) out->failed = 1;
    buf_release(&value);
}

/* The option at the left, its meaning from COLUMN on; below it, where the option is longer than that. */
static void print_row(struct buf *out, const struct opt *row)
{
    struct buf left = BUF_INIT, right = BUF_INIT;
    bool on = row->type == OPT_TYPE_FLAG && row->to.flag && *row->to.flag;
    if (row->letter)
        buf_printf(&left, "  -%c, ", row->letter);
    else
        buf_add_str(&left, "      ");
    buf_printf(&left, "--%s%s", on ? "[no-]" : "", row->name);
    if (row->type != OPT_TYPE_FLAG) buf_printf(&left, " %s", opt_default_arg(row));
    buf_add_str(&right, row->help);
    if (row->type == OPT_TYPE_ENUM) {
        const char *between = ": ";
        for (const struct opt_choice *c = row->choices; c->name; c++, between = ", ")
            buf_printf(&right, "%s%s", between, c->name);
    }
    if (row->type == OPT_TYPE_LIST) buf_add_str(&right, " (may be repeated)");
    print_default(&right, row);
    buf_add(out, left.data, left.len);
    if (left.len + 2 > COLUMN)
        buf_printf(out, "\n%*s", COLUMN, "");
    else
        buf_printf(out, "%*s", COLUMN - (int)left.len, "");
    opt_wrap(out, right.data, COLUMN, COLUMN);
    buf_add_char(out, '\n');
    if (left.failed || right.failed) out->failed = 1;
    buf_release(&left);
    buf_release(&right);
}

static void print_synopsis(struct buf *out, const char *synopsis)
{
    const char *lead = "usage: ";
    for (const char *s = synopsis; *s; lead = "       ") {
        size_t len = strcspn(s, "\n");
        buf_printf(out, "%s%.*s\n", lead, (int)len, s);
        s += len + (s[len] == '\n');
    }
}

void opt_help(struct buf *out, const struct opt_request *req)
{
    print_synopsis(out, req->usage->synopsis);
    if (req->usage->about) {
        buf_add_char(out, '\n');
        opt_wrap(out, req->usage->about, 0, 0);
        buf_add_char(out, '\n');
    }
    if (req->usage->list) buf_printf(out, "\n%s", req->usage->list);
    buf_add_str(out, "\noptions:\n");
    for (const struct opt *row = req->rows; row->type != OPT_TYPE_END; row++) {
        if (row->type == OPT_TYPE_GROUP)
            buf_printf(out, "\n%s:\n", row->help);
        else if (!(row->flags & OPT_HIDDEN))
            print_row(out, row);
    }
    if (req->usage->tail) buf_printf(out, "\n%s\n", req->usage->tail);
}
