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
enum { FILE_MOST = 4096 };

/* ---- text ------------------------------------------------------------------------------------ */

void roof_cache_write(const struct roof *r, const char *fingerprint, int64_t now, struct buf *out)
{
    buf_printf(out, HEAD "\nhost %s\nthreads %u\nkernels %d\nat %" PRId64 "\nmeasured %s\n", fingerprint,
               r->threads, ROOF_KERNELS_VERSION, now, r->measured);
    buf_printf(out, "flops %.9g %s\n", r->flops, r->kernel);
    buf_printf(out, "int_ops %.9g %s\n", r->int_ops, r->int_kernel ? r->int_kernel : "none");
    buf_printf(out, "read %.9g\ntriad %.9g\n", r->read, r->triad);
}

/* The rest of the text after "name " at the start of a line; "" where there is no such line. */
static const char *value_of(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0 && line[n] == ' ') return line + n + 1;
    }
    return "";
}

/* Its first word. */
static void copy_word(char out[32], const char *from)
{
    snprintf(out, 32, "%.*s", (int)strcspn(from, " \n"), from);
}

static const char *kernel_named(const char *name, enum roof_kind kind)
{
    const struct roof_kernel *const lists[] = {roof_kernels_native, roof_kernels_plain};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct roof_kernel *k = lists[i]; k->name; k++)
            if (k->kind == kind && strcmp(k->name, name) == 0) return k->name;
    return NULL;
}

/* A rate and the kernel after it, NULL where no kernel has that name. */
static double rate_and_kernel(const char *value, enum roof_kind kind, const char **kernel)
{
    char *end, name[32];
    double rate = strtod(value, &end);
    copy_word(name, end + (*end == ' '));
    *kernel = kernel_named(name, kind);
    return rate;
}

static bool is_rate(double v) /* "nan" stands for not known */
{
    return isnan(v) || (v > 0 && v < WORST);
}

/* Reads what it can, then writes that once more: a text that differs from it in any byte is damaged, or of another
 * host, number of threads or version. */
bool roof_cache_read(struct roof *out, const struct roof_options *o, int64_t now, const char *text, size_t n)
{
    char copy[FILE_MOST];
    struct roof r = {.threads = o->threads, .cached = true};
    if (n >= sizeof copy || memchr(text, 0, n)) return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    int64_t at = strtoll(value_of(copy, "at"), NULL, 10);
    copy_word(r.measured, value_of(copy, "measured"));
    r.flops = rate_and_kernel(value_of(copy, "flops"), ROOF_FLOAT, &r.kernel);
    r.int_ops = rate_and_kernel(value_of(copy, "int_ops"), ROOF_INT, &r.int_kernel);
    r.read = strtod(value_of(copy, "read"), NULL);
    r.triad = strtod(value_of(copy, "triad"), NULL);
    r.bandwidth = fmax(r.read, r.triad); /* NAN only if both are */
    if (at < 0 || at > now || now - at > (int64_t)ROOF_DAYS_MAX * 24 * 3600) return false;
    if (!r.kernel || isnan(r.flops) || isnan(r.int_ops) != !r.int_kernel) return false;
    if (!is_rate(r.flops) || !is_rate(r.int_ops) || !is_rate(r.read) || !is_rate(r.triad)) return false;
    size_t time_bytes = strlen("2026-11-15T08:40:00Z");
    if (strlen(r.measured) != time_bytes || strspn(r.measured, "0123456789-:TZ") != time_bytes) return false;
    struct buf again = BUF_INIT;
    roof_cache_write(&r, o->fingerprint, at, &again);
    bool same = !again.failed && again.len == n && memcmp(again.data, text, n) == 0;
    buf_release(&again);
    if (same) *out = r;
    return same;
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

bool roof_recall(struct roof *out, const struct roof_options *o)
{
    char path[PATH_MAX];
    struct file_view view = FILE_VIEW_INIT;
    if (!file_name(o, path, sizeof path) || file_map(path, &view, NULL) < 0) return false;
    bool good =
        roof_cache_read(out, o, (int64_t)(clock_unix_ns() / 1000000000u), (const char *)view.data, view.size);
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
