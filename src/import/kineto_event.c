/* SPDX-License-Identifier: MIT
 * kineto_event.c - one event of Kineto's JSON: keys in any order, args that are not wanted are passed over. Numbers out
 * of range and of the wrong kind are as if they were not there. */
#include <string.h>
#include <strings.h>

#include "import/kineto.h"

void kineto_event_release(struct kineto_event *e)
{
    buf_release(&e->name);
    buf_release(&e->meta);
}

static void clear(struct kineto_event *e)
{
    struct buf name = e->name, meta = e->meta;
    int64_t *const numbers[] = {
        &e->ts,          &e->dur,       &e->pid,       &e->tid,       &e->correlation, &e->device,
        &e->context,     &e->stream,    &e->registers, &e->shared,    &e->bytes,       &e->graph_node,
        &e->device_type, &e->device_id, &e->reserved,  &e->address, &e->sequence, &e->grid[0],     &e->grid[1],
        &e->grid[2],     &e->block[0],  &e->block[1],  &e->block[2]};
    *e = (struct kineto_event){.name = name, .meta = meta};
    buf_clear(&e->name);
    buf_clear(&e->meta);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) *numbers[i] = KINETO_ABSENT;
}

/* Older versions wrote other words for the same; case does not matter. */
static enum kineto_kind kind_of(const char *category)
{
    static const struct {
        const char *word;
        enum kineto_kind kind;
    } kinds[] = {
        {"cpu_op", KINETO_OPERATOR},
        {"operator", KINETO_OPERATOR},
        {"user_annotation", KINETO_ANNOTATION},
        {"python_function", KINETO_FRAME},
        {"kernel", KINETO_KERNEL},
        {"gpu_memcpy", KINETO_COPY},
        {"memcpy", KINETO_COPY},
        {"gpu_memset", KINETO_FILL},
        {"memset", KINETO_FILL},
        {"cuda_runtime", KINETO_CALL},
        {"cuda_driver", KINETO_CALL},
        {"runtime", KINETO_CALL},
        {"cpu_instant_event", KINETO_MEMORY},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcasecmp(category, kinds[i].word) == 0) return kinds[i].kind;
    return KINETO_OTHER;
}

/* Where a number goes; NULL: it is not wanted. */
static int64_t *arg_of(struct kineto_event *e, const char *key)
{
    const struct {
        const char *key;
        int64_t *to;
    } rows[] = {
        {"correlation", &e->correlation},
        {"device", &e->device},
        {"context", &e->context},
        {"stream", &e->stream},
        {"registers per thread", &e->registers},
        {"shared memory", &e->shared},
        {"bytes", &e->bytes},
        {"Bytes", &e->bytes},
        {"graph node id", &e->graph_node},
        {"Device Type", &e->device_type},
        {"Device Id", &e->device_id},
        {"Total Reserved", &e->reserved},
        {"Addr", &e->address},
        {"Sequence number", &e->sequence},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].key, key) == 0) return rows[i].to;
    return NULL;
}

/* Numbers in quotes are taken, too: some versions wrote them so. `decimals`: one of the file is 10^decimals of ours. */
static void take_number(int64_t *to, unsigned decimals, enum pull_token t, const char *text)
{
    int64_t v;
    if ((t == PULL_NUMBER || t == PULL_STRING) && json_pull_scaled(text, decimals, &v)) *to = v;
}

static void take_text(struct buf *to, const struct json_pull *p)
{
    buf_clear(to);
    buf_add(to, p->text.data, p->text.len);
}

/* [x, y, z] into three numbers. */
static tare_status take_triple(struct json_pull *p, int64_t out[3], tare_error *err)
{
    enum pull_token t;
    size_t n = 0;
    for (;;) {
        tare_status s = json_pull_next(p, &t, err);
        if (s < 0 || t == PULL_ARRAY_END) return s;
        if (n < 3 && t == PULL_NUMBER && !json_pull_scaled(p->text.data, 0, &out[n])) out[n] = KINETO_ABSENT;
        n++;
        s = json_pull_skip(p, t, err);
        if (s < 0) return s;
    }
}

