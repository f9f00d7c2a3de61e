/* SPDX-License-Identifier: MIT
 * scopes.c - which scopes of tare are open where something is allocated: libtare keeps them for the thread, and says
 * which the innermost is. Of the last recorder that began, where a program has several. */
#include <dlfcn.h>
#include <link.h>

#include "agent/hot.h"
#include "trace/open_scopes.h"

enum { NAME_MOST = 500 };

const struct open_scopes *scopes_told;

void tare_memory_scopes(const struct open_scopes *scopes);
__attribute__((visibility("default"))) void tare_memory_scopes(const struct open_scopes *scopes)
{
    if (scopes && scopes->version == OPEN_SCOPES_VERSION)
        __atomic_store_n(&scopes_told, scopes, __ATOMIC_RELEASE);
}

void scopes_find(void)
{
    for (const struct link_map *l = _r_debug.r_map; l && !scopes_told; l = l->l_next) {
        void *h = l->l_name[0] ? dlopen(l->l_name, RTLD_NOLOAD | RTLD_LAZY) : NULL;
        if (h) tare_memory_scopes(dlsym(h, OPEN_SCOPES_TABLE));
        if (h) dlclose(h);
    }
}

/* Of a path that was met before it is known without asking for its name. */
static uint64_t number_of(struct slot *s, const struct open_scopes *scopes, const void *scope,
                          uint64_t thread)
{
    uint64_t key = ((uint64_t)(uintptr_t)scope ^ thread << 40) * UINT64_C(0x9FB21C651E98DF25);
    char text[NAME_MOST];
    bool fresh;
    key ^= key >> 32 ^ agent->uid;
    uint32_t number = known_number(key, &fresh);
    if (!fresh && number) return number;
    scopes->name(scope, text, sizeof text);
    number = (uint32_t)name_number(s, text);
    if (fresh) known_tell(key, number);
    return number;
}

uint32_t scopes_frames(struct slot *s, struct last_stack *last)
{
    const struct open_scopes *scopes = __atomic_load_n(&scopes_told, __ATOMIC_ACQUIRE);
    uint64_t thread = 0;
    const void *around[SCOPES_MOST];
    uint32_t n = 0, first = UINT32_MAX;
    const void *scope = scopes ? scopes->innermost(&thread) : NULL;
    if (scope == last->scope && thread == last->scope_of) return first;
    last->scope = scope;
    last->scope_of = thread;
    for (; scope && n < SCOPES_MOST; scope = scopes->around(scope)) around[n++] = scope;
    for (uint32_t i = 0; i < n; i++) {
        struct frame f = {.kind = MEMORY_SCOPE, .where = number_of(s, scopes, around[n - 1 - i], thread)};
        struct frame *was = &last->frames[i];
        if (i < last->n_scopes && was->where == f.where) continue;
        *was = f;
        if (first == UINT32_MAX) first = i;
    }
    if (n != last->n_scopes) {
        if (first == UINT32_MAX) first = n;
        last->n_python = 0; /* they lie elsewhere in `frames` now */
        last->whole = false;
    }
    last->n_scopes = n;
    return first;
}
