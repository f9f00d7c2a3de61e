/* SPDX-License-Identifier: MIT
 * samples_read.c - samples out of an archive, as columns. Takes hostile files: damage costs the damaged chunk and no
 * more, and memory stays in proportion to what the file holds. */
#include <math.h>
#include <string.h>

#include "core/buf.h"
#include "core/map.h"
#include "core/str.h"
#include "trace/chunks.h"
#include "trace/loaded.h"
#include "trace/samples.h"

enum { SERIES_MAX = 1 << 16, LABEL_MAX = 200, MARK_MAX = 64 << 10 };
enum {
    CELLS_FREE = 1 << 22,
    CELLS_PER_VALUE = 512
}; /* columns may have that many cells for a value that is there */

struct reading {
    struct samples *out;
    struct scratch scratch;
    uint64_t sampler;       /* uid of the first process that sampled; another's samples are left out */
    struct map_u64 numbers; /* the sampler's number of a series -> its index + 1 */
    uint64_t moments, values;
    bool filling; /* second time through */
    tare_error *err;
};

/* ---- pieces ---- */

static double read_value(struct dec *d)
{
    static const double scale[] = {1, 100, 1e6};
    uint64_t v = dec_uint(d);
    unsigned k = v & 3;
    if (k == 3) {
        double raw = NAN;
        dec_copy(d, &raw, sizeof raw);
        return isfinite(raw) ? raw : NAN;
    }
    return (double)unzigzag(v >> 2) / scale[k];
}

/* A copy in valid UTF-8, at most `most` bytes of it; NULL: no memory. */
static char *read_text(const char *s, size_t n, size_t most)
{
    struct buf b = BUF_INIT;
    buf_add_str(&b, "");
    str_add_utf8(&b, s, n < most ? n : most);
    for (size_t i = 0; i < b.len; i++)
        if (!b.data[i]) b.data[i] = '?';
    return b.failed ? NULL : buf_take(&b);
}

static enum metric_id read_metric(const char *name, size_t n)
{
    char text[64];
    if (n >= sizeof text || memchr(name, 0, n)) return METRIC_COUNT;
    memcpy(text, name, n);
    text[n] = 0;
    return metric_find(text);
}

/* ---- one function per chunk type: nonsense sets d->failed ---- */

static tare_status number_series(struct reading *r, uint64_t number, enum metric_id m, const char *label)
{
    size_t at;
    tare_status s = series_find(&r->out->set, m, label, &at, r->err);
    return s == TARE_OK ? map_u64_put(&r->numbers, number, at + 1, r->err) : s;
}

/* A series is told again and again, so that damage in one place does not orphan the rest. */
static tare_status read_series(struct reading *r, struct dec *d)
{
    while (d->p < d->end && !r->filling) {
        uint64_t number = dec_uint(d);
        size_t name_n, label_n;
        const char *name = dec_str(d, &name_n), *label = dec_str(d, &label_n);
        if (number >= SERIES_MAX) d->failed = true;
        if (d->failed) return TARE_OK;
        enum metric_id m = read_metric(name, name_n);
        if (m == METRIC_COUNT || map_u64_find(&r->numbers, number))
            continue; /* of a newer tare; told before */
        char *text = read_text(label, label_n, LABEL_MAX);
        tare_status s = text ? number_series(r, number, m, text) : error_nomem(r->err, "a series");
        mem_free(text);
        if (s != TARE_OK) return s;
    }
    return TARE_OK;
}

/* Values of one moment: only counted the first time, then put into the row `at`. */
static void read_values(struct reading *r, struct dec *d, size_t at)
{
    uint64_t number = 0;
    while (d->p < d->end && !d->failed) {
        uint64_t gap = dec_uint(d);
        double v = read_value(d);
        if (gap >= SERIES_MAX || (number += gap) >= SERIES_MAX) d->failed = true;
        if (d->failed) return;
        r->values++;
        const uint64_t *series = r->filling ? map_u64_find(&r->numbers, number) : NULL;
        if (series) r->out->columns.items[*series - 1][at] = v;
        number++;
    }
}

/* Read twice: the first time moments and values are counted, so that columns can be made of the right length; then
 * values are put in. A moment that was refused the first time must be refused again, whole. */
static tare_status read_sample(struct reading *r, struct dec *d)
{
    struct samples *out = r->out;
    struct dec start = *d;
    uint64_t at_ns = dec_uint(d);
    if (!r->filling) {
        read_values(r, d, 0);
        if (out->at_ns.n && at_ns <= *vec_last(&out->at_ns)) d->failed = true; /* time only goes forward */
        return d->failed ? TARE_OK : vec_push(&out->at_ns, at_ns, r->err);
    }
    if (r->moments >= out->at_ns.n || at_ns != out->at_ns.items[r->moments])
        return TARE_OK; /* refused before */
    struct dec check = start;
    size_t row = (size_t)r->moments;
    r->filling = false; /* is the whole of it sound? */
    uint64_t values = r->values;
    dec_uint(&check);
    read_values(r, &check, row);
    r->filling = true;
    r->values = values;
    if (check.failed) return TARE_OK;
    read_values(r, d, row);
    r->moments++;
    return TARE_OK;
}