static tare_status take_arg(struct kineto_event *e, struct json_pull *p, tare_error *err)
{
    enum pull_token t;
    int64_t *number = arg_of(e, p->text.data);
    bool name = strcmp(p->text.data, "name") == 0;
    int64_t *triple = NULL;
    if (strcmp(p->text.data, "grid") == 0) triple = e->grid;
    if (strcmp(p->text.data, "block") == 0) triple = e->block;
    p->skipping = !number && !name && !triple;
    tare_status s = json_pull_next(p, &t, err);
    p->skipping = false;
    if (s < 0) return s;
    if (triple && t == PULL_ARRAY) return take_triple(p, triple, err);
    if (number) take_number(number, 0, t, p->text.data);
    if (name && t == PULL_STRING) take_text(&e->meta, p);
    return json_pull_skip(p, t, err);
}

static tare_status take_args(struct kineto_event *e, struct json_pull *p, tare_error *err)
{
    for (;;) {
        enum pull_token t;
        tare_status s = json_pull_next(p, &t, err);
        if (s < 0 || t == PULL_OBJECT_END) return s;
        s = take_arg(e, p, err);
        if (s < 0) return s;
    }
}

static int64_t thread_number(enum pull_token t, const struct json_pull *p)
{
    int64_t v;
    if (t == PULL_NUMBER && json_pull_scaled(p->text.data, 0, &v)) return v;
    return (int64_t)(map_hash(1, p->text.data, p->text.len) | 1u << 31) & UINT32_MAX;
}

static void take_value(struct kineto_event *e, const char *key, enum pull_token t, const struct json_pull *p)
{
    const unsigned microseconds = 3;
    bool text = t == PULL_STRING;
    if (strcmp(key, "ts") == 0) take_number(&e->ts, microseconds, t, p->text.data);
    if (strcmp(key, "dur") == 0) take_number(&e->dur, microseconds, t, p->text.data);
    if (strcmp(key, "ph") == 0 && text) e->phase = p->text.data[0];
    if (strcmp(key, "cat") == 0 && text) e->kind = kind_of(p->text.data);
    if (strcmp(key, "name") == 0 && text) take_text(&e->name, p);
    if (strcmp(key, "pid") == 0) e->host_pid = t == PULL_NUMBER && json_pull_scaled(p->text.data, 0, &e->pid);
    if (strcmp(key, "tid") == 0) e->tid = thread_number(t, p);
}

/* Modules come as frames with a name that says so; memory as an instant of that name. */
static void settle_kind(struct kineto_event *e)
{
    static const char module[] = "nn.Module: ";
    if (e->kind == KINETO_FRAME && strncmp(e->name.data, module, sizeof module - 1) == 0) {
        size_t n = e->name.len - (sizeof module - 1);
        e->kind = KINETO_MODULE;
        memmove(e->name.data, e->name.data + sizeof module - 1, n + 1);
        e->name.len = n;
    }
    if (e->kind == KINETO_MEMORY && strcmp(e->name.data, "[memory]") != 0) e->kind = KINETO_OTHER;
}

tare_status kineto_event_read(struct kineto_event *e, struct json_pull *p, tare_error *err)
{
    clear(e);
    for (;;) {
        enum pull_token t;
        char key[16];
        tare_status s = json_pull_next(p, &t, err);
        if (s < 0) return s;
        if (t == PULL_OBJECT_END) break;
        bool known = p->text.len < sizeof key;
        memcpy(key, known ? p->text.data : "", known ? p->text.len + 1 : 1);
        s = json_pull_next(p, &t, err);
        if (s < 0) return s;
        if (t == PULL_OBJECT && strcmp(key, "args") == 0) {
            s = take_args(e, p, err);
        } else {
            take_value(e, key, t, p);
            s = json_pull_skip(p, t, err);
        }
        if (s < 0) return s;
    }
    settle_kind(e);
    return e->name.failed || e->meta.failed ? error_nomem(err, "an event of %s", p->from.name) : TARE_OK;
}
