/* SPDX-License-Identifier: MIT
 * symbol.c - see symbol.h. Here is what was asked already, and the child that is asked; a module that it died of is not
 * asked for again. */
#include "symbol/symbol.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"
#include "symbol/demangle.h"
#include "symbol/symbol_read.h"

/* Debug information of the largest libraries is some GB, mapped; the first question to one can take seconds. */
#define CHILD_MEMORY (UINT64_C(8) << 30)
enum { CHILD_CPU_MS = 20000, CHILD_CPU_S = 600, CHILD_WALL_MS = 60000, CHILD_DEATHS = 8 };

struct module {
    char id[SYMBOL_ID_MOST];
    char *path;
    bool died;
};

struct symbols {
    struct arena arena;
    struct map_str modules; /* build id, blank, path -> place in `all` */
    VEC(struct module) all;
    struct map_str places; /* module and address, 12 bytes -> place in `known` */
    VEC(const struct symbol_place *) known;
    struct helper child;
    struct helper_work work;
    char *debug_path;
};

static const struct symbol_place no_memory = {.why = "there is no memory for it"};
static const struct symbol_place no_path = {.why = "it is not known which file it is of"};
static const struct symbol_place died = {
    .why = "its symbols could not be read in bounded memory and time: the file may be damaged"};

struct symbols *symbols_new(const char *debug_path, tare_error *err)
{
    struct symbols *s = mem_new(1, sizeof *s);
    if (s && debug_path) s->debug_path = mem_strdup(debug_path);
    if (!s || (debug_path && !s->debug_path)) {
        mem_free(s);
        error_nomem(err, "names of functions");
        return NULL;
    }
    s->work = (struct helper_work){.fn = symbol_answer,
                                   .ctx = s->debug_path,
                                   .memory_more = CHILD_MEMORY,
                                   .cpu_ms = CHILD_CPU_MS,
                                   .cpu_s = CHILD_CPU_S,
                                   .wall_ms = CHILD_WALL_MS,
                                   .deaths_most = CHILD_DEATHS};
    return s;
}

void symbols_free(struct symbols *s)
{
    if (!s) return;
    helper_end(&s->child);
    demangle_end();
    for (size_t i = 0; i < s->all.n; i++) mem_free(s->all.items[i].path);
    vec_release(&s->all);
    vec_release(&s->known);
    map_str_release(&s->modules);
    map_str_release(&s->places);
    arena_release(&s->arena);
    mem_free(s->debug_path);
    mem_free(s);
}

/* ---- answers ---- */

/* The next text of an answer, or NULL. */
static const char *take_text(const char **at, const char *end)
{
    const char *text = *at, *stop = memchr(text, 0, (size_t)(end - text));
    if (!stop) return NULL;
    *at = stop + 1;
    return text;
}

static void name_frame(struct arena *a, struct symbol_frame *f, const char *name, const char *file)
{
    if (name[0]) {
        f->full = demangle(a, arena_str(a, name));
        f->function = demangle_short(a, f->full);
    }
    if (file[0]) f->file = arena_str(a, file);
}

bool symbol_unpack(struct arena *a, const char *answer, size_t bytes, struct symbol_place *out)
{
    const char *at = answer + 1, *end = answer + bytes;
    if (!bytes) return false;
    *out = (struct symbol_place){.bare = answer[0] == SYMBOL_BARE};
    if (answer[0] == SYMBOL_WHY || out->bare) {
        out->why = arena_str_n(a, at, (size_t)(end - at));
        return out->why != NULL;
    }
    if (answer[0] != SYMBOL_FOUND) return false;
    struct symbol_frame *frames = arena_new(a, SYMBOL_FRAMES_MOST, sizeof *frames);
    size_t n = 0;
    for (; frames && at < end && n < SYMBOL_FRAMES_MOST; n++) {
        const char *line = take_text(&at, end), *name = line ? take_text(&at, end) : NULL,
                   *file = name ? take_text(&at, end) : NULL;
        if (!file) return false;
        frames[n].line = (uint32_t)strtoul(line, NULL, 10);
        name_frame(a, &frames[n], name, file);
    }
    out->frames = frames;
    out->n = n;
    return n > 0 && !a->failed;
}

/* ---- questions ---- */

static struct module *module_of(struct symbols *s, const char *path, const char *id)
{
    struct buf key = BUF_INIT;
    uint64_t *at;
    buf_printf(&key, "%s %s", id, path);
    size_t n = s->modules.n;
    tare_status st = buf_status(&key, NULL);
    if (st == TARE_OK) st = map_str_ref(&s->modules, key.data, key.len, &at, NULL);
    buf_release(&key);
    if (st != TARE_OK) return NULL;
    if (s->modules.n == n) return *at < s->all.n ? &s->all.items[*at] : NULL;
    struct module m = {.path = mem_strdup(path)};
    snprintf(m.id, sizeof m.id, "%s", id);
    *at = s->all.n;
    if (!m.path || vec_push(&s->all, m, NULL) != TARE_OK) {
        mem_free(m.path);
        *at = UINT64_MAX;
        return NULL;
    }
    return &s->all.items[s->all.n - 1];
}

static const struct symbol_place *ask(struct symbols *s, struct module *m, uint64_t address)
{
    static char answer[HELPER_BYTES];
    struct buf question = BUF_INIT;
    if (m->died) return &died;
    buf_add(&question, &address, sizeof address);
    buf_add(&question, m->id, strlen(m->id) + 1);
    buf_add(&question, m->path, strlen(m->path));
    ssize_t n = question.failed ? -1 : helper_ask(&s->child, &s->work, question.data, question.len, answer);
    bool failed = question.failed;
    buf_release(&question);
    if (failed) return &no_memory;
    if (n <= 0) {
        m->died = true;
        return &died;
    }
    struct symbol_place *p = arena_new(&s->arena, 1, sizeof *p);
    if (!p) return &no_memory;
    if (symbol_unpack(&s->arena, answer, (size_t)n, p)) return p;
    return s->arena.failed ? &no_memory : &died;
}

const struct symbol_place *symbols_find(struct symbols *s, const char *path, const char *build_id,
                                        uint64_t address)
{
    char key[sizeof address + sizeof(uint32_t)];
    if (!build_id || strlen(build_id) >= SYMBOL_ID_MOST || strcmp(build_id, "-") == 0) build_id = "";
    if (!path || !path[0] || strlen(path) >= SYMBOL_PATH_MOST) return &no_path;
    struct module *m = module_of(s, path, build_id);
    if (!m) return &no_memory;
    uint32_t number = (uint32_t)(m - s->all.items);
    memcpy(key, &address, sizeof address);
    memcpy(key + sizeof address, &number, sizeof number);
    const uint64_t *have = map_str_find(&s->places, key, sizeof key);
    if (have) return s->known.items[*have];
    const struct symbol_place *p = ask(s, m, address);
    if (vec_push(&s->known, p, NULL) == TARE_OK &&
        map_str_put(&s->places, key, sizeof key, s->known.n - 1, NULL) != TARE_OK)
        s->known.n--;
    return p;
}
