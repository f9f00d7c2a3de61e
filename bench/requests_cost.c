/* SPDX-License-Identifier: MIT
 * requests_cost.c - requests of a fleet: how far percentiles are off, how large a host's histogram is, how long it
 * takes to add up 1,000 hosts and to make their hourly report. Times are processor time; the least of some rounds.
 * usage: requests_cost FOLDER */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/sla/tally.h"
#include "core/clock.h"
#include "core/mem.h"
#include "core/rng.h"
#include "core/stats.h"
#include "server/sla/sla_ask.h"

enum { HOSTS = 1000, EACH = 2000, ROUTES = 20, ROUNDS = 7 };
#define HOUR INT64_C(3600000)
#define BASE (INT64_C(497000) * HOUR)

static double uniform(struct rng *r)
{
    return ((double)(rng_next(r) >> 11) + 0.5) * 0x1p-53;
}

/* Log-normal around 20 ms, and one in fifty ten times as slow. */
static uint64_t latency(struct rng *r)
{
    double normal = sqrt(-2 * log(uniform(r))) * cos(2 * 3.14159265358979323846 * uniform(r));
    return (uint64_t)(2e7 * exp(0.5 * normal)) * (uniform(r) < 0.02 ? 10 : 1);
}

static uint64_t cpu_ns(void)
{
    return clock_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void must(tare_status s, const tare_error *err)
{
    if (s == TARE_OK) return;
    fprintf(stderr, "requests_cost: %s\n", err->text);
    exit(1);
}

/* ---- histograms ---- */

static void fleet(void)
{
    static const double qs[] = {0.5, 0.9, 0.95, 0.99, 0.999, 0.9999};
    static struct buf hosts[HOSTS];
    double *all = mem_new((size_t)HOSTS * EACH, sizeof *all), least = INFINITY, off = 0;
    size_t bytes = 0;
    struct rng r;
    rng_seed(&r, 1);
    for (int h = 0; h < HOSTS; h++) {
        struct hist one = HIST_INIT;
        for (int i = 0; i < EACH; i++) {
            uint64_t ns = latency(&r);
            all[h * EACH + i] = (double)ns;
            hist_record(&one, ns, NULL);
        }
        hosts[h] = (struct buf)BUF_INIT;
        hist_encode(&one, &hosts[h]);
        bytes += hosts[h].len;
        hist_release(&one);
    }
    stats_sort(all, (size_t)HOSTS * EACH);
    for (int round = 0; round < ROUNDS; round++) {
        struct hist sum = HIST_INIT;
        tare_error err = TARE_ERROR_INIT;
        uint64_t begun = cpu_ns();
        for (int h = 0; h < HOSTS; h++) must(hist_decode(&sum, hosts[h].data, hosts[h].len, &err), &err);
        least = fmin(least, (double)(cpu_ns() - begun));
        for (size_t i = 0; i < sizeof qs / sizeof *qs; i++) {
            double truth = all[(size_t)ceil(qs[i] * HOSTS * EACH) - 1];
            off = fmax(off, fabs(hist_quantile(&sum, qs[i]) / truth - 1));
        }
        hist_release(&sum);
    }
    printf("| adding up 1,000 hosts from their bytes | %.2f ms | 10 ms |\n", least / 1e6);
    printf("| a host's histogram of 2,000 requests | %zu B | |\n", bytes / HOSTS);
    printf("| p50 to p99.99 of 2,000,000 requests, furthest off | %.3f %% | 0.6 %% |\n", off * 100);
    for (int h = 0; h < HOSTS; h++) buf_release(&hosts[h]);
    mem_free(all);
}

/* ---- the store ---- */

static void batch_text(struct buf *b, unsigned number, struct rng *r)
{
    buf_printf(b,
               "{\"schema\":\"tare.requests/1\",\"id\":\"01KA%022u\",\"service\":\"s\",\"host\":\"web-%u\",",
               number, number);
    buf_printf(b, "\"from_ms\":%lld,\"to_ms\":%lld,\"lost\":0,\"routes\":[", (long long)BASE,
               (long long)BASE + 10000);
    for (int k = 0; k < ROUTES; k++) {
        struct hist h = HIST_INIT;
        for (int i = 0; i < 200; i++) hist_record(&h, latency(r), NULL);
        buf_printf(b,
                   "%s{\"route\":\"/%d\",\"errors\":0,\"cancelled\":0,\"first_byte_ns\":null,\"worst\":null,",
                   k ? "," : "", k);
        buf_printf(
            b,
            "\"slo\":[{\"threshold_ns\":1000000000000,\"objective\":0.99,\"within\":200,\"breached\":0}],");
        buf_printf(b, "\"latency_ns\":{\"sum\":%llu,\"min\":%llu,\"max\":%llu,", (unsigned long long)h.sum,
                   (unsigned long long)h.min, (unsigned long long)h.max);
        buf_printf(b, "\"histogram\":{\"scale\":6,\"offset\":%d,\"zero\":0,\"counts\":[", h.first);
        for (uint32_t i = 0; i < h.n_counts; i++)
            buf_printf(b, "%s%llu", i ? "," : "", (unsigned long long)h.counts[i]);
        buf_add_str(b, "]}}}");
        hist_release(&h);
    }
    buf_add_str(b, "]}");
}

/* Read, checked and kept, a hundred in a transaction. */
static double fill(struct store *s)
{
    struct rng r;
    tare_error err = TARE_ERROR_INIT;
    uint64_t took = 0;
    rng_seed(&r, 2);
    must(s->ops->begin(s, &err), &err);
    for (unsigned h = 0; h < HOSTS; h++) {
        struct buf text = BUF_INIT;
        struct requests batch;
        enum store_kept kept;
        batch_text(&text, h, &r);
        uint64_t begun = cpu_ns();
        must(requests_read(&batch, "batch", text.data, text.len, &err), &err);
        must(store_add_requests(s, &batch,
                                &(struct store_sent){.project = "", .id = batch.id, .received_ms = BASE},
                                &kept, &err),
             &err);
        if (h % 100 == 99) must(s->ops->end(s, true, &err), &err);
        took += cpu_ns() - begun;
        if (h % 100 == 99) must(s->ops->begin(s, &err), &err);
        requests_release(&batch);
        buf_release(&text);
    }
    must(s->ops->end(s, true, &err), &err);
    return (double)took / HOSTS;
}

static void report(const char *folder)
{
    char path[4096];
    struct store *s = NULL;
    tare_error err = TARE_ERROR_INIT;
    double least = INFINITY;
    snprintf(path, sizeof path, "%s/requests.db", folder);
    must(store_open(&s, path, &(struct store_options){.create = true}, &err), &err);
    printf("| a batch of 20 routes, read and kept, 100 in a transaction | %.2f ms | |\n", fill(s) / 1e6);
    struct sla_ask hour = {.project = "", .service = "s", .from_ms = BASE, .to_ms = BASE + HOUR};
    for (int round = 0; round < 3; round++) {
        struct sla doc = {0};
        uint64_t begun = cpu_ns();
        must(sla_report_read(s, &hour, INT64_MAX, &doc, &err), &err);
        least = fmin(least, (double)(cpu_ns() - begun));
        if (doc.total.requests != (uint64_t)HOSTS * ROUTES * 200) exit(1);
        sla_release(&doc);
    }
    printf("| hourly report of 1,000 hosts with 20 routes each | %.0f ms | 2,000 ms |\n", least / 1e6);
    store_close(s);
}

int main(int argc, char **argv)
{
    printf("| | | goal |\n|---|---:|---:|\n");
    fleet();
    report(argc > 1 ? argv[1] : ".");
    return 0;
}
