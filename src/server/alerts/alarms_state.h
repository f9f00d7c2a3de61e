/* SPDX-License-Identifier: MIT
 * alarms_state.h - how each rule stands to each thing that it is about, and who judges what. Private to alarms*.c. All
 * is done by the one thread of the alarms; others only read, with the lock. */
#ifndef SERVER_ALARMS_STATE_H
#define SERVER_ALARMS_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "analyze/watch/alert.h"
#include "server/alerts/alarms.h"
#include "watch/watch_hook.h"

/* One rule and one thing: a host, a promise of a service, a case of a subject. */
struct alarm {
    const struct alert_rule *rule;
    char *project, *about;
    struct alerts *alone; /* its rule alone; NULL: a host has all of them together */
    bool ever, firing;
    bool told;  /* what was told last: that it fires */
    bool dirty; /* differs from what the store has */
    int64_t since_ms, heard_ms;
    double value;
    char run[ULID_SIZE]; /* that brought it; "": none did */
};

struct alarm_news {
    bool fired;
    int64_t at_ms;
    double value;
    const char *action, *run; /* "", NULL: none */
};

struct host_watch;

struct alarms {
    struct alarms_options options;
    struct store *store;
    struct alert_rules rules, host_rules; /* host_rules: those on what hosts send */
    struct hooks hooks;
    struct silences silences; /* as of this look */
    VEC(struct host_watch *) hosts;
    int64_t chunk_seq, run_seq, pins; /* pins: of baselines, as they were at the last look */
    uint64_t burns_at_ns;             /* when burn rates were looked at last; 0: never */
    pthread_t thread;
    bool started;
    atomic_bool tests[WORDS_MAX]; /* of each rule: somebody wants to see its message */
    pthread_mutex_t lock;         /* over what follows */
    pthread_cond_t wake;
    bool stop;
    VEC(struct alarm *) at;
};

int64_t alarms_now_ms(void);

/* The one with the rule, project and name of `like`; made where there is none. */
tare_status alarm_find(struct alarms *a, const struct alarm *like, struct alarm **out, tare_error *err);
/* It fired or cleared: told unless somebody asked for silence, then when that ends. */
void alarm_change(struct alarms *a, struct alarm *al, const struct alarm_news *news);
void alarm_heard(struct alarms *a, struct alarm *al, int64_t at_ms);
/* The same of a rule by itself, whose value is known; NAN: it is not. */
tare_status alarm_judge(struct alarms *a, const struct alarm *like, const struct alarm_news *news,
                        tare_error *err);

tare_status alarms_look_hosts(struct alarms *a, bool *more, tare_error *err); /* alarms_hosts.c */
void alarms_forget_hosts(struct alarms *a);
tare_status alarms_look_burns(struct alarms *a, tare_error *err); /* alarms_kept.c */
tare_status alarms_look_runs(struct alarms *a, tare_error *err);

#endif
