/* SPDX-License-Identifier: MIT
 * finding_stream.c - rules about answers of language models: what makes their times mean something else than they seem
 * to. */
#include <math.h>

#include "analyze/judge/finding.h"

#define GLUED_SHARE 0.05  /* of gaps; fewer come by chance */
#define CACHED_SHARE 0.01 /* of the prompts' tokens */
#define TOKENS_PER_EVENT 1.1
#define LENGTHS_APART 1.05 /* the longest median answer over the shortest */

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
