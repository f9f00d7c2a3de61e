/* SPDX-License-Identifier: MIT
 * stacks_export.c - folded stacks, speedscope and pprof: see stacks_export.h. */
#include "report/stacks/stacks_export.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/vec.h"
#include "report/export/pprof.h"
#include "report/text.h"

const char *const stacks_time_words[] = {"wall", "cpu", "gil", "idle"};

static uint64_t whole(double v)
{
    return v >= 0.5 && v < 9e15 ? (uint64_t)llround(v) : 0;
}

/* ---- paths ---- */

struct paths {
    struct stream *s;
    const struct stacks_profile *p;
    VEC(size_t) path; /* functions, outermost first */
};

static tare_status path_to(struct paths *c, size_t node)
{
    tare_status st = TARE_OK;
    vec_clear(&c->path);
    for (size_t i = node; st == TARE_OK && i > 0; i = c->p->nodes[i].parent)
        st = vec_push(&c->path, c->p->nodes[i].function, c->s->err);
    for (size_t i = 0; i < c->path.n / 2; i++) {
        size_t other = c->path.n - 1 - i, kept = c->path.items[i];
        c->path.items[i] = c->path.items[other];
        c->path.items[other] = kept;
    }
    return st;
}

/* The next node with time of its own behind `at`; 0: there is none. */
static size_t next_path(const struct stacks_profile *p, size_t at)
{
    for (size_t i = at + 1; i < p->n_nodes; i++)
        if (whole(p->nodes[i].own_ns)) return i;
    return 0;
}

/* ---- folded ---- */

static void fold(struct paths *c, size_t node)
{
    struct buf *b = &c->s->out;
    for (size_t d = 0; d < c->path.n; d++) {
        const struct stacks_function *f = &c->p->functions[c->path.items[d]];
        if (d) buf_add_char(b, ';');
        text_folded(b, f->name, text_clip(f->name, TEXT_NAME_MAX));
        if (!*f->file) continue;
        buf_add_str(b, " (");
        text_folded(b, f->file, text_clip(f->file, TEXT_NAME_MAX));
        if (f->first_line) buf_printf(b, ":%" PRIu64, f->first_line);
        buf_add_char(b, ')');
    }
    buf_add_char(b, ' ');
    stream_add_uint(c->s, whole(c->p->nodes[node].own_ns));
    buf_add_char(b, '\n');
    stream_poll(c->s);
}

tare_status stacks_write_folded(struct stream *s, const struct stacks_export *e)
{
    struct paths c = {.s = s, .p = e->profile};
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && s->status == TARE_OK && (i = next_path(c.p, i));)
        if ((st = path_to(&c, i)) == TARE_OK) fold(&c, i);
    vec_release(&c.path);
    return stream_end(s, st);
}

/* ---- speedscope ---- */

static void scope_frames(struct paths *c)
{
    struct buf *b = &c->s->out;
    for (size_t i = 0; i < c->p->n && stream_poll(c->s) == TARE_OK; i++) {
        const struct stacks_function *f = &c->p->functions[i];
        buf_add_str(b, i ? ",\n{\"name\":" : "\n{\"name\":");
        text_json(b, f->name, text_clip(f->name, TEXT_NAME_MAX));
        if (*f->file) {
            buf_add_str(b, ",\"file\":");
            text_json(b, f->file, text_clip(f->file, TEXT_NAME_MAX));
        }
        if (f->line || f->first_line) buf_printf(b, ",\"line\":%" PRIu64, f->line ? f->line : f->first_line);
        buf_add_char(b, '}');
    }
}

static tare_status scope_samples(struct paths *c)
{
    tare_status st = TARE_OK;
    bool any = false;
    for (size_t i = 0; st == TARE_OK && stream_poll(c->s) == TARE_OK && (i = next_path(c->p, i));
         any = true) {
        buf_add_str(&c->s->out, any ? ",\n[" : "\n[");
        st = path_to(c, i);
        for (size_t d = 0; d < c->path.n; d++) {
            if (d) buf_add_char(&c->s->out, ',');
            stream_add_uint(c->s, c->path.items[d]);
        }
        buf_add_char(&c->s->out, ']');
    }
    return st;
}

tare_status stacks_write_speedscope(struct stream *s, const struct stacks_export *e)
{
    struct paths c = {.s = s, .p = e->profile};
    uint64_t sum = 0;
    buf_add_str(&s->out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"name\":");
    text_json(&s->out, e->name, text_clip(e->name, TEXT_NAME_MAX));
    buf_add_str(&s->out, ",\"exporter\":\"tare " TARE_VERSION
                         "\",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[");
    scope_frames(&c);
    buf_printf(&s->out,
               "\n]},\n\"profiles\":[\n{\"type\":\"sampled\",\"unit\":\"nanoseconds\",\"startValue\":0,"
               "\"name\":\"%s time, sampled\",\"samples\":[",
               stacks_time_words[e->time]);
    tare_status st = scope_samples(&c);
    buf_add_str(&s->out, "],\n\"weights\":[");
    for (size_t i = 0; stream_poll(s) == TARE_OK && (i = next_path(c.p, i));) {
        if (sum) buf_add_char(&s->out, ',');
        stream_add_uint(s, whole(c.p->nodes[i].own_ns));
        sum += whole(c.p->nodes[i].own_ns);
    }
    buf_printf(&s->out, "],\"endValue\":%" PRIu64 "}\n]}\n", sum);
    vec_release(&c.path);
    return stream_end(s, st);
}

/* ---- pprof ---- */

tare_status stacks_write_pprof(struct stream *s, const struct stacks_export *e)
{
    const struct stacks_profile *p = e->profile;
    struct pprof to;
    pprof_begin(&to, s);
    pprof_type(&to, "samples", "count");
    pprof_type(&to, stacks_time_words[e->time], "nanoseconds");
    pprof_show_first(&to, stacks_time_words[e->time]);
    for (size_t i = 0; i < p->n && to.status == TARE_OK; i++) {
        const struct stacks_function *f = &p->functions[i];
        pprof_frame(&to, &(struct pprof_frame){f->name, *f->file ? f->file : NULL, f->line, f->first_line});
    }
    for (size_t i = 0; to.status == TARE_OK && (i = next_path(p, i));) {
        for (size_t at = i; at > 0; at = p->nodes[at].parent) pprof_at(&to, p->nodes[at].function + 1);
        pprof_value(&to, p->nodes[i].own_looks);
        pprof_value(&to, whole(p->nodes[i].own_ns));
        to.status = pprof_sample(&to);
    }
    return stream_end(s, pprof_end(&to, e->start_unix_ns, p->rate.kind ? p->rate.RATE.wall : 0));
}
