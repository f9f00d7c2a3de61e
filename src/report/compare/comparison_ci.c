/* SPDX-License-Identifier: MIT
 * comparison_ci.c - a comparison for CI servers. As JUnit XML each metric of each case is a test case; as workflow
 * commands GitHub shows what did not pass beside the job. One that gates and regressed fails; what is inconclusive or
 * unverified is skipped, or warned of, with the reason; what does not gate passes and tells. */
#include <string.h>

#include "report/compare/comparison_report.h"
#include "report/markup.h"

enum outcome { PASSED, FAILED, SKIPPED };

static enum outcome outcome_of(const struct comparison_metric *m)
{
    if (!comparison_gates(m)) return PASSED;
    if (strcmp(m->verdict, "regressed") == 0) return FAILED;
    bool open = strcmp(m->verdict, "inconclusive") == 0 || strcmp(m->verdict, "unverified") == 0;
    return open ? SKIPPED : PASSED;
}

/* ---- JUnit ---- */

/* A metric that passed carries its sentence too, as output: whoever opens the test wants to see the number. */
static void write_test_case(struct buf *b, const struct comparison_case *c, const struct comparison_metric *m)
{
    struct buf text = BUF_INIT;
    enum outcome o = outcome_of(m);
    buf_printf(&text, "%s: ", m->verdict);
    comparison_sentence(&text, m);
    if (text.failed) b->failed = 1;
    buf_add_str(b, "    <testcase classname=\"");
    markup_xml(b, *c->name ? c->name : "case");
    buf_add_str(b, "\" name=\"");
    markup_xml(b, m->metric);
    buf_add_str(b, "\">\n");
    if (o == PASSED)
        buf_add_str(b, "      <system-out>");
    else
        buf_printf(b, "      <%s message=\"", o == FAILED ? "failure" : "skipped");
    if (!text.failed) markup_xml(b, text.data);
    buf_add_str(b, o == PASSED ? "</system-out>\n" : "\"/>\n");
    buf_add_str(b, "    </testcase>\n");
    buf_release(&text);
}

static void property(struct buf *b, const char *name, const char *value)
{
    if (!value) return;
    buf_printf(b, "      <property name=\"%s\" value=\"", name);
    markup_xml(b, value);
    buf_add_str(b, "\"/>\n");
}

static void write_head(struct buf *b, const struct comparison *c)
{
    size_t n[3] = {0};
    for (size_t i = 0; i < c->cases.n; i++)
        for (size_t k = 0; k < c->cases.at[i]->metrics.n; k++) n[outcome_of(c->cases.at[i]->metrics.at[k])]++;
    size_t all = n[PASSED] + n[FAILED] + n[SKIPPED];
    buf_printf(
        b,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tare\" tests=\"%zu\" failures=\"%zu\" "
        "errors=\"0\" skipped=\"%zu\">\n  <testsuite name=\"",
        all, n[FAILED], n[SKIPPED]);
    markup_xml(b, c->base.name);
    buf_add_str(b, " against ");
    markup_xml(b, c->new_.name);
    buf_printf(b, "\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" timestamp=\"%.19s\">\n",
               all, n[FAILED], n[SKIPPED], c->created);
}

tare_status report_comparison_junit(struct stream *s, const struct comparison *c)
{
    struct buf *b = &s->out;
    write_head(b, c);
    buf_add_str(b, "    <properties>\n");
    property(b, "verdict", c->verdict);
    property(b, "method", c->method);
    property(b, "again", c->reproduce);
    buf_add_str(b, "    </properties>\n");
    for (size_t i = 0; i < c->cases.n; i++)
        for (size_t k = 0; k < c->cases.at[i]->metrics.n && stream_poll(s) == TARE_OK; k++)
            write_test_case(b, c->cases.at[i], c->cases.at[i]->metrics.at[k]);
    buf_add_str(b, "  </testsuite>\n</testsuites>\n");
    return stream_poll(s);
}

/* ---- workflow commands ---- */

static void command(struct buf *b, const char *level, const char *title, const char *text)
{
    buf_printf(b, "::%s title=", level);
    markup_command(b, title, 1);
    buf_add_str(b, "::");
    markup_command(b, text, 0);
    buf_add_char(b, '\n');
}

static void write_annotation(struct buf *b, const struct comparison_case *c,
                             const struct comparison_metric *m)
{
    struct buf title = BUF_INIT, text = BUF_INIT;
    enum outcome o = outcome_of(m);
    if (o == PASSED) return;
    buf_printf(&title, "tare: %s %s", m->metric, m->verdict);
    buf_printf(&text, "%s%s", c->name, *c->name ? ": " : "");
    comparison_sentence(&text, m);
    if (title.failed || text.failed)
        b->failed = 1;
    else
        command(b, o == FAILED ? "error" : "warning", title.data, text.data);
    buf_release(&title);
    buf_release(&text);
}

tare_status report_comparison_github(struct stream *s, const struct comparison *c)
{
    struct buf text = BUF_INIT;
    for (size_t i = 0; i < c->cases.n; i++)
        for (size_t k = 0; k < c->cases.at[i]->metrics.n && stream_poll(s) == TARE_OK; k++)
            write_annotation(&s->out, c->cases.at[i], c->cases.at[i]->metrics.at[k]);
    buf_printf(&text, "%s against %s: %s", c->base.name, c->new_.name, c->verdict);
    if (text.failed)
        s->out.failed = 1;
    else
        command(&s->out, "notice", "tare", text.data);
    buf_release(&text);
    return stream_poll(s);
}
