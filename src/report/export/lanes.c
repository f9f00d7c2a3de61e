/* SPDX-License-Identifier: MIT
 * lanes.c - see lanes.h. */
#include "report/export/lanes.h"

void lanes_release(struct lanes *l)
{
    vec_release(&l->all);
    vec_release(&l->scopes);
    map_u64_release(&l->waiting);
    map_u64_release(&l->hidden);
    vec_release(&l->looked);
}

void lanes_clear(struct lanes *l)
{
    lanes_release(l);
    *l = (struct lanes){.waiting = MAP_U64_INIT, .hidden = MAP_U64_INIT};
}

static int look(void *ctx, const struct trace_event *e)
{
    struct lanes *l = ctx;
    if (e->kind == TRACE_BEGIN) return vec_push(&l->looked, l->begins++, l->err);
    if (e->kind != TRACE_END || !l->looked.n) return TARE_OK;
    uint64_t begin = l->looked.items[--l->looked.n];
    return e->flags & TRACE_LATE ? map_u64_put(&l->hidden, begin, 1, l->err) : TARE_OK;
}

tare_status lanes_look(struct lanes *l, const struct event_source *s, uint32_t thread, tare_error *err)
{
    l->err = err;
    tare_status st = source_thread(s, thread)->waits ? source_events(s, thread, look, l, err) : TARE_OK;
    l->begins = 0;
    return st;
}

/* The innermost bar around the scope that begins, if another fits into it: all open bars of its lane are around it,
 * and none of the lane ended since. 0: none. */
static uint32_t lane_around(const struct lanes *l, uint64_t began_ns)
{
    uint32_t lane = 0, around = 0;
    uint64_t outer_ns = 0;
    for (size_t i = l->scopes.n; i--;) {
        const struct lane_scope *s = &l->scopes.items[i];
        if (!lane && s->lane) {
            lane = s->lane;
            outer_ns = s->began_ns;
        }
        around += s->lane && s->lane == lane;
    }
    if (!lane || outer_ns > began_ns) return 0;
    const struct lane *at = &l->all.items[lane - 1];
    return at->open == around && at->last_ns <= began_ns ? lane : 0;
}

static tare_status lane_for(struct lanes *l, uint64_t began_ns, uint32_t *out, tare_error *err)
{
    *out = lane_around(l, began_ns);
    for (uint32_t i = 0; i < l->all.n && !*out; i++)
        if (!l->all.items[i].open && l->all.items[i].last_ns <= began_ns) *out = i + 1;
    if (*out) return TARE_OK;
    tare_status s = vec_push(&l->all, (struct lane){0}, err);
    if (s == TARE_OK) *out = (uint32_t)l->all.n;
    return s;
}

static tare_status on_begin(struct lanes *l, const struct trace_event *e, struct lane_step *out,
                            tare_error *err)
{
    struct lane_scope scope = {.began_ns = e->began_ns};
    uint64_t lane;
    scope.hidden = e->flags & TRACE_LATE || map_u64_find(&l->hidden, l->begins);
    l->begins++;
    if (e->flags & TRACE_RESUMED && map_u64_remove(&l->waiting, e->pause, &lane)) {
        scope.lane = out->lane = (uint32_t)lane;
    } else if (e->flags & TRACE_WAITED) {
        tare_status s = lane_for(l, e->began_ns, &scope.lane, err);
        if (s != TARE_OK) return s;
        l->all.items[scope.lane - 1].open++;
        *out = (struct lane_step){LANE_BEGIN, scope.lane, e->site, e->began_ns, false};
    }
    out->hidden = scope.hidden;
    return vec_push(&l->scopes, scope, err);
}

static void bar_end(struct lanes *l, uint32_t lane, uint32_t site, struct lane_step *out)
{
    l->all.items[lane - 1].open--;
    l->all.items[lane - 1].last_ns = l->now_ns;
    *out = (struct lane_step){LANE_END, lane, site, l->now_ns, out->hidden};
}

tare_status lanes_event(struct lanes *l, const struct trace_event *e, struct lane_step *out, tare_error *err)
{
    *out = (struct lane_step){.change = LANE_NOTHING};
    l->now_ns = e->time_ns;
    if (e->kind == TRACE_BEGIN) return on_begin(l, e, out, err);
    if (e->kind != TRACE_END || !l->scopes.n) return TARE_OK;
    uint32_t lane = l->scopes.items[--l->scopes.n].lane;
    out->lane = lane;
    out->hidden = l->scopes.items[l->scopes.n].hidden;
    if (!lane) return TARE_OK;
    if (e->flags & TRACE_PAUSED)
        return map_u64_put(&l->waiting, e->pause, (uint64_t)e->site << 32 | lane, err);
    bar_end(l, lane, e->site, out);
    return TARE_OK;
}

bool lanes_unended(struct lanes *l, struct lane_step *out)
{
    const struct map_u64_slot *slot = map_u64_next(&l->waiting, &l->unended);
    *out = (struct lane_step){.change = LANE_NOTHING};
    if (slot) bar_end(l, (uint32_t)slot->value, (uint32_t)(slot->value >> 32), out);
    return slot != NULL;
}
