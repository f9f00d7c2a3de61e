/* SPDX-License-Identifier: MIT
 * finding_stream.c - rules about answers of language models: what makes their times mean something else than they seem
 * to. */
#include <math.h>

#include "analyze/judge/finding.h"

#define GLUED_SHARE 0.05  /* of gaps; fewer come by chance */
#define CACHED_SHARE 0.01 /* of the prompts' tokens */
#define TOKENS_PER_EVENT 1.1
#define LENGTHS_APART 1.05 /* the longest median answer over the shortest */

/* ---- the service's own processes in the same seconds ---- */

#define FULL 0.85  /* of a processor: a thread, or all that may be used */
#define IDLE 0.35  /* of what may be used: it is not processors that it waits for */
#define SLOWER 3   /* times the least loaded case: requests queue */

/* p99 against that of the case with the least to do; NAN: not known. */
static double slower_than_least(const struct judging *j, const struct run_case *c)
{
    double least = NAN;
    for (size_t i = 0; i < j->run->cases.n; i++) {
        const struct run_estimate *p99 = &j->run->cases.at[i]->latency_ns.p99;
        if (p99->known && !(p99->value >= least)) least = p99->value;
    }
    return c->latency_ns.p99.known ? c->latency_ns.p99.value / least : NAN;
}

/* Where requests queue, what the processes did says what for: one full thread, all processors, or neither. */
void find_service_limit(struct judging *j, const struct run_case *c)
{
    const struct run_server *s = &c->http.server;
    double busy = OR_NAN(s->busy), usable = OR_NAN(s->usable), thread = OR_NAN(s->thread_busy);
    double slower = slower_than_least(j, c);
    bool queues = (c->open_loop.overloaded.known && c->open_loop.overloaded.v) || slower >= SLOWER;
    struct run_finding *f = NULL;
    if (!s->known) return;
    if (busy > FULL * usable) {
        f = finding_start(j, c, "the service kept %s of %s processors busy: they are its limit",
                          show_number(busy).s, show_number(usable).s);
        finding_action(j, f,
                       "give it more of them, or less work for each request: `tare attach %llu` shows where",
                       (unsigned long long)s->pid.v);
    } else if (thread > FULL) {
        f = finding_start(
            j, c,
            "thread %.40s of the service was busy for %s of the time, all together only %s of %s "
            "processors: one thread is its limit",
            s->thread ? s->thread : "", show_percent(thread).s, show_number(busy).s, show_number(usable).s);
        finding_action(j, f,
                       "spread its work over threads or processes: `tare attach %llu` shows what it does",
                       (unsigned long long)s->pid.v);
    } else if (queues && busy < IDLE * usable) {
        f = finding_start(j, c,
                          "requests queue, but the service kept only %s of %s processors busy: it waits for "
                          "something else",
                          show_number(busy).s, show_number(usable).s);
        finding_action(
            j, f, "look at locks, its number of workers, disks, a GPU, another service: `tare attach %llu`",
            (unsigned long long)s->pid.v);
    }
    finding_numbers(j, f, {"busy", busy}, {"usable", usable}, {"thread_busy", thread},
                    {"p99_times_least", slower});
    finding_number(j, f, "in_flight", OR_NAN(s->in_flight));
}

void find_coalesced(struct judging *j, const struct run_case *c)
{
    const struct run_stream *s = &c->stream;
    if (!(OR_NAN(s->coalesced) > GLUED_SHARE)) return;
    struct run_finding *f = finding_start(
        j, c, "%s of the gaps between events are under 0.1 ms: events are put together on the way",
        show_percent(s->coalesced.v).s);
    finding_numbers(j, f, {"share", s->coalesced.v}, {"events", OR_NAN(s->events)});
    finding_number(j, f, "not_last_in_their_read", OR_NAN(s->shared_reads));
}

void find_cached(struct judging *j, const struct run_case *c)
{
    double in = OR_NAN(c->stream.tokens_in), cached = OR_NAN(c->stream.tokens_cached);
    if (!(cached > CACHED_SHARE * in)) return;
    struct run_finding *f = finding_start(j, c, "the server had %s of the prompts' tokens in its cache",
                                          show_percent(cached / in).s);
    finding_numbers(j, f, {"cached", cached}, {"tokens_in", in});
}

void find_many_tokens(struct judging *j, const struct run_case *c)
{
    double each = OR_NAN(c->stream.tokens_per_event);
    if (!(each > TOKENS_PER_EVENT)) return;
    struct run_finding *f = finding_start(
        j, c, "an event holds %s tokens on average: a gap is not the time of one token", show_number(each).s);
    finding_number(j, f, "tokens_per_event", each);
}

void find_uncounted(struct judging *j, const struct run_case *c)
{
    if (!c->stream.estimated.v) return;
    struct run_finding *f =
        finding_start(j, c, "the server did not count the tokens of some answers: events stand for them");
    finding_number(j, f, "events", OR_NAN(c->stream.events));
}

void find_lengths(struct judging *j)
{
    const struct run_case *least = NULL, *most = NULL;
    for (size_t i = 0; i < j->run->cases.n; i++) {
        const struct run_case *c = j->run->cases.at[i];
        if (!c->stream.tokens_out_p50.known || !c->stream.tokens_out_p50.v) continue;
        if (!least || c->stream.tokens_out_p50.v < least->stream.tokens_out_p50.v) least = c;
        if (!most || c->stream.tokens_out_p50.v > most->stream.tokens_out_p50.v) most = c;
    }
    if (!least) return;
    double few = (double)least->stream.tokens_out_p50.v, many = (double)most->stream.tokens_out_p50.v;
    if (many <= few * LENGTHS_APART) return;
    struct run_finding *f = finding_start(j, most, "its median answer has %s, that of %s only %s",
                                          show_count(many, "token").s, least->name, show_number(few).s);
    finding_numbers(j, f, {"longest", many}, {"shortest", few});
}
