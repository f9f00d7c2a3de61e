/* SPDX-License-Identifier: MIT
 * outcome.c - see outcome.h. Apart from the engine: who only reads documents of requests needs no network. */
#include "load/outcome.h"

#include "load/engine.h"

static const struct {
    const char *word, *help;
} words[LOAD_FAULTS] = {
#define X(name, text, help) [LOAD_##name] = {text, help},
    LOAD_FAULT_MAP(X)
#undef X
};

void load_count(struct load_counts *c, const struct load_outcome *o)
{
    bool answered = load_is_answered(o), open = o->fault == LOAD_OPEN;
    uint64_t took = load_took(o), *longest = answered ? &c->longest : &c->longest_failed;
    c->due++;
    c->answered += answered;
    c->open += open;
    c->failed += !answered && !open;
    c->faults[o->fault < LOAD_FAULTS ? o->fault : LOAD_OPEN]++;
    if (o->status < LOAD_STATUSES) c->statuses[o->status]++;
    c->queued += (o->flags & LOAD_QUEUED) != 0;
    c->unstamped += (o->flags & LOAD_UNSTAMPED) != 0;
    if (took > *longest) *longest = took;
    if (answered && o->end > c->last_answer) c->last_answer = o->end;
    if (!o->sent) return;
    uint64_t delay = o->sent - o->planned;
    c->sent++;
    c->late += delay > LOAD_LATE_NS && !(o->flags & (LOAD_QUEUED | LOAD_NEW | LOAD_RESENT));
    if (delay > c->longest_delay) c->longest_delay = delay;
}

const char *load_fault_word(unsigned fault)
{
    return fault < LOAD_FAULTS ? words[fault].word : "unknown";
}

const char *load_fault_help(unsigned fault)
{
    return fault < LOAD_FAULTS ? words[fault].help : "unknown";
}

/* Here and not in engine.c: the Python extension carries the harness, but no sockets. */
void load_result_release(struct load_result *r)
{
    vec_release(&r->outcomes);
}
