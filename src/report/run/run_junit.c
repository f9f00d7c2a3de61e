/* SPDX-License-Identifier: MIT
 * run_junit.c - run documents as JUnit XML, for CI servers: each target, finding and case is a test case.
 * A missed target and a critical finding fail; an inconclusive target is skipped, with the reason. */
#include <math.h>
#include <string.h>

#include "core/fmt.h"
#include "report/markup.h"
#include "report/run/run_report.h"

static void open_case(struct buf *b, const char *kind, const char *name, const char *case_name)
{
    buf_printf(b, "    <testcase classname=\"%s\" name=\"", kind);
    markup_xml(b, name);
    if (case_name && *case_name) {
        buf_add_str(b, " [");
        markup_xml(b, case_name);
        buf_add_char(b, ']');
    }
    buf_add_char(b, '"');
}

static void outcome(struct buf *b, const char *element, const char *message)
{
    buf_printf(b, ">\n      <%s message=\"", element);
    markup_xml(b, message);
    buf_add_str(b, "\"/>\n    </testcase>\n");
}

/* ---- what can fail ---- */

/* Inconclusive is "skipped": a build must not break for a target that was not shown to be missed, nor look as if it was
 * met. Confidence is cut below 100 %, since no measurement has that. */
static void write_target(struct buf *b, const struct run_target *t)
{
    struct buf name = BUF_INIT, message = BUF_INIT;
    run_target_text(&name, t);
    open_case(b, "target", name.data, t->case_name);
    buf_add_str(&message, "achieved ");
    run_achieved_text(&message, t);
    if (t->ratio.known) buf_printf(&message, ", %s of what was asked", show_number(t->ratio.v).s);
    if (t->confidence.known)
        buf_printf(&message, ", confidence %.4g %%", fmin(t->confidence.v, 0.9999) * 100);
    if (t->why && *t->why) buf_printf(&message, ": %s", t->why);
    if (name.failed || message.failed) b->failed = 1;
    if (strcmp(t->verdict, "fail") == 0)
        outcome(b, "failure", message.data);
    else if (strcmp(t->verdict, "inconclusive") == 0)
        outcome(b, "skipped", message.data);
    else
        buf_add_str(b, "/>\n");
    buf_release(&name);
    buf_release(&message);
}

static void write_finding(struct buf *b, const struct run_finding *f)
{
    open_case(b, "finding", f->id, f->case_name);
    if (strcmp(f->severity, "critical") == 0) {
        outcome(b, "failure", f->title);
        return;
    }
    buf_printf(b, ">\n      <system-out>%s: ", f->severity);
    markup_xml(b, f->title);
    if (f->action) {
        buf_add_str(b, " -&gt; ");
        markup_xml(b, f->action);
    }
    buf_add_str(b, "</system-out>\n    </testcase>\n");
}

static void write_case(struct buf *b, const struct run_case *c)
{
    struct run_estimate e;
    open_case(b, "case", *c->name ? c->name : "(only)", NULL);
    if (measure_named(c, "latency.mean", &e)) buf_printf(b, " time=\"%.9g\"", e.value / 1e9);
    buf_add_str(b, "/>\n");
}

/* ---- suites ---- */

struct counts {
    size_t tests, failures, skipped;
};

static struct counts count(const struct run *run)
{
    struct counts n = {run->targets.n + run->findings.n + run->cases.n, 0, 0};
    for (size_t i = 0; i < run->targets.n; i++) {
        n.failures += strcmp(run->targets.at[i]->verdict, "fail") == 0;
        n.skipped += strcmp(run->targets.at[i]->verdict, "inconclusive") == 0;
    }
    for (size_t i = 0; i < run->findings.n; i++)
        n.failures += strcmp(run->findings.at[i]->severity, "critical") == 0;
    return n;
}

static void property(struct buf *b, const struct run *run, const char *name,
                     void (*fill)(struct buf *, const struct run *))
{
    struct buf value = BUF_INIT;
    fill(&value, run);
    buf_printf(b, "      <property name=\"%s\" value=\"", name);
    if (value.failed) b->failed = 1;
    markup_xml(b, value.data);
    buf_add_str(b, "\"/>\n");
    buf_release(&value);
}

static void write_suite(struct stream *s, const struct run *run)
{
    struct buf *b = &s->out;
    struct counts n = count(run);
    buf_add_str(b, "  <testsuite name=\"");
    markup_xml(b, run->subject.name);
    buf_printf(b, "\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" timestamp=\"%.19s\">\n",
               n.tests, n.failures, n.skipped, run->created);
    buf_add_str(b, "    <properties>\n");
    property(b, run, "host", run_host_text);
    property(b, run, "settings", run_config_text);
    buf_add_str(b, "    </properties>\n");
    for (size_t i = 0; i < run->targets.n && stream_poll(s) == TARE_OK; i++)
        write_target(b, run->targets.at[i]);
    for (size_t i = 0; i < run->findings.n && stream_poll(s) == TARE_OK; i++)
        write_finding(b, run->findings.at[i]);
    for (size_t i = 0; i < run->cases.n && stream_poll(s) == TARE_OK; i++) write_case(b, run->cases.at[i]);
    buf_add_str(b, "  </testsuite>\n");
}

/* The totals stand in the first tag, so all runs are counted before any is written. */
tare_status report_run_junit(struct stream *s, const struct run_report *r)
{
    struct counts all = {0};
    for (size_t i = 0; i < r->n; i++) {
        struct counts n = count(r->runs[i]);
        all.tests += n.tests;
        all.failures += n.failures;
        all.skipped += n.skipped;
    }
    buf_printf(
        &s->out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tare\" tests=\"%zu\" failures=\"%zu\" "
        "errors=\"0\" skipped=\"%zu\">\n",
        all.tests, all.failures, all.skipped);
    for (size_t i = 0; i < r->n && s->status == TARE_OK; i++) write_suite(s, r->runs[i]);
    buf_add_str(&s->out, "</testsuites>\n");
    return s->status;
}
