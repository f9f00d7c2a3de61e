/* SPDX-License-Identifier: MIT
 * dump_memory.c - the records of memory of a trace as lines of text, for tests: kind, process, fields, text. Frames of
 * Python have their line, native ones their module and the address in it. */
#include <stdio.h>
#include <stdlib.h>

#include "core/mem.h"
#include "core/vec.h"
#include "trace/memory.h"
#include "trace/reader.h"

struct code {
    uint64_t number;
    struct memory_record r;
    char *table;
};

struct dump {
    VEC(struct code) codes;
    uint32_t process;
};

static const char *const kinds[MEMORY_KINDS] = {
#define F(field, coding)
#define RECORD(number, name, fields) [number] = #name,
#include "trace/memory_records.def"
#undef RECORD
#undef F
};

static const int fields[MEMORY_KINDS] = {
#define F(field, coding) +1
#define RECORD(number, name, f) [number] = 0 f,
#include "trace/memory_records.def"
#undef RECORD
#undef F
};

static void keep_code(struct dump *d, const struct memory_record *r)
{
    struct code c = {r->CODE.number, *r, NULL};
    c.table = mem_new(r->text_bytes + 1, 1);
    if (!c.table) exit(3);
    memcpy(c.table, r->text, r->text_bytes);
    c.r.text = c.table;
    if (vec_push(&d->codes, c, NULL) != TARE_OK) exit(3);
}

static void print_line(const struct dump *d, const struct memory_record *r)
{
    for (size_t i = 0; i < d->codes.n; i++)
        if (d->codes.items[i].number == r->STACK.where) {
            printf(" line=%u", memory_line(&d->codes.items[i].r, r->STACK.at));
            return;
        }
}

static int print(void *ctx, uint32_t process, const struct memory_record *r)
{
    struct dump *d = ctx;
    if (process != d->process) {
        for (size_t i = 0; i < d->codes.n; i++) mem_free(d->codes.items[i].table);
        d->codes.n = 0;
    }
    d->process = process;
    printf("%s %u", kinds[r->kind], process);
    for (int i = 0; i < fields[r->kind]; i++) printf(" %llu", (unsigned long long)r->v[i]);
    if (r->kind == MEMORY_CODE)
        keep_code(d, r);
    else if (r->text_bytes)
        printf(" %.*s", (int)r->text_bytes, r->text);
    if (r->kind == MEMORY_STACK && r->STACK.kind == MEMORY_PYTHON) print_line(d, r);
    putchar('\n');
    return 0;
}

int main(int argc, char **argv)
{
    struct trace *t = NULL;
    tare_error err = TARE_ERROR_INIT;
    struct dump d = {.process = UINT32_MAX};
    if (argc != 2 || trace_open(&t, argv[1], &err) != TARE_OK ||
        trace_memory(t, print, &d, &err) != TARE_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    const struct trace_loss *loss = trace_loss(t);
    for (uint32_t i = 0; i < trace_n_processes(t); i++)
        printf("PROCESS %u pid=%u mode=%u closed=%d %s\n", i, trace_process(t, i)->pid,
               trace_process(t, i)->mode, trace_process(t, i)->closed, trace_process(t, i)->command);
    printf("DAMAGED %llu\n", (unsigned long long)(loss->damaged_chunks + loss->unknown_chunks));
    trace_close(t);
    return 0;
}
