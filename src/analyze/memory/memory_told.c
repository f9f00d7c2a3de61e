/* SPDX-License-Identifier: MIT
 * memory_told.c - see memory_told.h. The bytes may be anybody's: parents may be missing, or go in a circle. */
#include "analyze/memory/memory_told.h"

#include <string.h>

void memory_told_release(struct memory_told *t)
{
    for (size_t i = 0; i < sizeof t->number / sizeof *t->number; i++) map_u64_release(&t->number[i]);
    vec_release(&t->records);
    vec_release(&t->modules);
}

tare_status memory_told_add(struct memory_told *t, const struct memory_record *r, struct arena *a,
                            tare_error *err)
{
    struct memory_record kept = *r;
    if (r->kind != MEMORY_NAME && r->kind != MEMORY_MODULE && r->kind != MEMORY_CODE &&
        r->kind != MEMORY_STACK)
        return TARE_OK;
    kept.text = r->text_bytes ? arena_str_n(a, r->text, r->text_bytes) : "";
    if (!kept.text) return error_nomem(err, "the names of a trace");
    tare_status s = map_u64_put(&t->number[r->kind], r->v[0], t->records.n, err);
    if (s == TARE_OK && r->kind == MEMORY_MODULE) s = vec_push(&t->modules, t->records.n, err);
    return s == TARE_OK ? vec_push(&t->records, kept, err) : s;
}

static const struct memory_record *find(const struct memory_told *t, enum memory_kind kind, uint64_t number)
{
    const uint64_t *at = map_u64_find(&t->number[kind], number);
    return at ? &t->records.items[*at] : NULL;
}

static const char *name_of(const struct memory_told *t, uint64_t number)
{
    const struct memory_record *r = find(t, MEMORY_NAME, number);
    return r && r->text_bytes ? r->text : NULL;
}

/* The text of a module: its build id, a blank, its path. */
static const char *path_of(const struct memory_record *module)
{
    const char *blank = strchr(module->text, ' ');
    return blank && blank[1] ? blank + 1 : NULL;
}

static const char *id_of(const struct memory_record *module, struct arena *a)
{
    return arena_str_n(a, module->text, strcspn(module->text, " "));
}

/* A frame that was told before its library was: by the address. Of several that lay there, the one told last. */
static const struct memory_record *module_of(const struct memory_told *t, const struct memory_record *stack)
{
    const struct memory_record *of = find(t, MEMORY_MODULE, stack->STACK.at);
    uint64_t where = stack->STACK.where;
    for (size_t i = stack->STACK.at ? 0 : t->modules.n; !of && i--;) {
        const struct memory_record *m = &t->records.items[t->modules.items[i]];
        if (m->MODULE.start <= where && where < m->MODULE.end) of = m;
    }
    return of;
}

static const char *cut_word(uint64_t why)
{
    switch (why) {
    case MEMORY_CUT_DEPTH: return "more frames than are recorded";
    case MEMORY_CUT_REGISTER: return "a register that is not known of a thread that waits";
    case MEMORY_CUT_STACK: return "the stack could not be read";
    case MEMORY_CUT_NONSENSE: return "unwind tables that make no sense";
    default: return "code without unwind tables";
    }
}

static struct memory_frame_named named(const struct memory_told *t, const struct memory_record *r,
                                       struct arena *a)
{
    struct memory_frame_named f = {.kind = (enum memory_frame)r->STACK.kind};
    const struct memory_record *of;
    switch (r->STACK.kind) {
    case MEMORY_PYTHON:
        of = find(t, MEMORY_CODE, r->STACK.where);
        if (!of) break;
        f.name = name_of(t, of->CODE.name);
        f.file = name_of(t, of->CODE.file);
        f.line = memory_line(of, r->STACK.at);
        f.first_line = of->CODE.first_line;
        break;
    case MEMORY_SCOPE: f.name = name_of(t, r->STACK.where); break;
    case MEMORY_CUT: f.name = cut_word(r->STACK.where); break;
    case MEMORY_NAMED:
        f.kind = MEMORY_NATIVE;
        f.name = name_of(t, r->STACK.where);
        break;
    default: /* native, and what a newer agent may have */
        f.kind = MEMORY_NATIVE;
        of = module_of(t, r);
        f.file = of ? path_of(of) : NULL;
        if (f.file) f.build_id = id_of(of, a);
        f.offset = r->STACK.where - (f.file ? of->MODULE.bias : 0);
    }
    return f;
}

struct memory_frame_named *memory_told_frames(const struct memory_told *t, struct arena *a)
{
    size_t n = t->records.n; /* a frame each, though some are names */
    struct memory_frame_named *all = n ? arena_new(a, n, sizeof *all) : NULL;
    for (size_t i = 0; all && i < n; i++) {
        const struct memory_record *r = &t->records.items[i];
        if (r->kind != MEMORY_STACK) continue;
        all[i] = named(t, r, a);
        all[i].caller = memory_told_frame(t, all, r->STACK.parent);
    }
    return all;
}

const struct memory_frame_named *memory_told_frame(const struct memory_told *t,
                                                   const struct memory_frame_named *all, uint64_t stack)
{
    const uint64_t *at = map_u64_find(&t->number[MEMORY_STACK], stack);
    return at && all ? &all[*at] : NULL;
}
