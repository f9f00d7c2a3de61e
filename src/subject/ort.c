/* SPDX-License-Identifier: MIT
 * ort.c - see ort.h. */
#include "subject/ort.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/mem.h"
#include "model/onnx/onnx.h"

/* ---- the table of functions ---- */

struct slot_row {
    const char *name;
    size_t offset; /* in struct ort_calls */
    unsigned slot;
    int since;
};

static const struct slot_row slot_rows[] = {
#define X(name, slot, since, result, arguments) {#name, offsetof(struct ort_calls, name), slot, since},
    ORT_SLOTS(X)
#undef X
};

/* The one exported function gives two: a table by API version, and the version as text. */
struct ort_api_base {
    const void *(*get_api)(uint32_t version);
    const char *(*get_version_string)(void);
};
typedef const struct ort_api_base *get_base_function(void);

static void fill_calls(struct ort *o, const void *table)
{
    for (size_t i = 0; i < sizeof slot_rows / sizeof *slot_rows; i++) {
        const struct slot_row *row = &slot_rows[i];
        if (row->since > o->api) continue; /* beyond the end of this library's table */
        memcpy((char *)&o->call + row->offset, (const char *)table + row->slot * sizeof(void *),
               sizeof(void *));
    }
}

int ort_version_minor(const char *version)
{
    char *end;
    if (strncmp(version, "1.", 2) != 0 || version[2] < '0' || version[2] > '9') return -1;
    unsigned long minor = strtoul(version + 2, &end, 10);
    return (*end == '.' || *end == 0 || *end == '-') && minor < 100000 ? (int)minor : -1;
}

/* ---- the log: one for the process, since the runtime has one environment per process ---- */

enum { LOG_SIZE = 400 };
static struct {
    pthread_mutex_t lock;
    char text[LOG_SIZE];
    size_t len;
} ort_log = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void log_line(void *param, int severity, const char *category, /* its type is the runtime's */
                     const char *id, const char *where, const char *text)
{
    (void)param, (void)severity, (void)category, (void)id, (void)where;
    size_t n = text ? strlen(text) : 0;
    if (n == 0) return;
    if (n > LOG_SIZE / 2) n = LOG_SIZE / 2;
    pthread_mutex_lock(&ort_log.lock);
    if (ort_log.len + n + 2 >= LOG_SIZE) ort_log.len = 0; /* only the newest matter */
    if (ort_log.len) ort_log.text[ort_log.len++] = ';';
    memcpy(ort_log.text + ort_log.len, text, n);
    ort_log.len += n;
    ort_log.text[ort_log.len] = 0;
    pthread_mutex_unlock(&ort_log.lock);
}

void ort_log_take(char *out, size_t size)
{
    pthread_mutex_lock(&ort_log.lock);
    snprintf(out, size, "%s", ort_log.len ? ort_log.text : "");
    ort_log.len = 0;
    pthread_mutex_unlock(&ort_log.lock);
    for (char *p = out; *p; p++) {
        if (*p == '\n' || *p == '\t') *p = ' ';
    }
}

/* ---- errors ---- */

/* Codes of the runtime; what stands for bad input and what for a refusal. */
static tare_status status_of(int code)
{
    static const tare_status by_code[] = {
        [1] = TARE_UNSUPPORTED, [2] = TARE_INVALID, [3] = TARE_IO,           [4] = TARE_INVALID,
        [5] = TARE_UNSUPPORTED, [6] = TARE_INVALID, [7] = TARE_FORMAT,       [8] = TARE_INVALID,
        [9] = TARE_UNSUPPORTED, [10] = TARE_FORMAT, [11] = TARE_UNSUPPORTED,
    };
    return code > 0 && code < (int)(sizeof by_code / sizeof *by_code) ? by_code[code] : TARE_UNSUPPORTED;
}

static void one_line(char *text)
{
    size_t n = strlen(text);
    while (n && (text[n - 1] == '\n' || text[n - 1] == ' ')) text[--n] = 0;
    for (char *p = text; *p; p++) {
        if (*p == '\n' || *p == '\t' || *p == '\r') *p = ' ';
    }
}

tare_status ort_check(const struct ort *o, struct ort_status *st, tare_error *err, const char *what, ...)
{
    if (!st) return TARE_OK;
    char context[200], text[400];
    va_list args;
    va_start(args, what);
    vsnprintf(context, sizeof context, what, args);
    va_end(args);
    const char *words = o->call.GetErrorMessage(st);
    snprintf(text, sizeof text, "%s", words ? words : "");
    tare_status s = status_of(o->call.GetErrorCode(st));
    o->call.ReleaseStatus(st);
    if (!text[0]) ort_log_take(text, sizeof text);
    one_line(text);
    return error_set(err, s, "%s: ONNX Runtime: %s", context, text[0] ? text : "failed and does not say why");
}

bool ort_done(const struct ort *o, struct ort_status *st)
{
    if (st) o->call.ReleaseStatus(st);
    return !st;
}

const char *ort_kind_name(int kind)
{
    static const char *const names[] = {
        "a value of unknown kind", "a tensor",        "a sequence",       "a map",
        "an opaque value",         "a sparse tensor", "an optional value"};
    return kind >= 0 && kind < (int)(sizeof names / sizeof *names) ? names[kind] : names[0];
}

/* From 24 on the numbers differ: what the runtime calls 24, 25, 26. Below, they are the same. */
static const int last_types[] = {ONNX_UINT2, ONNX_INT2, ONNX_FLOAT8E8M0};
enum { LAST_FROM = 24, LAST_TO = 26 };

