/* SPDX-License-Identifier: MIT
 * http_text.c - what became of a service's requests, for people: a line per case under the table. */
#include "core/fmt.h"
#include "report/run/run_report.h"
#include "report/text.h"

enum { NAME_MOST = 60, FAULTS_TOLD = 4 };

static void add_count(struct buf *b, const char *word, const struct known_u64 *n)
{
    if (n->known && n->v) buf_printf(b, ", %s %s", show_number((double)n->v).s, word);
}

static void add_faults(struct buf *b, const struct run_map *faults)
{
    for (size_t i = 0; i < faults->n && i < FAULTS_TOLD; i++) {
        buf_add_str(b, i ? ", " : " (");
        text_name(b, faults->at[i].key, NAME_MOST);
        buf_printf(b, " %lld", (long long)faults->at[i].value.i);
    }
    if (faults->n) buf_add_str(b, faults->n > FAULTS_TOLD ? ", ..)" : ")");
}

static void add_spread(struct buf *b, const char *what, const struct run_latency *s)
{
    if (!s->known || !s->p50.known) return;
    buf_printf(b, "; %s p50 %s", what, show_time(s->p50.value).s);
    if (s->p99.known) buf_printf(b, ", p99 %s", show_time(s->p99.value).s);
}

static void write_case(struct buf *b, const struct run_case *c)
{
    const struct run_http *h = &c->http;
    buf_add_str(b, "  ");
    text_name(b, c->name, NAME_MOST);
    buf_printf(b, ": %s due", show_number(h->due.known ? (double)h->due.v : 0).s);
    add_count(b, "answered", &h->answered);
    add_count(b, "failed", &h->failed);
    add_faults(b, &h->faults);
    add_count(b, "still open", &h->open);
    add_spread(b, "from sending", &h->service_ns);
    add_spread(b, "sent late by", &h->delay_ns);
    if (h->connections.known) buf_printf(b, "; %s", show_count((double)h->connections.v, "connection").s);
    if (h->server.known && h->server.busy.known)
        buf_printf(b, "; service %s processors busy", show_number(h->server.busy.v).s);
    if (h->client_ns.known) buf_printf(b, "; this client %s a request", show_time((double)h->client_ns.v).s);
    buf_add_char(b, '\n');
}

/* The highest rate, before its windows. */
static void write_search(struct stream *s, const struct run_rate_search *r)
{
    struct buf *b = &s->out;
    text_heading(s, "highest rate");
    buf_add_str(b, "  ");
    text_name(b, r->slo, 2 * NAME_MOST);
    if (r->passed.known)
        buf_printf(b, ": kept at %s requests/s", show_number(r->passed.v).s);
    else
        buf_add_str(b, ": no rate was shown to keep it");
    if (r->failed.known) buf_printf(b, ", not at %s", show_number(r->failed.v).s);
    buf_printf(b, " (%s", show_count((double)r->probes.n, "window").s);
    if (r->seconds.known) buf_printf(b, ", %s", show_time(r->seconds.v * 1e9).s);
    buf_add_str(b, ")\n");
    if (!r->why) return;
    buf_add_str(b, "  ");
    text_name(b, r->why, 4 * NAME_MOST);
    buf_add_char(b, '\n');
}

void run_http_text(struct stream *s, const struct run *run)
{
    bool any = false;
    if (run->rate_search.known) write_search(s, &run->rate_search);
    for (size_t i = 0; i < run->cases.n; i++) {
        if (!run->cases.at[i]->http.known) continue;
        if (!any) text_heading(s, "requests");
        any = true;
        write_case(&s->out, run->cases.at[i]);
    }
}