static tare_status read_mark(struct reading *r, struct dec *d)
{
    struct sample_mark m = {.at_ns = dec_uint(d)};
    uint64_t kind = dec_uint(d);
    size_t n;
    const char *text = dec_str(d, &n);
    if (kind > SAMPLE_NOTE) d->failed = true;
    if (d->failed || r->filling) return TARE_OK;
    m.kind = (enum sample_mark_kind)kind;
    m.text = read_text(text, n, MARK_MAX);
    tare_status s = m.text ? vec_push(&r->out->marks, m, r->err) : error_nomem(r->err, "a mark");
    if (s != TARE_OK) mem_free(m.text);
    return s;
}

static tare_status read_process(struct reading *r, struct dec *d)
{
    struct process_info info = {0};
    dec_copy(d, &info, sizeof info);
    if (d->failed || r->filling) return TARE_OK;
    r->out->start_unix_ns = info.begun_unix_ns;
    r->out->start_ns = info.begun_raw_ns;
    return TARE_OK;
}

static tare_status read_end(struct reading *r, struct dec *d)
{
    if (dec_uint(d) == 1 && !d->failed) r->out->closed = true;
    return TARE_OK;
}

typedef tare_status read_fn(struct reading *r, struct dec *d);
static read_fn *const readers[] = {
    [CHUNK_PROCESS] = read_process, [CHUNK_END] = read_end,          [CHUNK_SERIES] = read_series,
    [CHUNK_SAMPLE] = read_sample,   [CHUNK_SAMPLE_MARK] = read_mark,
};

/* ---- the file ---- */

static tare_status read_chunk(struct reading *r, const struct chunk *c)
{
    unsigned type = c->header.type;
    read_fn *fn = type < sizeof readers / sizeof *readers ? readers[type] : NULL;
    struct stored stored = {c->bytes, c->header.stored_bytes, c->header.plain_bytes, c->header.codec, 0};
    struct dec d = {NULL, NULL, true};
    if (!fn || c->header.process != r->sampler) return TARE_OK;
    bool opened = stored_open(&stored, &r->scratch, &d);
    tare_status s = opened ? fn(r, &d) : scratch_status(&r->scratch, r->err);
    if (d.failed && !r->filling) r->out->damaged++;
    return s;
}

static tare_status read_all(struct reading *r, struct chunks from)
{
    struct chunk c;
    tare_status s = TARE_OK;
    while (s == TARE_OK && chunks_next(&from, &c)) {
        if (!c.damaged)
            s = read_chunk(r, &c);
        else if (!r->filling)
            r->out->damaged++;
    }
    return s;
}

static bool find_sampler(struct chunks from, uint64_t *uid)
{
    struct chunk c;
    while (chunks_next(&from, &c)) {
        if (c.damaged || c.header.type < CHUNK_SERIES || c.header.type > CHUNK_SAMPLE_MARK) continue;
        *uid = c.header.process;
        return true;
    }
    return false;
}

/* Columns are wider than what a sparse file holds: one made to exhaust memory is refused. */
static tare_status make_columns(struct reading *r, const char *path)
{
    struct samples *out = r->out;
    uint64_t cells = (uint64_t)out->at_ns.n * out->set.items.n;
    if (cells > CELLS_FREE && cells / CELLS_PER_VALUE > r->values)
        return error_set(r->err, TARE_FORMAT, "%s: %zu series at %zu moments, but only %llu values", path,
                         out->set.items.n, out->at_ns.n, (unsigned long long)r->values);
    for (size_t i = 0; i < out->set.items.n; i++) {
        double *column = mem_new(out->at_ns.n, sizeof *column);
        if (!column) return error_nomem(r->err, "%zu moments", out->at_ns.n);
        for (size_t k = 0; k < out->at_ns.n; k++) column[k] = NAN;
        tare_status s = vec_push(&out->columns, column, r->err);
        if (s != TARE_OK) {
            mem_free(column);
            return s;
        }
    }
    return TARE_OK;
}

/* Read twice: the first pass counts moments and series, the second fills columns of just that size. Damage
 * is counted in the first only. */
static tare_status read_view(struct samples *out, const struct file_view *f, const char *path,
                             tare_error *err)
{
    struct reading r = {.out = out, .err = err};
    struct chunks from;
    tare_status s = chunks_begin(&from, f, path, err);
    if (s != TARE_OK) return s;
    memcpy(out->run_id, from.header.run_id, sizeof out->run_id);
    out->start_unix_ns = from.header.created_unix_ns;
    if (!find_sampler(from, &r.sampler))
        return error_set(err, TARE_FORMAT, "%s: a trace without samples of probes", path);
    s = read_all(&r, from);
    if (s == TARE_OK) s = make_columns(&r, path);
    r.filling = true;
    if (s == TARE_OK) s = read_all(&r, from);
    map_u64_release(&r.numbers);
    mem_free(r.scratch.bytes);
    return s;
}

tare_status samples_load(struct samples *out, const char *path, tare_error *err)
{
    struct file_view f = FILE_VIEW_INIT;
    tare_status s = file_map(path, &f, err);
    if (s == TARE_OK) s = read_view(out, &f, path, err);
    file_unmap(&f);
    if (s != TARE_OK) samples_release(out);
    return s;
}

void samples_release(struct samples *s)
{
    series_set_release(&s->set);
    for (size_t i = 0; i < s->columns.n; i++) mem_free(s->columns.items[i]);
    for (size_t i = 0; i < s->marks.n; i++) mem_free(s->marks.items[i].text);
    vec_release(&s->columns);
    vec_release(&s->marks);
    vec_release(&s->at_ns);
    *s = (struct samples)SAMPLES_INIT;
}