int ort_type_from_onnx(int type)
{
    for (int i = 0; i <= LAST_TO - LAST_FROM; i++)
        if (last_types[i] == type) return LAST_FROM + i;
    return type < 0 || type > ONNX_INT2 ? ONNX_UNDEFINED : type;
}

int ort_type_to_onnx(int type)
{
    if (type < 0 || type > LAST_TO) return ONNX_UNDEFINED;
    return type < LAST_FROM ? type : last_types[type - LAST_FROM];
}

/* ---- loading ---- */

/* Before 1.19 the Python wheel has the runtime inside its extension module, which shows nothing of it. */
static tare_status no_entry(const char *path, tare_error *err)
{
    if (strstr(path, "pybind11_state"))
        return error_set(
            err, TARE_UNSUPPORTED,
            "%s: this Python module hides ONNX Runtime's C interface; the package has a usable library from "
            "1.19 on: pip install 'onnxruntime>=1.19'",
            path);
    return error_set(err, TARE_INVALID, "%s: no ONNX Runtime: it has no function OrtGetApiBase", path);
}

/* The version decides which interface may be asked for: a newer one than the library has makes it print. */
static tare_status take_table(struct ort *o, tare_error *err)
{
    get_base_function *entry;
    void *symbol = dlsym(o->handle, "OrtGetApiBase");
    if (!symbol) return no_entry(o->path, err);
    memcpy(&entry, &symbol, sizeof entry);
    const struct ort_api_base *base = entry();
    const char *version = base ? base->get_version_string() : NULL;
    if (!version) return error_set(err, TARE_UNSUPPORTED, "%s: this ONNX Runtime gives no version", o->path);
    snprintf(o->version, sizeof o->version, "%s", version);
    o->minor = ort_version_minor(o->version);
    if (o->minor < 0)
        return error_set(err, TARE_UNSUPPORTED,
                         "%s: ONNX Runtime '%s': only versions 1.%d and up of major version 1 are known",
                         o->path, o->version, ORT_MINOR_MIN);
    if (o->minor < ORT_MINOR_MIN)
        return error_set(err, TARE_UNSUPPORTED, "%s: ONNX Runtime %s is too old, 1.%d or newer is needed",
                         o->path, o->version, ORT_MINOR_MIN);
    o->api = o->minor < ORT_API_MAX ? o->minor : ORT_API_MAX;
    const void *table = base->get_api((uint32_t)o->api); /* never one that it lacks: it would print */
    if (!table)
        return error_set(err, TARE_UNSUPPORTED, "%s: ONNX Runtime %s refuses API %d", o->path, o->version,
                         o->api);
    fill_calls(o, table);
    return TARE_OK;
}

/* dlopen maps segments beyond the end of a file cut short, and the process dies of SIGBUS when it touches them. */
static tare_status check_whole(const char *path, tare_error *err)
{
    struct file_view f = FILE_VIEW_INIT;
    if (!strchr(path, '/') || file_map(path, &f, NULL) != TARE_OK) return TARE_OK; /* dlopen will say why */
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)(const void *)f.data;
    bool whole = true, elf = f.size >= sizeof *h && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
                             h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_phentsize == sizeof(Elf64_Phdr);
    if (elf) whole = h->e_phoff <= f.size && (f.size - h->e_phoff) / sizeof(Elf64_Phdr) >= h->e_phnum;
    for (unsigned i = 0; elf && whole && i < h->e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, f.data + h->e_phoff + i * sizeof p, sizeof p);
        whole = p.p_type != PT_LOAD || (p.p_offset <= f.size && p.p_filesz <= f.size - p.p_offset);
    }
    file_unmap(&f);
    return whole ? TARE_OK : error_set(err, TARE_UNSUPPORTED, "%s: cut short: smaller than it says it is", path);
}

/* RTLD_LOCAL: nothing else in this process shall bind to its symbols. dlerror() may begin with the path;
 * the message says it once. */
static tare_status load_library(struct ort *o, tare_error *err)
{
    tare_status whole = check_whole(o->path, err);
    if (whole < 0) return whole;
    o->handle = dlopen(o->path, RTLD_NOW | RTLD_LOCAL);
    if (!o->handle) {
        const char *why = dlerror(), *lead = ": ";
        if (!why) why = "unknown cause";
        if (strncmp(why, o->path, strlen(o->path)) == 0) { /* it says the path itself */
            why += strlen(o->path);
            lead = "";
        }
        return error_set(err, TARE_UNSUPPORTED, "%s%s%s: cannot be loaded", o->path, lead, why);
    }
    tare_status s = take_table(o, err);
    if (s < 0) return s;
    struct ort_status *st = o->call.CreateEnvWithCustomLogger(log_line, NULL, 2, "tare", &o->env);
    s = ort_check(o, st, err, "%s: making its environment", o->path);
    if (s < 0) return s;
    ort_done(o, o->call.DisableTelemetryEvents(o->env)); /* builds without telemetry may say so */
    return TARE_OK;
}

tare_status ort_open(struct ort **out, const char *path, tare_error *err)
{
    char full[PATH_MAX]; /* where the file can be found by itself; a bare name goes to ld.so */
    const char *use = strchr(path, '/') && realpath(path, full) ? full : path;
    struct ort *o = mem_new(1, sizeof *o);
    if (o) o->path = mem_strdup(use);
    tare_status s = o && o->path ? load_library(o, err)
                                 : error_set(err, TARE_NOMEM, "out of memory to load %s", path);
    if (s < 0) {
        ort_close(o);
        return s;
    }
    *out = o;
    return TARE_OK;
}

void ort_close(struct ort *o)
{
    if (!o) return;
    if (o->env) o->call.ReleaseEnv(o->env);
    if (o->handle) dlclose(o->handle);
    mem_free(o->path);
    mem_free(o);
}
