/* SPDX-License-Identifier: MIT
 * samples_write.c - samples into the archive: each moment is one write of whole chunks (appender.h). */
#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "trace/appender.h"
#include "trace/samples.h"
#include "trace/wire.h"

enum {
    TELL_AGAIN =
        512, /* all series once more after so many moments: damage in one place does not orphan the rest */
    SERIES_BYTES = 256 << 10 /* of a SERIES chunk, about */
};

struct samples_writer {
    struct appender to;
    size_t told;    /* series the file knows */
    uint64_t since; /* moments since all series were told */
    uint64_t lost;  /* moments that could not be written */
};

/* Most values are whole, or whole hundredths or millionths: those become a varint if that gives back the very same
 * number, else the eight bytes of the double follow. */
static void put_value(struct appender *a, double v)
{
    static const double scale[] = {1, 100, 1e6};
    for (unsigned k = 0; k < 3; k++) {
        double scaled = v * scale[k];
        if (!(fabs(scaled) < 9007199254740992.0)) break;
        int64_t whole = llrint(scaled);
        if ((double)whole / scale[k] != v || (whole == 0 && signbit(v))) continue;
        appender_uint(a, zigzag(whole) << 2 | k);
        return;
    }
    appender_uint(a, 3);
    buf_add(&a->out, &v, sizeof v);
}

tare_status samples_create(struct samples_writer **out, const char *path, const char *run_id, tare_error *err)
{
    struct samples_writer *w = mem_new(1, sizeof *w);
    if (!w) return error_nomem(err, "a trace");
    tare_status s = appender_open(&w->to, &(struct appender_options){path, run_id, .sampler = true}, err);
    if (s == TARE_OK)
        *out = w;
    else
        mem_free(w);
    return s;
}

const char *samples_run_id(const struct samples_writer *w)
{
    return w->to.run_id;
}

/* ---- moments ---- */

static void put_series(struct appender *a, const struct series_set *set, size_t from)
{
    while (from < set->items.n && !a->out.failed) {
        size_t at = appender_begin(a);
        for (; from < set->items.n && a->out.len - at < SERIES_BYTES; from++) {
            const struct series *s = &set->items.items[from];
            const char *name = metric_table[s->metric].name;
            appender_uint(a, from);
            appender_text(a, name, strlen(name));
            appender_text(a, s->label, strlen(s->label));
        }
        appender_end(a, at, CHUNK_SERIES);
    }
}

static void put_sample(struct appender *a, const struct sample *s)
{
    size_t at = appender_begin(a), next = 0;
    appender_uint(a, s->at_ns);
    for (size_t i = 0; i < s->values.n; i++) {
        if (!isfinite(s->values.items[i])) continue;
        appender_uint(a, i - next);
        put_value(a, s->values.items[i]);
        next = i + 1;
    }
    appender_end(a, at, CHUNK_SAMPLE);
}

tare_status samples_append(struct samples_writer *w, const struct series_set *set, const struct sample *s,
                           tare_error *err)
{
    if (s->values.n > set->items.n)
        return error_set(err, TARE_INVALID, "a sample of %zu values, but %zu series", s->values.n,
                         set->items.n);
    if (s->values.n > CHUNK_BYTES_MAX / 20)
        return error_set(err, TARE_INVALID, "%zu series are more than a trace holds", s->values.n);
    bool again = w->since >= TELL_AGAIN;
    put_series(&w->to, set, again ? 0 : w->told);
    put_sample(&w->to, s);
    tare_status status = appender_write(&w->to, err);
    w->lost += status != TARE_OK;
    if (status != TARE_OK) return status;
    w->told = set->items.n;
    w->since = again ? 0 : w->since + 1;
    return TARE_OK;
}

tare_status samples_mark(struct samples_writer *w, uint64_t at_ns, enum sample_mark_kind kind,
                         const char *text, tare_error *err)
{
    enum { TEXT_MOST = 64 << 10 };
    size_t n = strnlen(text, TEXT_MOST), at = appender_begin(&w->to);
    appender_uint(&w->to, at_ns);
    appender_uint(&w->to, kind);
    appender_text(&w->to, text, n);
    appender_end(&w->to, at, CHUNK_SAMPLE_MARK);
    return appender_write(&w->to, err);
}

tare_status samples_close(struct samples_writer *w, tare_error *err)
{
    if (!w) return TARE_OK;
    tare_status s = appender_close(&w->to, w->lost, err);
    mem_free(w);
    return s;
}
