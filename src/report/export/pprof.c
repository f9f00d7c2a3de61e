/* SPDX-License-Identifier: MIT
 * pprof.c - see pprof.h. */
#include "report/export/pprof.h"

#include "core/wire.h"
#include "report/text.h"

/* Fields of profile.proto. */
enum {
    SAMPLE_TYPE = 1,
    SAMPLE = 2,
    LOCATION = 4,
    FUNCTION = 5,
    STRINGS = 6,
    TIME = 9,
    DURATION = 10,
    DEFAULT_TYPE = 14
};
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES = 2, SAMPLE_LABEL = 3 };

void pprof_begin(struct pprof *p, struct stream *s)
{
    *p = (struct pprof){
        .s = s, .strings = MAP_STR_INIT, .inner = BUF_INIT, .values = BUF_INIT, .ids = BUF_INIT};
}

static uint64_t string(struct pprof *p, const char *text, size_t n)
{
    uint64_t *number = NULL;
    size_t before = p->strings.n;
    if (p->status == TARE_OK) p->status = map_str_ref(&p->strings, text, n, &number, p->s->err);
    if (p->status != TARE_OK) return 0;
    if (p->strings.n > before) *number = p->strings.n;
    return *number;
}

static uint64_t name_of(struct pprof *p, const char *text)
{
    struct buf clean = BUF_INIT;
    text_name(&clean, text, TEXT_NAME_MAX);
    uint64_t number = clean.len ? string(p, clean.data, clean.len) : 0;
    if (clean.failed && p->status == TARE_OK) p->status = buf_status(&clean, p->s->err);
    buf_release(&clean);
    return number;
}

void pprof_type(struct pprof *p, const char *type, const char *unit)
{
    wire_add_uint(&p->inner, 1, name_of(p, type));
    wire_add_uint(&p->inner, 2, name_of(p, unit));
    wire_add_message(&p->s->out, SAMPLE_TYPE, &p->inner);
}

void pprof_show_first(struct pprof *p, const char *type)
{
    wire_add_uint(&p->s->out, DEFAULT_TYPE, name_of(p, type));
}

/* A frame is a function and a place in it. */
void pprof_frame(struct pprof *p, const struct pprof_frame *f)
{
    uint64_t id = ++p->frames;
    wire_add_uint(&p->inner, 1, id);
    wire_add_uint(&p->inner, 2, name_of(p, f->name));
    if (f->file) wire_add_uint(&p->inner, 4, name_of(p, f->file));
    if (f->first) wire_add_uint(&p->inner, 5, f->first);
    wire_add_message(&p->s->out, FUNCTION, &p->inner);
    wire_add_uint(&p->values, 1, id);
    if (f->line) wire_add_uint(&p->values, 2, f->line);
    wire_add_uint(&p->inner, 1, id);
    wire_add_message(&p->inner, 4, &p->values);
    wire_add_message(&p->s->out, LOCATION, &p->inner);
    stream_poll(p->s);
}

void pprof_at(struct pprof *p, uint64_t frame)
{
    wire_add_varint(&p->ids, frame);
}

void pprof_value(struct pprof *p, uint64_t value)
{
    wire_add_varint(&p->values, value);
}

void pprof_label(struct pprof *p, const char *key, uint64_t number)
{
    struct buf label = BUF_INIT;
    wire_add_uint(&label, 1, name_of(p, key));
    wire_add_uint(&label, 3, number);
    wire_add_message(&p->inner, SAMPLE_LABEL, &label);
    buf_release(&label);
}

tare_status pprof_sample(struct pprof *p)
{
    wire_add_message(&p->inner, SAMPLE_LOCATIONS, &p->ids);
    wire_add_message(&p->inner, SAMPLE_VALUES, &p->values);
    wire_add_message(&p->s->out, SAMPLE, &p->inner);
    return p->status != TARE_OK ? p->status : stream_poll(p->s);
}

/* All texts are known at the end; the first must be empty. */
tare_status pprof_end(struct pprof *p, uint64_t start_unix_ns, uint64_t duration_ns)
{
    tare_status status = p->status;
    wire_add_uint(&p->s->out, TIME, start_unix_ns);
    wire_add_uint(&p->s->out, DURATION, duration_ns);
    wire_add_str(&p->s->out, STRINGS, "");
    for (size_t i = 0; status == TARE_OK && i < p->strings.n && stream_poll(p->s) == TARE_OK; i++)
        wire_add_str(&p->s->out, STRINGS, p->strings.entries[i].key);
    if (status == TARE_OK && (p->inner.failed || p->values.failed || p->ids.failed))
        status = error_nomem(p->s->err, "a profile");
    map_str_release(&p->strings);
    buf_release(&p->inner);
    buf_release(&p->values);
    buf_release(&p->ids);
    return status;
}
