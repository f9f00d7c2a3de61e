/* SPDX-License-Identifier: MIT
 * run_csv.c - run documents as CSV (RFC 4180): a row per case, or a row per layer of every case, the same columns
 * always. Numbers are in base units with all their digits; unknown is an empty field. */
#include "report/markup.h"
#include "report/run/layer_columns.h"
#include "report/run/run_report.h"

static void add_texts(struct buf *b, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i) buf_add_char(b, ',');
        csv_field(b, texts[i]);
    }
}

/* ---- a row per case ---- */

static const char *const known_params[] = {"batch", "seq",       "threads", "provider",
                                           "io",    "precision", "variant"};
enum { N_PARAMS = sizeof known_params / sizeof *known_params };

static void case_head(struct buf *b)
{
    buf_add_str(b, "run_id,created,kind,subject,runtime,runtime_version,host,case");
    for (size_t i = 0; i < N_PARAMS; i++) buf_printf(b, ",%s", known_params[i]);
    buf_add_str(b, ",params,unit,units_per_run,samples,confidence");
    for (const struct measure *m = measure_table; m->name; m++) {
        char column[MEASURE_NAME_SIZE];
        measure_column(m, column);
        buf_printf(b, ",%s", column);
        if (m->interval) buf_printf(b, ",%s_lo,%s_hi", column, column);
    }
    buf_add_str(b, ",accuracy_metric\r\n");
}

static void value_field(struct buf *b, const struct run_value *v)
{
    struct buf text = BUF_INIT;
    if (v && v->kind != RUN_NULL) run_value_text(&text, v);
    if (text.failed) b->failed = 1;
    csv_field(b, text.data);
    buf_release(&text);
}

/* "batch=16;seq=128" */
static void all_params(struct buf *b, const struct run_map *params)
{
    struct buf text = BUF_INIT;
    for (size_t i = 0; i < params->n; i++) {
        buf_printf(&text, "%s%s=", i ? ";" : "", params->at[i].key);
        run_value_text(&text, &params->at[i].value);
    }
    if (text.failed) b->failed = 1;
    csv_field(b, text.data);
    buf_release(&text);
}

/* The columns are the same for every run of this version, whatever is known of it: unknown fields are empty, and all
 * parameters stand in one column together, since not each has its own. */
static void case_row(struct buf *b, const struct run *run, const struct run_case *c)
{
    const struct run_runtime *rt = &run->subject.runtime;
    const char *const texts[] = {run->id,
                                 run->created,
                                 run->kind,
                                 run->subject.name,
                                 rt->known ? rt->name : NULL,
                                 rt->known ? rt->version : NULL,
                                 run->host.hostname,
                                 c->name};
    add_texts(b, texts, sizeof texts / sizeof *texts);
    for (size_t i = 0; i < N_PARAMS; i++) {
        buf_add_char(b, ',');
        value_field(b, run_map_get(&c->params, known_params[i]));
    }
    buf_add_char(b, ',');
    all_params(b, &c->params);
    buf_add_char(b, ',');
    csv_field(b, c->unit);
    csv_number(b, c->units_per_run.known, (double)c->units_per_run.v);
    csv_number(b, c->samples.known, (double)c->samples.v);
    csv_number(b, c->confidence.known, c->confidence.v);
    for (const struct measure *m = measure_table; m->name; m++) {
        struct run_estimate e = {0};
        bool known = measure_of(c, m, &e);
        csv_number(b, known, e.value);
        if (!m->interval) continue;
        csv_number(b, known && e.lo.known, e.lo.v);
        csv_number(b, known && e.hi.known, e.hi.v);
    }
    buf_add_char(b, ',');
    csv_field(b, c->accuracy.score.known ? c->accuracy.metric : NULL);
    buf_add_str(b, "\r\n");
}

tare_status report_run_csv(struct stream *s, const struct run_report *r)
{
    case_head(&s->out);
    for (size_t i = 0; i < r->n; i++)
        for (size_t c = 0; c < r->runs[i]->cases.n && s->status == TARE_OK; c++) {
            case_row(&s->out, r->runs[i], r->runs[i]->cases.at[c]);
            stream_poll(s);
        }
    return s->status;
}

/* ---- a row per layer ---- */

static void layer_row(struct buf *b, const struct run *run, const struct run_case *c,
                      const struct run_layer *l)
{
    const char *const texts[] = {run->id, run->subject.name, c->name};
    add_texts(b, texts, sizeof texts / sizeof *texts);
    for (const struct layer_column *k = layer_columns; k->column; k++) {
        double v = 0;
        bool known = layer_number(k, c, l, &v);
        csv_number(b, known, v);
        if (layer_is_text(k)) csv_field(b, layer_text(k, l));
    }
    buf_add_str(b, "\r\n");
}

tare_status report_layers_csv(struct stream *s, const struct run_report *r)
{
    buf_add_str(&s->out, "run_id,subject,case");
    for (const struct layer_column *k = layer_columns; k->column; k++) buf_printf(&s->out, ",%s", k->column);
    buf_add_str(&s->out, "\r\n");
    for (size_t i = 0; i < r->n; i++)
        for (size_t c = 0; c < r->runs[i]->cases.n; c++) {
            const struct run_case *of = r->runs[i]->cases.at[c];
            for (size_t k = 0; k < of->layers.n && stream_poll(s) == TARE_OK; k++)
                layer_row(&s->out, r->runs[i], of, of->layers.at[k]);
        }
    return stream_poll(s);
}
