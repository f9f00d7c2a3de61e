/* SPDX-License-Identifier: MIT
 * gpu_roof_cache.c - see gpu_roof.h. As roof_cache.c: a line per value, "name value"; what it reads it writes once
 * more, and a text that differs from it in any byte is damaged, or of another host or version, and no value. */
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/file.h"
#include "probe/gpu_roof.h"

#define HEAD "tare.gpu-roof/1"
#define WORST 1e19 /* per second */
enum { FILE_MOST = 4096, DAYS_MOST = 30 };

void gpu_roof_write(const struct gpu_roof *r, const char *fingerprint, int64_t now, struct buf *out)
{
    buf_printf(out,
               HEAD "\nhost %s\nat %" PRId64 "\nmeasured %s\ndevice %s\nuuid %s\ndriver %s\nlibrary %s\n",
               fingerprint, now, r->measured, r->device, r->uuid, r->driver, r->library);
    for (int k = 0; k < GPU_ROOF_KINDS; k++) {
        const struct gpu_roof_rate *v = &r->of[k];
        buf_printf(out, "%s %.9g %.9g %s\n", gpu_roof_key(k), v->per_s.value, v->per_s.lo, v->why);
    }
}

/* The rest of the line that begins with "name "; "" where there is none. */
static void value_of(char *out, size_t size, const char *text, const char *name)
{
    size_t n = strlen(name);
    out[0] = 0;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) != 0 || line[n] != ' ') continue;
        snprintf(out, size, "%.*s", (int)strcspn(line + n + 1, "\n"), line + n + 1);
        return;
    }
}

/* "rate lower-bound why": a rate without a reason, or a reason and no rate. */
static bool read_rate(struct gpu_roof_rate *out, const char *text)
{
    char *end;
    double value = strtod(text, &end), lo = strtod(end, &end);
    out->per_s = (struct interval){value, lo, value};
    snprintf(out->why, sizeof out->why, "%s", *end == ' ' ? end + 1 : "");
    if (isnan(value) && isnan(lo)) return true;
    return value > 0 && value < WORST && lo > 0 && lo <= value;
}

bool gpu_roof_read(struct gpu_roof *out, const char *fingerprint, int64_t now, const char *text, size_t n)
{
    char copy[FILE_MOST], line[256];
    struct gpu_roof r = {.cached = true};
    if (n >= sizeof copy || memchr(text, 0, n)) return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    value_of(line, sizeof line, copy, "at");
    int64_t at = strtoll(line, NULL, 10);
    if (at < 0 || at > now || now - at > (int64_t)DAYS_MOST * 24 * 3600) return false;
    value_of(r.measured, sizeof r.measured, copy, "measured");
    value_of(r.device, sizeof r.device, copy, "device");
    value_of(r.uuid, sizeof r.uuid, copy, "uuid");
    value_of(r.driver, sizeof r.driver, copy, "driver");
    value_of(r.library, sizeof r.library, copy, "library");
    for (int k = 0; k < GPU_ROOF_KINDS; k++) {
        value_of(line, sizeof line, copy, gpu_roof_key(k));
        if (!read_rate(&r.of[k], line)) return false;
    }
    struct buf again = BUF_INIT;
    gpu_roof_write(&r, fingerprint, at, &again);
    bool same = !again.failed && again.len == n && memcmp(again.data, text, n) == 0;
    buf_release(&again);
    if (same) *out = r;
    return same;
}

static bool plain(const char *text)
{
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-') return false;
    return *text;
}

static bool file_name(const struct gpu_roof_options *o, const char *uuid, char *out, size_t size)
{
    if (!o->cache_dir || !o->fingerprint || !plain(o->fingerprint) || !plain(uuid)) return false;
    return (size_t)snprintf(out, size, "%s/roof-%s-gpu-%s.txt", o->cache_dir, o->fingerprint, uuid) < size;
}

bool gpu_roof_recall(struct gpu_roof *out, const struct gpu_roof_options *o, const char *uuid,
                     const char *driver)
{
    char path[PATH_MAX];
    struct file_view view = FILE_VIEW_INIT;
    if (!file_name(o, uuid, path, sizeof path) || file_map(path, &view, NULL) < 0) return false;
    bool good = gpu_roof_read(out, o->fingerprint, (int64_t)(clock_unix_ns() / 1000000000u),
                              (const char *)view.data, view.size) &&
                strcmp(out->uuid, uuid) == 0 && strcmp(out->driver, driver) == 0;
    file_unmap(&view);
    return good;
}

/* What failed may work the next time: no full memory, the library found. */
void gpu_roof_save(const struct gpu_roof *r, const struct gpu_roof_options *o)
{
    char path[PATH_MAX];
    struct buf text = BUF_INIT;
    for (int k = 0; k < GPU_ROOF_KINDS; k++)
        if (isnan(r->of[k].per_s.value)) return;
    if (!file_name(o, r->uuid, path, sizeof path) || file_make_folders(o->cache_dir, NULL) < 0) return;
    gpu_roof_write(r, o->fingerprint, (int64_t)(clock_unix_ns() / 1000000000u), &text);
    if (!text.failed) (void)file_write_atomic(path, text.data, text.len, 0, NULL);
    buf_release(&text);
}
