/* SPDX-License-Identifier: MIT
 * run.c - see run.h: making and filling in a document. */
#include "run/run.h"

#include <math.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/ulid.h"
#include "core/unit.h"

#ifndef TARE_COMMIT
#define TARE_COMMIT ""
#endif

enum { NAME_MAX_BYTES = 120, NAME_CUT = 106 }; /* of a subject's name */
#define FNV_START UINT64_C(0xcbf29ce484222325)

static const char *utc_text(struct arena *a, uint64_t unix_ns)
{
    char day[32];
    struct tm tm;
    time_t seconds = (time_t)(unix_ns / 1000000000u);
    if (!gmtime_r(&seconds, &tm) || strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm) == 0) return NULL;
    return arena_printf(a, "%s.%03uZ", day, (unsigned)(unix_ns / 1000000u % 1000u));
}

tare_status run_init(struct run *r, const char *kind, tare_error *err)
{
    char id[ULID_SIZE];
    tare_status s = ulid_new(id, err);
    if (s < 0) return s;
    struct run fresh = {.arena = ARENA_INIT};
    fresh.id = arena_str(&fresh.arena, id);
    fresh.kind = arena_str(&fresh.arena, kind);
    fresh.created = utc_text(&fresh.arena, clock_unix_ns());
    fresh.tool.version = TARE_VERSION;
    fresh.tool.commit = TARE_COMMIT[0] ? TARE_COMMIT : NULL;
    if (fresh.arena.failed || !fresh.created) {
        arena_release(&fresh.arena);
        return error_set(err, TARE_NOMEM, "out of memory for a new run");
    }
    *r = fresh;
    return TARE_OK;
}

void run_release(struct run *r)
{
    arena_release(&r->arena);
    memset(r, 0, sizeof *r);
}

struct run_case *run_add_case(struct run *r, const char *name)
{
    struct run_case *c = RUN_LIST_ADD(&r->arena, &r->cases);
    if (c) c->name = arena_str(&r->arena, name);
    return c;
}

struct run_finding *run_add_finding(struct run *r, const char *id, const char *severity)
{
    struct run_finding *f = RUN_LIST_ADD(&r->arena, &r->findings);
    if (!f) return NULL;
    f->id = arena_str(&r->arena, id);
    f->severity = arena_str(&r->arena, severity);
    return f;
}

struct run_target *run_add_target(struct run *r, const char *metric, const char *op, double value)
{
    struct run_target *t = RUN_LIST_ADD(&r->arena, &r->targets);
    if (!t) return NULL;
    t->metric = arena_str(&r->arena, metric);
    t->op = arena_str(&r->arena, op);
    t->value = value;
    return t;
}

struct run_gpu_device *run_add_gpu_device(struct run *r, struct run_case *c)
{
    return RUN_LIST_ADD(&r->arena, &c->gpu.devices);
}

struct run_layer *run_add_layer(struct run *r, struct run_case *c, const char *name)
{
    struct run_layer *l = RUN_LIST_ADD(&r->arena, &c->layers);
    if (l) l->name = arena_str(&r->arena, name);
    return l;
}

struct run_launch *run_add_launch(struct run *r, struct run_case *c)
{
    run_map_drop(&c->unknown, "launches"); /* why there are none */
    return RUN_LIST_ADD(&r->arena, &c->launches);
}

struct run_anchored *run_add_anchored(struct run *r, struct run_case *c)
{
    run_map_drop(&c->unknown, "anchored");
    return RUN_LIST_ADD(&r->arena, &c->anchored);
}

struct run_alloc_size *run_add_alloc_size(struct run *r, struct run_case *c)
{
    return RUN_LIST_ADD(&r->arena, &c->allocations.sizes);
}

struct run_alloc_site *run_add_alloc_site(struct run *r, struct run_case *c)
{
    return RUN_LIST_ADD(&r->arena, &c->allocations.sites);
}

void run_set_samples(struct run *r, struct run_case *c, const uint64_t *ns, size_t n, const char *kept)
{
    struct run_samples *raw = &c->samples_raw;
    if (raw->cap == 0 || raw->cap > RUN_SAMPLES_MAX) raw->cap = RUN_SAMPLES_MAX;
    if (n > raw->cap) n = raw->cap;
    uint64_t *copy = arena_new(&r->arena, n, sizeof *copy);
    if (!copy) return;
    if (n) memcpy(copy, ns, n * sizeof *copy);
    raw->ns = copy;
    raw->n = n;
    raw->kept = arena_str(&r->arena, kept);
    raw->known = true;
}

void run_set_histogram(struct run *r, struct run_histogram *to, const struct hist *h)
{
    uint64_t *copy = arena_new(&r->arena, h->n_counts, sizeof *copy);
    if (!copy) return;
    if (h->n_counts) memcpy(copy, h->counts, h->n_counts * sizeof *copy);
    *to = (struct run_histogram){true, HIST_SCALE, h->first, h->zeros, copy, h->n_counts};
}

double run_case_runs(const struct run_case *c)
{
    if (!c->samples.known) return NAN;
    return (double)c->samples.v * (c->calls_per_sample.known ? (double)c->calls_per_sample.v : 1);
}

const char *run_cost_bound(const struct run_cost *c)
{
    bool less = c->complete.known && !c->complete.v, more = c->at_most.known && c->at_most.v;
    if (less) return more ? "~ " : ">= ";
    return more ? "<= " : "";
}

/* ---- time ---- */

