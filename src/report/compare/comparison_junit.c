/* SPDX-License-Identifier: MIT
 * comparison_junit.c - a comparison as JUnit XML, for CI servers: each metric of each case is a test case. One that
 * gates and regressed fails; what is inconclusive or unverified is skipped, with the reason; what does not gate
 * passes and tells. */
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

static void write_metric(struct buf *b, const struct comparison_case *c, const struct comparison_metric *m)
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
            write_metric(b, c->cases.at[i], c->cases.at[i]->metrics.at[k]);
    buf_add_str(b, "  </testsuite>\n</testsuites>\n");
    return stream_poll(s);
}
