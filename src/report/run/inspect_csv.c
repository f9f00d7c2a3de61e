/* SPDX-License-Identifier: MIT
 * inspect_csv.c - layers as CSV (RFC 4180): a row per layer of every case, the same columns always. */
#include <math.h>
#include <string.h>

#include "report/csv.h"
#include "report/run/inspect_report.h"

static void head(struct buf *b)
{
    buf_add_str(b, "run_id,subject,case");
    for (const struct layer_column *k = layer_columns; k->column; k++) buf_printf(b, ",%s", k->column);
    buf_add_str(b, "\r\n");
}

static void row(struct buf *b, const struct run *run, const struct run_case *c, const struct run_layer *l)
{
    const char *const texts[] = {run->id, run->subject.name, c->name};
    for (size_t i = 0; i < 3; i++) {
        if (i) buf_add_char(b, ',');
        csv_field(b, texts[i]);
    }
    for (const struct layer_column *k = layer_columns; k->column; k++) {
        double v = NAN;
        if (layer_is_text(k)) {
            buf_add_char(b, ',');
            csv_field(b, layer_text(k, l));
        } else {
            bool known = layer_number(k, c, l, &v);
            csv_number(b, known, v);
        }
    }
    buf_add_str(b, "\r\n");
}

tare_status report_layers_csv(struct stream *s, const struct run_report *r)
{
    head(&s->out);
    for (size_t i = 0; i < r->n; i++) {
        const struct run *run = r->runs[i];
        for (size_t c = 0; c < run->cases.n; c++)
            for (size_t k = 0; k < run->cases.at[c]->layers.n && s->status == TARE_OK; k++) {
                row(&s->out, run, run->cases.at[c], run->cases.at[c]->layers.at[k]);
                stream_poll(s);
            }
    }
    return s->status;
}
