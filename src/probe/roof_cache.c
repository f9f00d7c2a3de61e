/* SPDX-License-Identifier: MIT
 * roof_cache.c - see roof_parts.h. A line per value, "name value"; all of them, in this order, or it is not ours. */
#include "probe/roof_parts.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

#define HEAD "tare.roof/1"
#define WORST 1e18 /* no machine of today has more of anything per second */
enum { LINE_MAX_BYTES = 128 };

/* ---- text ------------------------------------------------------------------------------------ */

void roof_cache_write(const struct roof *r, const char *fingerprint, int64_t now, struct buf *out)
{
    buf_printf(out, HEAD "\nhost %s\nthreads %u\nkernels %d\nat %" PRId64 "\nmeasured %s\n", fingerprint,
               r->threads, ROOF_KERNELS_VERSION, now, r->measured);
    buf_printf(out, "flops %.9g %s\n", r->flops, r->kernel);
    buf_printf(out, "int_ops %.9g %s\n", r->int_ops, r->int_kernel ? r->int_kernel : "none");
    buf_printf(out, "read %.9g\ntriad %.9g\n", r->read, r->triad);
}

struct lines {
    const char *at, *end;
    char line[LINE_MAX_BYTES]; /* the last one read, without its name */
};

/* The value of the next line if that is `name`'s; NULL: it is not, or the text ends. */
static char *next_value(struct lines *l, const char *name)
{
    size_t left = (size_t)(l->end - l->at), n = strlen(name);
    const char *stop = left ? memchr(l->at, '\n', left) : NULL;
    if (!stop || (size_t)(stop - l->at) < n || memcmp(l->at, name, n) != 0) return NULL;
    const char *value = l->at + n;
    if (value < stop && *value == ' ') value++;
    size_t size = (size_t)(stop - value);
    if (size >= sizeof l->line || memchr(value, 0, size)) return NULL;
    memcpy(l->line, value, size);
    l->line[size] = 0;
    l->at = stop + 1;
    return l->line;
}

static bool next_is(struct lines *l, const char *name, const char *wanted)
{
    const char *v = next_value(l, name);
    return v && strcmp(v, wanted) == 0;
}

static bool next_is_number(struct lines *l, const char *name, unsigned long wanted)
{
    char text[24];
    snprintf(text, sizeof text, "%lu", wanted);
    return next_is(l, name, text);
}

/* A rate, and where `rest` is not NULL the word after it. "nan" stands for not known. */
static bool next_rate(struct lines *l, const char *name, double *out, const char **rest)
{
    const char *v = next_value(l, name);
    char *end;
    if (!v || isspace((unsigned char)*v)) return false;
    *out = strtod(v, &end);
    if (end == v || (!isnan(*out) && !(*out > 0 && *out < WORST))) return false;
    if (!rest) return *end == 0;
    *rest = end + 1;
    return *end == ' ';
}

static const char *kernel_named(const char *name, enum roof_kind kind)
{
    const struct roof_kernel *const lists[] = {roof_kernels_native, roof_kernels_plain};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct roof_kernel *k = lists[i]; k->name; k++)
            if (k->kind == kind && strcmp(k->name, name) == 0) return k->name;
    return NULL;
}

static bool is_recent(const char *text, int64_t now)
{
    char *end;
    if (!text || !isdigit((unsigned char)*text)) return false;
    long long at = strtoll(text, &end, 10);
    return *end == 0 && at <= now && now - at <= (int64_t)ROOF_DAYS_MAX * 24 * 3600;
}

static bool read_rates(struct roof *r, struct lines *l)
{
    const char *kernel;
    if (!next_rate(l, "flops", &r->flops, &kernel) || isnan(r->flops)) return false;
    if (!(r->kernel = kernel_named(kernel, ROOF_FLOAT))) return false;
    if (!next_rate(l, "int_ops", &r->int_ops, &kernel)) return false;
    r->int_kernel = kernel_named(kernel, ROOF_INT);
    if (isnan(r->int_ops) != !r->int_kernel) return false;
    if (!next_rate(l, "read", &r->read, NULL) || !next_rate(l, "triad", &r->triad, NULL)) return false;
    r->bandwidth = fmax(r->read, r->triad); /* NAN only if both are */
    return l->at == l->end;
}

bool roof_cache_read(struct roof *out, const struct roof_options *o, int64_t now, const char *text, size_t n)
{
    struct lines l = {.at = text, .end = text + n};
    struct roof r = {.threads = o->threads, .cached = true};
    if (!next_is(&l, HEAD, "") || !next_is(&l, "host", o->fingerprint)) return false;
    if (!next_is_number(&l, "threads", o->threads)) return false;
    if (!next_is_number(&l, "kernels", ROOF_KERNELS_VERSION)) return false;
    if (!is_recent(next_value(&l, "at"), now)) return false;
    const char *when = next_value(&l, "measured");
    if (!when || strlen(when) != strlen("2026-11-15T08:40:00Z")) return false;
    for (const char *c = when; *c; c++)
        if (!isdigit((unsigned char)*c) && !strchr("-:TZ", *c)) return false;
    snprintf(r.measured, sizeof r.measured, "%.31s", when);
    if (!read_rates(&r, &l)) return false;
    *out = r;
    return true;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* False: nothing is kept. A fingerprint becomes part of a name, so only plain ones. */
static bool file_name(const struct roof_options *o, char *out, size_t size)
{
    if (!o->cache_dir || !o->fingerprint || !*o->fingerprint) return false;
    for (const char *c = o->fingerprint; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-') return false;
    return (size_t)snprintf(out, size, "%s/roof-%s-%u.txt", o->cache_dir, o->fingerprint, o->threads) < size;
}

bool roof_cache_load(struct roof *out, const struct roof_options *o)
{
    char path[PATH_MAX];
    struct file_view view = FILE_VIEW_INIT;
    if (!file_name(o, path, sizeof path) || file_map(path, &view, NULL) < 0) return false;
    bool good = view.size < 4096 && roof_cache_read(out, o, (int64_t)(clock_unix_ns() / 1000000000u),
                                                    (const char *)view.data, view.size);
    file_unmap(&view);
    return good;
}

void roof_cache_save(const struct roof *r, const struct roof_options *o)
{
    char path[PATH_MAX];
    struct buf text = BUF_INIT;
    if (!file_name(o, path, sizeof path) || file_make_folders(o->cache_dir, NULL) < 0) return;
    roof_cache_write(r, o->fingerprint, (int64_t)(clock_unix_ns() / 1000000000u), &text);
    if (!text.failed) (void)file_write_atomic(path, text.data, text.len, 0, NULL);
    buf_release(&text);
}