int64_t run_unix_ms(const char *created)
{
    int64_t unix_s;
    const char *rest = unit_date(created, "%Y-%m-%dT%H:%M:%S", &unix_s);
    if (!rest) return 0;
    int64_t ms = 0;
    for (int digits = 0, scale = 100;
         rest[0] == '.' && digits < 3 && rest[1 + digits] >= '0' && rest[1 + digits] <= '9';
         digits++, scale /= 10)
        ms += (rest[1 + digits] - '0') * scale;
    return unix_s * 1000 + ms;
}

/* ---- the subject ---- */

static uint64_t fnv(uint64_t hash, const char *text)
{
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (hash ^ '\n') * UINT64_C(0x100000001b3);
}

/* Blanks and what does not print become one blank. */
static void add_word(struct buf *to, const char *word)
{
    for (const char *p = word; *p; p++) {
        bool blank = (unsigned char)*p <= ' ' || *p == 127;
        if (!blank)
            buf_add_char(to, *p);
        else if (to->len && to->data[to->len - 1] != ' ')
            buf_add_char(to, ' ');
    }
}

/* What is too long for a line ends in a hash of the whole, so that two such subjects stay two. */
static const char *name_that_fits(struct arena *a, const char *name, size_t n, uint64_t hash)
{
    size_t cut = NAME_CUT;
    if (n <= NAME_MAX_BYTES) return arena_str_n(a, name, n);
    while ((name[cut] & 0xc0) == 0x80) cut--; /* not within a character */
    return arena_printf(a, "%.*s.. #%08" PRIx32, (int)cut, name, (uint32_t)(hash ^ hash >> 32));
}

/* As it is written, no link followed: "//", "." and ".." are taken out. */
static void add_path(struct buf *to, const char *path)
{
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.') {
            while (to->len && to->data[--to->len] != '/') {
            }
        } else if (n && !(n == 1 && *p == '.')) {
            buf_add_char(to, '/');
            buf_add(to, p, n);
        }
        p += n + (p[n] == '/');
    }
}

void run_describe_model(struct run *r, const char *path)
{
    struct buf at = BUF_INIT, here = BUF_INIT;
    char folder[PATH_MAX] = "";
    if (getcwd(folder, sizeof folder)) add_path(&here, folder);
    if (path[0] != '/') add_path(&at, folder);
    add_path(&at, path);
    const char *name = at.len ? at.data : path;
    size_t n = strlen(name);
    if (folder[0] && n > here.len && name[here.len] == '/' &&
        memcmp(name, here.data ? here.data : "", here.len) == 0)
        name += here.len + 1;
    n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, ".onnx") == 0) n -= 5;
    r->subject.name = name_that_fits(&r->arena, name, n, fnv(FNV_START, name));
    r->subject.path = arena_str(&r->arena, path);
    r->arena.failed |= at.failed || here.failed;
    buf_release(&at);
    buf_release(&here);
}

/* Of a program its folder does not count: a build elsewhere is the same thing, measured again. */
void run_describe_command(struct run *r, const char *const *words, bool shell)
{
    struct arena *a = &r->arena;
    struct run_map all = {0};
    struct buf name = BUF_INIT;
    uint64_t hash = FNV_START;
    const char *slash = shell ? NULL : strrchr(words[0], '/');
    for (size_t i = 0; words[i]; i++) {
        if (i) buf_add_char(&name, ' ');
        add_word(&name, i == 0 && slash && slash[1] ? slash + 1 : words[i]);
        hash = fnv(hash, words[i]);
        run_map_text(a, &all, NULL, words[i]);
    }
    while (name.len && name.data[name.len - 1] == ' ') name.data[--name.len] = 0;
    r->subject.type = "command";
    r->subject.name = name.len ? name_that_fits(a, name.data, name.len, hash) : "sh";
    if (slash) r->subject.path = arena_str(a, words[0]);
    a->failed |= name.failed;
    buf_release(&name);
    run_map_set(a, &r->config, "command", (struct run_value){.kind = RUN_LIST, .items = all});
}

/* ---- fingerprint ---- */

static uint64_t fnv_number(uint64_t hash, bool known, double v)
{
    char text[40];
    snprintf(text, sizeof text, "%.0f", v * 1000); /* thousandths: no decimal point, whatever the locale */
    return fnv(hash, known ? text : "?");
}

/* Memory counts in whole GiB, because what the kernel keeps for itself varies from boot to boot. */
void run_host_fingerprint(const struct run_host *h, char out[RUN_FINGERPRINT_SIZE])
{
    uint64_t hash = FNV_START;
    uint64_t gib = (h->memory_bytes.v >> 30) + ((h->memory_bytes.v & ((UINT64_C(1) << 30) - 1)) != 0);
    hash = fnv(hash, h->arch ? h->arch : "?");
    hash = fnv(hash, h->cpu.model ? h->cpu.model : "?");
    hash = fnv(hash, h->governor ? h->governor : "?");
    hash = fnv_number(hash, h->cpu.cores.known, (double)h->cpu.cores.v);
    hash = fnv_number(hash, h->cpu.usable.known, h->cpu.usable.v);
    hash = fnv_number(hash, h->memory_bytes.known, (double)gib);
    hash = fnv_number(hash, h->is_virtual.known, h->is_virtual.v);
    hash = fnv_number(hash, h->cgroup.memory_limit_bytes.known, (double)h->cgroup.memory_limit_bytes.v);
    for (size_t i = 0; i < h->gpus.n; i++) hash = fnv(hash, h->gpus.at[i]->name ? h->gpus.at[i]->name : "?");
    snprintf(out, RUN_FINGERPRINT_SIZE, "h1-%016" PRIx64, hash);
}
