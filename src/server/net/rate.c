/* SPDX-License-Identifier: MIT
 * rate.c - buckets kept as the time at which they would be full again (the generic cell rate algorithm): one number
 * each. */
#include "server/net/rate.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "core/map.h"
#include "core/mem.h"

enum { SETS = 2048, WAYS = 4 };

struct bucket {
    uint64_t key, full_ns;
};

struct rate {
    pthread_mutex_t lock;
    uint64_t seed;
    struct bucket buckets[SETS][WAYS];
};

tare_status rate_open(struct rate **out, tare_error *err)
{
    struct rate *r = mem_new(1, sizeof *r);
    if (!r) return error_nomem(err, "rates");
    if (getrandom(&r->seed, sizeof r->seed, 0) != sizeof r->seed) {
        mem_free(r);
        return error_errno(err, "the kernel gives no random bytes");
    }
    pthread_mutex_init(&r->lock, NULL);
    *out = r;
    return TARE_OK;
}

void rate_close(struct rate *r)
{
    if (!r) return;
    pthread_mutex_destroy(&r->lock);
    mem_free(r);
}

uint64_t rate_take(struct rate *r, const struct rate_limit *limit, const void *who, size_t n, uint64_t now_ns)
{
    if (limit->per_s <= 0) return 0;
    uint64_t step = (uint64_t)(1e9 / limit->per_s), room = (uint64_t)((double)step * (limit->burst - 1));
    uint64_t key = map_hash(r->seed, who, n), wait = 0;
    struct bucket *set = r->buckets[key % SETS], *b = &set[0];
    pthread_mutex_lock(&r->lock);
    for (int i = 0; i < WAYS; i++) {
        if (set[i].key == key) {
            b = &set[i];
            break;
        }
        if (set[i].full_ns < b->full_ns) b = &set[i];
    }
    if (b->key != key) *b = (struct bucket){key, 0};
    if (b->full_ns < now_ns) b->full_ns = now_ns;
    if (b->full_ns - now_ns > room)
        wait = b->full_ns - now_ns - room;
    else
        b->full_ns += step;
    pthread_mutex_unlock(&r->lock);
    return wait;
}
