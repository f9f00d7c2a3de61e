/* SPDX-License-Identifier: MIT
 * job_record.c - what came of a job, as JSON: how it ended, what it took, how well it was confined, its runs, its own
 * answer. */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/mem.h"
#include "core/str.h"
#include "server/jobs/jobs.h"

enum { SAID_MAX = 65536 }; /* of the messages that are kept: the last ones */

/* "full": all of it; the record names the parts. */
static json_t *confinement(uint32_t parts)
{
    static const char *const names[] = {
#define X(name, text) text,
        CONFINE_PARTS(X)
#undef X
    };
    json_t *o = json_object();
    for (unsigned i = 0; i < CONFINE_N; i++) json_object_set_new(o, names[i], json_boolean(parts >> i & 1));
    json_object_set_new(o, "level", json_string(parts == (1u << CONFINE_N) - 1 ? "full" : "partial"));
    return o;
}

static void judge(struct job_outcome *o, const struct job_end *end)
{
    int status = end->state.status;
    if (end->state.failed) {
        o->state = "failed";
        snprintf(o->why, sizeof o->why, "it could not be started: %s: %s", end->failed_at,
                 strerror(end->state.failed));
    } else if (end->cancelled) {
        o->state = "cancelled";
        snprintf(o->why, sizeof o->why, "it was cancelled");
    } else if (end->timed_out) {
        o->state = "timeout";
        snprintf(o->why, sizeof o->why, "its time was over");
    } else if (!end->state.ended) {
        o->state = "failed";
        snprintf(o->why, sizeof o->why, "it was killed");
    } else if (WIFSIGNALED(status)) {
        o->state = "failed";
        snprintf(o->why, sizeof o->why, "it was ended by signal %d", WTERMSIG(status));
    } else if (WEXITSTATUS(status)) {
        o->state = "failed";
        snprintf(o->why, sizeof o->why, "it ended with exit status %d", WEXITSTATUS(status));
    } else {
        o->state = "done";
    }
}

static json_t *text_or_null(const char *text)
{
    size_t n = strlen(text), from = n > SAID_MAX ? n - SAID_MAX : 0;
    struct buf clean = BUF_INIT;
    str_add_utf8(&clean, text + from, n - from);
    json_t *v = n && !clean.failed ? json_string(clean.data) : json_null();
    buf_release(&clean);
    return v;
}

static json_t *runs_of(const struct job_documents *d, bool kept)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->at.n; i++) {
        const struct job_document *doc = &d->at.items[i];
        if ((doc->run[0] != 0) != kept) continue;
        if (kept)
            json_array_append_new(list, json_string(doc->run));
        else
            json_array_append_new(list, json_pack("{s:s, s:s}", "name", doc->name, "why", doc->why));
    }
    return list;
}

static void put(struct buf *to, const json_t *v)
{
    char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;
    if (text) buf_add_str(to, text);
    mem_free_libc(text);
}

static json_t *about(const struct job_outcome *o, const struct job_entry *e, const json_t *runs)
{
    char at[64];
    snprintf(at, sizeof at, "/api/v1/jobs/%s", e->id);
    return json_pack("{s:s, s:s, s:s, s:s, s:O}", "id", e->id, "operation", e->operation->name, "state",
                     o->state, "location", at, "runs", runs);
}

void job_outcome_make(struct job_outcome *o, const struct job_entry *e, const struct job_said *said)
{
    const struct job_end *end = said->end;
    judge(o, end);
    json_t *result = json_loads(said->out, JSON_REJECT_DUPLICATES, NULL),
           *runs = runs_of(said->documents, true);
    json_t *record =
        json_pack("{s:s?, s:f, s:f, s:f, s:I, s:o, s:O, s:o, s:O?, s:o, s:o}", "why",
                  o->why[0] ? o->why : NULL, "wall_s", (double)end->wall_ms / 1e3, "cpu_s",
                  (double)end->state.cpu_us / 1e6, "peak_mb", (double)end->state.peak_kb / 1024,
                  "dropped_bytes", (json_int_t)end->dropped, "confined", confinement(end->state.parts),
                  "runs", runs, "refused", runs_of(said->documents, false), "result", result, "output",
                  result ? json_null() : text_or_null(said->out), "messages", text_or_null(said->err));
    if (end->state.ended && WIFEXITED(end->state.status))
        json_object_set_new(record, "exit", json_integer(WEXITSTATUS(end->state.status)));
    else
        json_object_set_new(record, "exit", json_null());
    put(&o->record, record);
    if (json_is_object(result)) {
        json_object_set_new(result, "job", about(o, e, runs));
        put(&o->answer, result);
    }
    json_decref(record);
    json_decref(result);
    json_decref(runs);
}

void job_outcome_release(struct job_outcome *o)
{
    buf_release(&o->record);
    buf_release(&o->answer);
}
