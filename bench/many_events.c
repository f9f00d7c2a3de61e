/* SPDX-License-Identifier: MIT
 * many_events.c - writes the large traces that bench/run reads back: N million events into FILE, begin and end
 * alike, five kinds of scope, three deep. Pauses now and then so that the helper keeps up and nothing is dropped. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tare/tare.h>

static volatile unsigned work;

static void leaf_a(void)
{
    TARE_SCOPE("leaf_a");
    for (unsigned i = 0; i < 10; i++) work += i;
}
static void leaf_b(void)
{
    TARE_SCOPE("leaf_b");
    for (unsigned i = 0; i < 30; i++) work += i;
}
static void inner(void)
{
    TARE_SCOPE("inner");
    leaf_a();
    leaf_b();
}
static void step(void) /* ten scopes: twenty events */
{
    TARE_SCOPE("step");
    for (int i = 0; i < 3; i++) inner();
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: many_events FILE MILLIONS MODE(1 aggregate, 2 events, 3 both)\n");
        return 2;
    }
    tare_options o = TARE_OPTIONS_INIT;
    tare_error err = TARE_ERROR_INIT;
    o.path = argv[1];
    o.mode = (uint32_t)atoi(argv[3]);
    o.disk_bytes = UINT64_MAX;
    if (tare_start(&o, &err) != TARE_OK) {
        fprintf(stderr, "many_events: %s\n", err.text);
        return 3;
    }
    long steps = atol(argv[2]) * 50000;
    for (long i = 0; i < steps; i++) {
        step();
        if (i % 2000 == 1999) nanosleep(&(struct timespec){0, 500000}, NULL);
    }
    if (tare_stop(&err) != TARE_OK) fprintf(stderr, "many_events: %s\n", err.text);
    return 0;
}
