/* SPDX-License-Identifier: MIT
 * infer_list.c - see infer_list.h: what holds of two values alike. Forgets rather than guesses. */
#include "model/infer/infer_list.h"

#include <string.h>

tare_status value_shape_copy(struct rule_call *c, const struct infer_value *from, struct infer_value *to)
{
    const char *name = to->name;
    *to = (struct infer_value){.name = name};
    if (!from) return TARE_OK;
    to->type = from->type;
    to->data_dependent = from->data_dependent;
    to->list = from->list;
    if (!from->has_rank) return TARE_OK;
    tare_status s = scope_dims(c->engine, to, from->rank);
    if (s == TARE_OK && from->rank) memcpy(to->dims, from->dims, from->rank * sizeof *to->dims);
    return s;
}

static void forget_shape(struct infer_value *v, bool *changed)
{
    *changed = *changed || v->has_rank;
    v->has_rank = false;
    v->rank = 0;
    v->dims = NULL;
    v->data_dependent = true;
}

static tare_status join_lists(struct rule_call *c, struct infer_value *v, const struct infer_value *other,
                              bool *changed)
{
    if (!v->list || v->list == other->list) return TARE_OK;
    struct infer_list *both = NULL;
    bool gone = !other->list || v->list->exact; /* how many there are hangs on what runs */
    *changed = *changed || gone;
    if (other->list) {
        if (!(both = engine_get(c->engine, 1, sizeof *both))) return engine_nomem(c->engine);
        tare_status s = value_shape_copy(c, &v->list->common, &both->common);
        if (s == TARE_OK) s = value_join(c, &both->common, &other->list->common, changed);
        if (s < 0) return s;
    }
    v->list = both;
    return TARE_OK;
}

tare_status value_join(struct rule_call *c, struct infer_value *v, const struct infer_value *other,
                       bool *changed)
{
    static const struct infer_value nothing;
    if (!other) other = &nothing;
    if (v->type != other->type) {
        *changed = *changed || v->type != ONNX_UNDEFINED;
        v->type = ONNX_UNDEFINED;
    }
    v->data_dependent |= other->data_dependent;
    if (v->has_rank && (!other->has_rank || other->rank != v->rank)) forget_shape(v, changed);
    for (size_t i = 0; i < v->rank; i++) {
        if (v->dims[i] == other->dims[i]) continue;
        *changed = *changed || v->dims[i];
        v->dims[i] = NULL;
        v->data_dependent = true;
    }
    return join_lists(c, v, other, changed);
}

void rule_output_is(struct rule_call *c, size_t output, const struct infer_value *v)
{
    struct infer_value *out = rule_output(c, output);
    if (!out || !v) return;
    scope_copy(out, v);
    out->constant = NULL;
    out->folded = false;
}
