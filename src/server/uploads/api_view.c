/* SPDX-License-Identifier: MIT
 * api_view.c - what pages show of a trace that was uploaded: its flame graph, its timeline, its samples, or
 * all of it at once. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/route.h"
#include "server/uploads/uploads.h"

static tare_status write_all(int fd, const struct buf *b, tare_error *err)
{
    for (size_t at = 0; at < b->len;) {
        ssize_t n = write(fd, b->data + at, b->len - at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return error_errno(err, "a trace in memory");
        at += (size_t)n;
    }
    return TARE_OK;
}

/* The file as a descriptor, piece by piece. */
static tare_status unfold(struct store *s, const struct store_upload *u, int fd, tare_error *err)
{
    struct buf piece = BUF_INIT;
    tare_status status = TARE_OK;
    for (uint64_t i = 0; i < u->pieces && status == TARE_OK; i++) {
        buf_clear(&piece);
        status = s->ops->files.piece(s, u, i, &piece, err);
        if (status == TARE_OK) status = write_all(fd, &piece, err);
    }
    buf_release(&piece);
    return status;
}

static void tell(struct server *sv, struct exchange *x, tare_status status, const tare_error *err)
{
    if (status == TARE_INVALID || status == TARE_NOMEM)
        reply_problem(x, 422, "%s", err->text);
    else
        steps_failed(sv, x, err);
}

static void answer(struct server *sv, struct store *s, struct exchange *x, struct view_wish w)
{
    tare_error err = TARE_ERROR_INIT;
    struct store_upload u;
    if (exchange_query_number(x, "most", (struct number_range){1, w.most}, &w.most, &err) != TARE_OK) {
        reply_refused(x, 400, &err);
        return;
    }
    if (!upload_find(sv, s, x, &u)) return;
    if (u.bytes > VIEW_TRACE_MAX) {
        reply_problem(x, 422, "the trace has %llu bytes, more than %d: fetch it, and use tare report --html",
                      (unsigned long long)u.bytes, VIEW_TRACE_MAX);
        return;
    }
    w.trace = memfd_create("trace", MFD_CLOEXEC);
    tare_status status = w.trace < 0 ? error_errno(&err, "a trace in memory") : unfold(s, &u, w.trace, &err);
    if (status == TARE_OK) status = view_make(&w, &x->reply.body, &err);
    if (w.trace >= 0) close(w.trace);
    if (status == TARE_OK)
        reply_json(x, 200);
    else
        tell(sv, x, status, &err);
}

static void answer_profile(struct server *sv, struct store *s, struct exchange *x)
{
    answer(sv, s, x, (struct view_wish){.kind = "profile", .most = 100000});
}

static void answer_bars(struct server *sv, struct store *s, struct exchange *x)
{
    answer(sv, s, x, (struct view_wish){.kind = "bars", .most = 200000});
}

static void answer_timeline(struct server *sv, struct store *s, struct exchange *x)
{
    answer(sv, s, x, (struct view_wish){.kind = "timeline", .most = 1});
}

static void answer_page(struct server *sv, struct store *s, struct exchange *x)
{
    answer(sv, s, x, (struct view_wish){.kind = "page", .most = 1});
}

static const struct query_word profile_query[] = {{"most", "nodes at the most, 100000 if not said"},
                                                  {NULL, NULL}};
static const struct query_word bars_query[] = {{"most", "bars at the most, 200000 if not said"},
                                               {NULL, NULL}};

const struct steps uploads_profile = {
    .now = upload_id_check, .read = answer_profile, .query = profile_query, .slow = true, .replies = "200,422"};
const struct steps uploads_bars = {
    .now = upload_id_check, .read = answer_bars, .query = bars_query, .slow = true, .replies = "200,422"};
const struct steps uploads_timeline = {
    .now = upload_id_check, .read = answer_timeline, .slow = true, .replies = "200,422"};
const struct steps uploads_page = {
    .now = upload_id_check, .read = answer_page, .slow = true, .replies = "200,422"};
