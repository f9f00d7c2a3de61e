/* SPDX-License-Identifier: MIT
 * html.h - the report page: one self-contained HTML file, the viewer built from web/ with documents put into the one
 * line that waits for them (docs/report-page.md). Adds no judgement to the documents, and lets nothing in them end
 * the element they stand in. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include <stdbool.h>

#include "report/sink.h"
#include "run/comparison.h"

#define HTML_SCHEMA "tare.page/1"
#define HTML_SAMPLES_MAX ((size_t)200000) /* raw samples that a page shows, of all its runs together */

struct html_item {
    const char *kind; /* "run", "comparison", "profile", "history", "timeline" */
    const char *name; /* file or label; NULL: none */
    tare_status (*write)(struct stream *s, const void *ctx); /* one JSON object: the document */
    const void *ctx;
};

struct html_page {
    const char *title;
    const struct html_item *items;
    size_t n;
};

bool html_has_viewer(void); /* false: built without node */
#define HTML_MISSING \
    "this tare was built without the report page, which needs node and npm at build time (make deps, then make)"

/* TARE_UNSUPPORTED when this build has no viewer. */
tare_status html_write(struct stream *s, const struct html_page *page);
/* Its documents alone, as one JSON object (tare.page/1), for a viewer that is there already. */
tare_status html_write_data(struct stream *s, const struct html_page *page);

/* ---- documents of this layer as items ---- */

struct html_run {
    const struct run *run;
    size_t samples_max; /* raw samples of all its cases; more are thinned out evenly, and it is said */
};
tare_status html_run_write(struct stream *s, const void *ctx);        /* ctx: struct html_run */
tare_status html_comparison_write(struct stream *s, const void *ctx); /* ctx: struct comparison */

#endif
