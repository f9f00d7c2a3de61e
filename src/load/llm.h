/* SPDX-License-Identifier: MIT
 * llm.h - the reader of answers of language models, streamed or whole: when they begin to say something, the gaps
 * between their events, what the server counted. It fills the outcome and pools the gaps. Tokens are the server's
 * word: there is no tokenizer here. Where the server does not count, events are counted, and it is said
 * (LOAD_ESTIMATED). */
#ifndef LOAD_LLM_H
#define LOAD_LLM_H

#include "load/gaps.h"
#include "load/reader.h"

struct llm_pool {
    struct gaps gaps;
    uint64_t streams, whole;        /* answers that came as events; as one JSON */
    uint64_t events, many_per_read; /* that say something; of these, not the last in their read */
    uint64_t many_tokens;           /* answers with more tokens than events */
    uint64_t not_counted;           /* answers whose tokens the server did not count */
    uint64_t no_done;               /* that ended well, but without [DONE] */
    uint64_t comments;
    bool no_memory; /* for some gaps */
    char why[240];  /* of the last broken stream */
};
static inline void llm_pool_release(struct llm_pool *p)
{
    gaps_release(&p->gaps);
}

/* The reader over this pool, which must outlive it. */
struct load_reader llm_reader(struct llm_pool *pool);

#endif
