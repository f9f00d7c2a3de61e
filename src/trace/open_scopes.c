/* SPDX-License-Identifier: MIT
 * open_scopes.c - see open_scopes.h. Nothing is paid for it by scopes: what they keep anyway is read, by the thread
 * whose they are. The mapping stays valid after a session, so late readers get old names and no fault. */
#include "trace/open_scopes.h"

#include <dlfcn.h>
#include <string.h>

#include "trace/extent.h"
#include "trace/recorder.h"

/* In a program that is linked without the loader there is nobody to tell either. */
#pragma weak dlsym

static const void *innermost(uint64_t *thread)
{
    const struct thread *t = self_thread();
    uint32_t epoch = thread_epoch(t);
    if (!epoch || !thread_depth(t) || t->hot.tag >> 32 != epoch) return NULL;
    *thread = epoch;
    return thread_at(t);
}

static const void *around(const void *scope)
{
    const struct thread *t = self_thread();
    const struct node *n = scope, *out = n->parent ? node_at(t, n->parent) : NULL;
    return out && out->parent ? out : NULL; /* the root is no scope */
}

static const struct site_entry *site_in(const struct extent *x, uint32_t index)
{
    uint64_t at = sizeof *x;
    while (at + sizeof(struct site_entry) <= x->bytes) {
        const struct site_entry *e = (const void *)((const char *)x + at);
        uint32_t bytes = __atomic_load_n(&e->bytes, __ATOMIC_ACQUIRE);
        if (!bytes || bytes > x->bytes - at) return NULL;
        if (e->index == index) return e;
        at += bytes;
    }
    return NULL;
}

static void name(const void *scope, char *to, size_t bytes)
{
    const struct node *n = scope;
    const char *base = self_thread()->hot.base;
    const struct live_header *h = (const void *)base;
    const struct site_entry *e = NULL;
    uint64_t used = __atomic_load_n(&h->used, __ATOMIC_ACQUIRE);
    for (uint64_t at = LIVE_HEADER_BYTES; !e && at + sizeof(struct extent) <= used;) {
        const struct extent *x = (const void *)(base + at);
        if (x->magic != EXTENT_MAGIC || x->bytes < sizeof *x || x->bytes > used - at) break;
        if (x->type == EXTENT_SITES) e = site_in(x, n->site);
        at += x->bytes;
    }
    size_t length = e ? e->name_bytes : 0;
    if (length >= bytes) length = bytes - 1;
    if (e) memcpy(to, e->text, length);
    to[length] = 0;
}

TARE_API extern const struct open_scopes tare_open_scopes_;
const struct open_scopes tare_open_scopes_ = {OPEN_SCOPES_VERSION, innermost, around, name};

void open_scopes_tell(void)
{
    open_scopes_taker *take = NULL;
    if (dlsym) *(void **)&take = dlsym(RTLD_DEFAULT, OPEN_SCOPES_TAKER);
    if (take) take(&tare_open_scopes_);
}
