/* SPDX-License-Identifier: MIT
 * history_fill.c - make a long history, and keep runs until killed: for `bench/run history` and tests/fault/history.py.
 *   history_fill FILE RUNS CASES   so many runs of so many cases, in batches; prints seconds and bytes
 *   history_fill FILE forever      one run after the other; prints each id once the add has returned */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/rng.h"
#include "store/store.h"

static void die(const tare_error *err)
{
    fprintf(stderr, "history_fill: %s\n", err->text);
    exit(1);
}

static void fill_case(struct run *run, struct rng *r, unsigned i)
{
    char name[40];
    snprintf(name, sizeof name, "batch=%u,seq=128", i + 1);
    struct run_case *c = run_add_case(run, name);
    if (!c) return;
    uint64_t ns = (uint64_t)(1e6 * (i + 1) * exp(0.02 * (rng_unit(r) + rng_unit(r) - 1)));
    c->samples = known_u64(200);
    c->latency_ns.known = true;
    c->latency_ns.mean = c->latency_ns.min = c->latency_ns.max = known_u64(ns);
    double t = (double)ns;
    c->latency_ns.p50 = c->latency_ns.p90 = c->latency_ns.p95 = run_estimate(t, 0.99 * t, 1.01 * t);
    c->throughput.rate = run_estimate(1e9 / (double)ns, 0.99e9 / (double)ns, 1.01e9 / (double)ns);
    c->throughput.unit = "texts/s";
    c->memory.known = true;
    c->memory.rss_peak = known_u64(100000000);
    c->load_ns = c->first_run_ns = known_u64(ns * 3);
}

static void keep(struct store *s, struct rng *r, unsigned cases, uint64_t unix_s, char id[ULID_SIZE])
{
    struct run run;
    tare_error err = TARE_ERROR_INIT;
    char created[40], commit[41];
    time_t when = (time_t)unix_s;
    struct tm t;
    if (run_init(&run, "bench", &err) != TARE_OK) die(&err);
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%S.000Z", gmtime_r(&when, &t));
    snprintf(commit, sizeof commit, "%040llx", (unsigned long long)rng_next(r));
    run.created = created;
    run.subject.type = "onnx";
    run.subject.name = "model";
    run.host.hostname = "box";
    run.host.fingerprint = "h1-0000000000000001";
    for (unsigned i = 0; i < cases; i++) fill_case(&run, r, i);
    if (store_add_run(s, &run, &(struct store_context){.commit = commit, .branch = "main"}, NULL, &err) !=
        TARE_OK)
        die(&err);
    if (id) memcpy(id, run.id, ULID_SIZE);
    run_release(&run);
}

static void forever(struct store *s, struct rng *r)
{
    for (uint64_t at = 1700000000;; at++) {
        char line[ULID_SIZE + 1];
        keep(s, r, 4, at, line);
        line[ULID_LEN] = '\n';
        if (write(STDOUT_FILENO, line, ULID_LEN + 1) < 0) exit(1);
    }
}

static void fill(struct store *s, struct rng *r, unsigned long runs, unsigned cases)
{
    enum { BATCH = 500 };
    tare_error err = TARE_ERROR_INIT;
    struct instant start = instant_now();
    for (unsigned long i = 0; i < runs; i++) {
        if (i % BATCH == 0 && s->ops->begin(s, &err) != TARE_OK) die(&err);
        keep(s, r, cases, 1700000000 + 3600 * i, NULL);
        if ((i % BATCH == BATCH - 1 || i + 1 == runs) && s->ops->end(s, true, &err) != TARE_OK) die(&err);
    }
    printf("%lu runs of %u cases kept in %.1f s\n", runs, cases,
           (double)instant_since(instant_now(), start).ns / 1e9);
}

int main(int argc, char **argv)
{
    struct store *s = NULL;
    struct rng r;
    tare_error err = TARE_ERROR_INIT;
    bool endless = argc == 3 && strcmp(argv[2], "forever") == 0;
    if (!endless && argc != 4)
        return fprintf(stderr, "usage: history_fill FILE RUNS CASES | FILE forever\n"), 2;
    if (store_open(&s, argv[1], &(struct store_options){.create = true}, &err) != TARE_OK) die(&err);
    rng_seed(&r, endless ? clock_unix_ns() : 1);
    if (endless)
        forever(s, &r);
    else
        fill(s, &r, strtoul(argv[2], NULL, 10), (unsigned)strtoul(argv[3], NULL, 10));
    store_close(s);
    return 0;
}
