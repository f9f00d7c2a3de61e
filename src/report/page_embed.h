/* SPDX-License-Identifier: MIT
 * page_embed.h - the viewer of the report page as gzip bytes. Private to src/report. */
#ifndef REPORT_PAGE_EMBED_H
#define REPORT_PAGE_EMBED_H

#include <stddef.h>

struct page_embed {
    const unsigned char *gzip;
    size_t n; /* 0: this build has no viewer */
};
struct page_embed page_embed(void);

#endif
