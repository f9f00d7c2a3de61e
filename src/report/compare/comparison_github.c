/* SPDX-License-Identifier: MIT
 * comparison_github.c - a comparison as workflow commands: GitHub shows a regression as an error beside the job, what
 * could not be decided as a warning, the verdict as a notice. */
#include <string.h>

#include "report/compare/comparison_report.h"
#include "report/markup.h"

static void command(struct buf *b, const char *level, const char *title, const char *text)
{
    buf_printf(b, "::%s title=", level);
    markup_command(b, title, 1);
    buf_add_str(b, "::");
    markup_command(b, text, 0);
    buf_add_char(b, '\n');
}

static void write_metric(struct buf *b, const struct comparison_case *c, const struct comparison_metric *m)
{
    struct buf title = BUF_INIT, text = BUF_INIT;
    bool bad = strcmp(m->verdict, "regressed") == 0;
    bool open = strcmp(m->verdict, "inconclusive") == 0 || strcmp(m->verdict, "unverified") == 0;
    if (!comparison_gates(m) || (!bad && !open)) return;
    buf_printf(&title, "tare: %s %s", m->metric, m->verdict);
    buf_printf(&text, "%s%s", c->name, *c->name ? ": " : "");
    comparison_sentence(&text, m);
    if (title.failed || text.failed)
        b->failed = 1;
    else
        command(b, bad ? "error" : "warning", title.data, text.data);
    buf_release(&title);
    buf_release(&text);
}

tare_status report_comparison_github(struct stream *s, const struct comparison *c)
{
    struct buf text = BUF_INIT;
    for (size_t i = 0; i < c->cases.n; i++)
        for (size_t k = 0; k < c->cases.at[i]->metrics.n && stream_poll(s) == TARE_OK; k++)
            write_metric(&s->out, c->cases.at[i], c->cases.at[i]->metrics.at[k]);
    buf_printf(&text, "%s against %s: %s", c->base.name, c->new_.name, c->verdict);
    if (text.failed)
        s->out.failed = 1;
    else
        command(&s->out, "notice", "tare", text.data);
    buf_release(&text);
    return stream_poll(s);
}
