/* SPDX-License-Identifier: MIT
 * memory_symbols.c - names of native functions for the frames of a profile. Frames are shared by the sites that have
 * them: each is looked up once, in place. */
#include <string.h>

#include "analyze/memory/memory_told.h"
#include "core/map.h"
#include "core/mem.h"
#include "symbol/symbol.h"

enum {
    WHYS_MOST = 8
}; /* a process with more libraries that are not here is of another machine: enough is said */

struct memory_names {
    struct arena *arena;
    struct symbols *symbols;
    struct map_u64 done; /* frames, by their address in here */
    const char *whys[WHYS_MOST];
    size_t n_whys;
};

/* A frame's inlined callers stand between it and the frame that called: it becomes the innermost of them. */
static void name_frame(struct memory_names *x, struct memory_frame_named *f)
{
    const struct symbol_place *p = symbols_find(x->symbols, f->file, f->build_id, f->offset);
    struct memory_frame_named *at = f;
    for (size_t i = 0; i < p->n; i++) {
        at->name = arena_str(x->arena, p->frames[i].function);
        at->source = arena_str(x->arena, p->frames[i].file);
        at->line = p->frames[i].line;
        if (i + 1 == p->n) break;
        struct memory_frame_named *caller = arena_new(x->arena, 1, sizeof *caller);
        if (!caller) return;
        *caller = *at;
        at->inlined = true;
        at->caller = caller;
        at = caller;
    }
    if (p->n || p->bare) return;
    for (size_t i = 0; i < x->n_whys; i++)
        if (strcmp(x->whys[i], p->why) == 0) return;
    if (x->n_whys < WHYS_MOST) x->whys[x->n_whys++] = p->why;
}

/* Who lies may have made a circle: a frame that was seen ends the walk, as those behind it were seen, too. */
tare_status memory_names_stack(struct memory_names *x, const struct memory_frame_named *f, tare_error *err)
{
    for (; f; f = f->caller) {
        uint64_t key = (uint64_t)(uintptr_t)f;
        if (map_u64_find(&x->done, key)) break;
        tare_status s = map_u64_put(&x->done, key, 1, err);
        if (s != TARE_OK) return s;
        const struct memory_frame_named *caller = f->caller;
        if (f->kind == MEMORY_NATIVE && f->file) name_frame(x, (struct memory_frame_named *)(uintptr_t)f);
        while (f->caller != caller) f = f->caller; /* over what was put in */
    }
    return TARE_OK;
}

static tare_status name_process(struct memory_names *x, struct memory_process *p, tare_error *err)
{
    x->n_whys = 0;
    for (size_t i = 0; i < p->n_sites; i++) {
        tare_status s = memory_names_stack(x, p->sites[i].frame, err);
        if (s != TARE_OK) return s;
    }
    const char **notes = arena_new(x->arena, p->n_notes + x->n_whys, sizeof *notes);
    if (!notes || !x->n_whys) return x->arena->failed ? error_nomem(err, "names of functions") : TARE_OK;
    if (p->n_notes) memcpy(notes, p->notes, p->n_notes * sizeof *notes);
    for (size_t i = 0; i < x->n_whys; i++)
        notes[p->n_notes + i] = arena_printf(x->arena, "names of functions: %s", x->whys[i]);
    p->notes = notes;
    p->n_notes += x->n_whys;
    return x->arena->failed ? error_nomem(err, "names of functions") : TARE_OK;
}

struct memory_names *memory_names_new(struct arena *arena, tare_error *err)
{
    struct memory_names *x = mem_new(1, sizeof *x);
    if (!x) {
        error_nomem(err, "names of functions");
        return NULL;
    }
    x->arena = arena;
    x->symbols = symbols_new(NULL, err);
    if (x->symbols) return x;
    mem_free(x);
    return NULL;
}

void memory_names_restart(struct memory_names *x)
{
    map_u64_release(&x->done);
    x->done = (struct map_u64)MAP_U64_INIT;
}

void memory_names_free(struct memory_names *x)
{
    if (!x) return;
    map_u64_release(&x->done);
    symbols_free(x->symbols);
    mem_free(x);
}

tare_status memory_profile_symbols(struct memory_profile *p, tare_error *err)
{
    struct memory_names *x = memory_names_new(&p->arena, err);
    tare_status s = x ? TARE_OK : TARE_NOMEM;
    for (size_t i = 0; s == TARE_OK && i < p->n; i++) s = name_process(x, &p->processes[i], err);
    memory_names_free(x);
    return s;
}
