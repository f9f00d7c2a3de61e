/* SPDX-License-Identifier: MIT
 * gpu_origin.c - where kernels come from, in the words of the program: the module and the operator of PyTorch whose
 * ranges (trace/gpu.h) they were launched in. What autograd launches is in no module's range, as it runs on a thread of
 * its own and later. But an operator and its node of the backward pass bear the same sequence number: so its module is
 * the one that the number was last given out in. */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_work.h"

static uint32_t name_number(const struct gpu_work *w, const char *text)
{
    const uint64_t *at = map_str_find(&w->tables.name_index, text, strlen(text));
    return at ? (uint32_t)*at : 0;
}

static uint64_t sequence_key(const struct gpu_open_range *r)
{
    return (uint64_t)r->process << 32 | (r->sequence - 1);
}

/* What is known of it by its name; of the rest it is as the range around it. */
static enum gpu_phase phase_of(const struct gpu_work *w, const struct gpu_open_range *r)
{
    const char *name = r->name < w->names.n ? w->names.items[r->name].text : "";
    if (strstr(name, "Backward") || strncmp(name, "autograd::engine", 16) == 0) return GPU_PHASE_BACKWARD;
    if (strncmp(name, "Optimizer.", 10) == 0) return GPU_PHASE_OPTIMIZER;
    return GPU_PHASE_NONE;
}

/* Who a number belongs to: thread << 32 | module + 1. Each thread counts for itself: a number that two have given out
 * tells nothing. */
#define AMBIGUOUS UINT64_MAX

static tare_status claim(struct gpu_work *w, struct map_u64 *claims, const struct gpu_open_range *r)
{
    uint64_t *at;
    tare_status s = map_u64_ref(claims, sequence_key(r), &at, w->err);
    if (s != TARE_OK) return s;
    bool others = *at == AMBIGUOUS || (*at && *at >> 32 != r->thread);
    *at = others ? AMBIGUOUS : (uint64_t)r->thread << 32 | ((uint64_t)r->module + 1);
    return TARE_OK;
}

/* Around each node of the backward pass autograd has a range of its own, without the number. What runs in it after the
 * node, such as the sum that makes a bias's gradient, is of the node, too. */
static void hand_up(struct gpu_work *w, const struct gpu_open_range *r)
{
    if (!r->parent || r->phase != GPU_PHASE_BACKWARD) return;
    struct gpu_open_range *around = &w->ranges.items[r->parent - 1];
    if (around->phase == GPU_PHASE_BACKWARD && !around->sequence) around->sequence = r->sequence;
}

/* A range stands behind the one that it is in, so that one pass hands down what is known. A number is claimed by the
 * last operator that saw it: those before it saw it, too, but made no node. */
static tare_status hand_down(struct gpu_work *w, uint32_t operators, uint32_t modules, struct map_u64 *claims)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < w->ranges.n && s == TARE_OK; i++) {
        struct gpu_open_range *r = &w->ranges.items[i];
        const struct gpu_open_range *around = r->parent ? &w->ranges.items[r->parent - 1] : NULL;
        bool numbered = r->sequence != 0;
        if (around) {
            r->module = around->module;
            r->op = around->op;
            r->phase = around->phase;
            if (!numbered) r->sequence = around->sequence;
        }
        if (modules && r->domain + 1 == modules) {
            r->module = r->name + 1;
            r->op = 0; /* what is called within it says more */
        } else if (operators && r->domain + 1 == operators) {
            r->op = r->name + 1;
            enum gpu_phase phase = phase_of(w, r);
            if (phase) r->phase = (uint8_t)phase;
        }
        if (numbered && r->phase != GPU_PHASE_BACKWARD) s = claim(w, claims, r);
        if (numbered) hand_up(w, r);
    }
    return s;
}

static void find_modules_of_backward(struct gpu_work *w, const struct map_u64 *claims)
{
    for (size_t i = 0; i < w->ranges.n; i++) {
        struct gpu_open_range *r = &w->ranges.items[i];
        if (r->phase != GPU_PHASE_BACKWARD || r->module || !r->sequence) continue;
        const uint64_t *claimed = map_u64_find(claims, sequence_key(r));
        if (claimed && *claimed != AMBIGUOUS) r->module = (uint32_t)*claimed - 1;
    }
}

tare_status gpu_work_origins(struct gpu_work *w)
{
    struct map_u64 claims = {0};
    uint32_t operators = name_number(w, GPU_DOMAIN_OP), modules = name_number(w, GPU_DOMAIN_MODULE);
    if (!operators && !modules) return TARE_OK;
    tare_status s = hand_down(w, operators, modules, &claims);
    find_modules_of_backward(w, &claims);
    map_u64_release(&claims);
    return s;
}

/* Place (module and operator), then kernel and phase, are two steps of one number. */
tare_status gpu_origin_add(struct gpu_work *w, const struct gpu_op *op, const struct gpu_open_range *r)
{
    uint64_t *place, *row;
    if (op->kind == WORK_COPY || (!r->module && !r->op)) return TARE_OK;
    tare_status s = map_u64_ref(&w->origin_places, (uint64_t)r->module << 32 | r->op, &place, w->err);
    if (s != TARE_OK) return s;
    if (!*place) *place = w->origin_places.n;
    s = map_u64_ref(&w->origin_rows, *place << 34 | (uint64_t)op->name << 2 | r->phase, &row, w->err);
    if (s != TARE_OK) return s;
    if (!*row) {
        struct gpu_origin_sum sum = {.kernel = op->name, .module = r->module, .op = r->op, .phase = r->phase};
        s = vec_push(&w->origins, sum, w->err);
        if (s != TARE_OK) return s;
        *row = w->origins.n;
    }
    struct gpu_origin_sum *sum = &w->origins.items[*row - 1];
    sum->count++;
    gpu_grow(&sum->total_ns, op->end - op->start);
    return TARE_OK;
}

bool gpu_origin_is_range(const struct gpu_work *w, const struct gpu_open_range *r)
{
    static const char *const domains[] = {GPU_DOMAIN_OP, GPU_DOMAIN_MODULE, GPU_DOMAIN_PYTHON};
    const char *domain = r->domain < w->names.n ? w->names.items[r->domain].text : "";
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        if (strcmp(domain, domains[i]) == 0) return true;
    return false;
}
