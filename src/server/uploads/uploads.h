/* SPDX-License-Identifier: MIT
 * uploads.h - what the routes of uploaded files share. */
#ifndef SERVER_UPLOADS_H
#define SERVER_UPLOADS_H

#include "server/server.h"

void upload_id_check(struct server *sv, struct exchange *x); /* 404 for what is no hash */
/* number, bytes, pieces of the file that the path names. False: answered. */
bool upload_find(struct server *sv, struct store *s, struct exchange *x, struct store_upload *out);

/* ---- view.c: what a trace shows, made by a process of its own: whatever is wrong with it, and however large it
 * becomes, ends that process. ---- */

enum {
    VIEW_TRACE_MAX = 64 << 20, /* bytes of a trace */
    VIEW_REPLY_MAX = 48 << 20, /* of what is made of it */
    VIEW_MEMORY_MAX_MIB = 2048,
    VIEW_SECONDS = 30,
};

struct view_wish {
    const char *kind; /* "profile", "bars", "timeline", "page" */
    uint64_t most;    /* nodes, or bars */
    int trace;        /* a descriptor of it */
};
/* TARE_INVALID: it is no trace, or holds no such thing, which err tells; TARE_NOMEM: larger than it may become;
 * TARE_BUSY: too slow. */
tare_status view_make(const struct view_wish *w, struct buf *out, tare_error *err);

#endif
