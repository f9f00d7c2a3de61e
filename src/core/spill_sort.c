/* SPDX-License-Identifier: MIT
 * spill_sort.c - see spill_sort.h. The last block stays in memory: where all fit into one, no file is made. */
#include "core/spill_sort.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "core/vec.h"

enum { PART_BYTES = 32 << 10 }; /* of a block that is read back, at a time */

struct block {
    off_t at;       /* of what is still in the file */
    size_t left;    /* items there */
    char *part;     /* NULL: the one in memory, which is `items` */
    size_t n, next; /* items in memory; the next of them */
};

struct spill_sort {
    struct spill_options o;
    char *items;
    size_t n;
    int fd;
    off_t end;
    VEC(struct block) blocks;
    VEC(size_t) heap; /* of blocks: the one with the least next item first */
    bool reading;
};

tare_status spill_sort_new(struct spill_sort **out, const struct spill_options *o, tare_error *err)
{
    struct spill_sort *s = mem_new(1, sizeof *s);
    if (s) s->items = mem_new(o->block, o->item_bytes);
    if (!s || !s->items) {
        mem_free(s);
        return error_nomem(err, "sorting");
    }
    s->o = *o;
    s->fd = -1;
    *out = s;
    return TARE_OK;
}

void spill_sort_free(struct spill_sort *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->blocks.n; i++) mem_free(s->blocks.items[i].part);
    vec_release(&s->blocks);
    vec_release(&s->heap);
    if (s->fd >= 0) close(s->fd);
    mem_free(s->items);
    mem_free(s);
}

/* ---- to the file ---- */

static tare_status open_file(struct spill_sort *s, tare_error *err)
{
    char name[4096];
    if (s->fd >= 0) return TARE_OK;
    s->fd = open(s->o.folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (s->fd < 0) { /* file systems without nameless files */
        snprintf(name, sizeof name, "%s/.tare-sort-XXXXXX", s->o.folder);
        s->fd = mkostemp(name, O_CLOEXEC);
        if (s->fd >= 0) unlink(name);
    }
    return s->fd >= 0 ? TARE_OK : error_errno(err, "%s: cannot make a file for sorting", s->o.folder);
}

static void sort_block(struct spill_sort *s)
{
    if (s->n > 1) qsort(s->items, s->n, s->o.item_bytes, s->o.compare);
}

static tare_status spill(struct spill_sort *s, tare_error *err)
{
    struct block b = {.at = s->end, .left = s->n};
    tare_status status = open_file(s, err);
    sort_block(s);
    if (status == TARE_OK) status = file_write_all(s->fd, s->items, s->n * s->o.item_bytes, s->o.folder, err);
    if (status == TARE_OK) status = vec_push(&s->blocks, b, err);
    s->end += (off_t)(s->n * s->o.item_bytes);
    s->n = 0;
    return status;
}

tare_status spill_sort_add(struct spill_sort *s, const void *item, tare_error *err)
{
    tare_status status = s->n == s->o.block ? spill(s, err) : TARE_OK;
    if (status < 0) return status;
    memcpy(s->items + s->n++ * s->o.item_bytes, item, s->o.item_bytes);
    return TARE_OK;
}

/* ---- back ---- */

static tare_status read_part(struct spill_sort *s, struct block *b, tare_error *err)
{
    size_t room = PART_BYTES / s->o.item_bytes, bytes, got = 0;
    b->next = 0;
    b->n = b->left < room ? b->left : room;
    for (bytes = b->n * s->o.item_bytes; got < bytes;) {
        ssize_t n = pread(s->fd, b->part + got, bytes - got, b->at + (off_t)got);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return error_errno(err, "%s: cannot read back what was sorted", s->o.folder);
        if (n == 0) return error_set(err, TARE_IO, "%s: what was sorted is gone", s->o.folder);
        got += (size_t)n;
    }
    b->left -= b->n;
    b->at += (off_t)bytes;
    return TARE_OK;
}

static const char *next_of(const struct spill_sort *s, const struct block *b)
{
    return (b->part ? b->part : s->items) + b->next * s->o.item_bytes;
}

static bool is_before(const struct spill_sort *s, size_t a, size_t b)
{
    return s->o.compare(next_of(s, &s->blocks.items[a]), next_of(s, &s->blocks.items[b])) < 0;
}

static void sift(struct spill_sort *s, size_t at)
{
    size_t *heap = s->heap.items;
    for (size_t child; (child = 2 * at + 1) < s->heap.n; at = child) {
        if (child + 1 < s->heap.n && is_before(s, heap[child + 1], heap[child])) child++;
        if (!is_before(s, heap[child], heap[at])) return;
        size_t moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

static tare_status begin_reading(struct spill_sort *s, tare_error *err)
{
    struct block last = {.n = s->n};
    tare_status status = TARE_OK;
    s->reading = true;
    sort_block(s);
    for (size_t i = 0; i < s->blocks.n && status == TARE_OK; i++) {
        struct block *b = &s->blocks.items[i];
        b->part = mem_new(1, PART_BYTES);
        status = b->part ? read_part(s, b, err) : error_nomem(err, "sorting");
    }
    if (status == TARE_OK) status = vec_push(&s->blocks, last, err);
    for (size_t i = 0; i < s->blocks.n && status == TARE_OK; i++)
        if (s->blocks.items[i].n) status = vec_push(&s->heap, i, err);
    for (size_t i = s->heap.n / 2; i-- > 0 && status == TARE_OK;) sift(s, i);
    return status;
}

tare_status spill_sort_next(struct spill_sort *s, void *item, bool *any, tare_error *err)
{
    tare_status status = s->reading ? TARE_OK : begin_reading(s, err);
    if (status < 0) return status;
    *any = s->heap.n > 0;
    if (!*any) return TARE_OK;
    struct block *b = &s->blocks.items[s->heap.items[0]];
    memcpy(item, next_of(s, b), s->o.item_bytes);
    if (++b->next == b->n && b->left) status = read_part(s, b, err);
    if (b->next == b->n) s->heap.items[0] = vec_pop(&s->heap);
    if (s->heap.n) sift(s, 0);
    return status;
}
