/* SPDX-License-Identifier: MIT
 * alarms.c - see alarms.h. */
#include "server/alerts/alarms.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "server/alerts/alarms_state.h"

enum { LOOK_EVERY_MS = 1000, NO_DATA_MS = 120000 };

int64_t alarms_now_ms(void)
{
    return (int64_t)(clock_unix_ns() / 1000000);
}

/* ---- silence ---- */

static tare_status keep_silence(void *ctx, const struct store_silence *q, tare_error *err)
{
    struct silences *to = ctx;
    struct store_silence copy = *q;
    const char **texts[] = {&copy.id, &copy.project, &copy.rule, &copy.about, &copy.why, &copy.who};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*texts[i]) *texts[i] = arena_str(&to->arena, *texts[i]);
    return to->arena.failed ? error_nomem(err, "silences") : vec_push(&to->at, copy, err);
}

tare_status silences_read(struct silences *out, struct store *s, tare_error *err)
{
    return s->ops->silences(s, alarms_now_ms(), keep_silence, out, err);
}

void silences_release(struct silences *q)
{
    vec_release(&q->at);
    arena_release(&q->arena);
    *q = (struct silences)SILENCES_INIT;
}

/* Until when nobody is told of it; 0: they are. */
static int64_t silent_until(const struct silences *q, const struct alarm *al)
{
    int64_t until = 0;
    for (size_t i = 0; i < q->at.n; i++) {
        const struct store_silence *s = &q->at.items[i];
        if (s->project[0] && strcmp(s->project, al->project) != 0) continue;
        if (s->rule && strcmp(s->rule, al->rule->text) != 0) continue;
        if (s->about && strcmp(s->about, al->about) != 0) continue;
        if (s->until_ms > until) until = s->until_ms;
    }
    return until;
}

/* ---- what is told ---- */

static void begin_message(struct json *j, struct buf *to, const char *state, const struct alert_rule *r)
{
    json_init(j, to, JSON_STYLE_COMPACT);
    json_object_begin(j);
    json_kv_string(j, "state", state);
    json_kv_string(j, "rule", r->text);
    json_kv_string(j, "metric", r->when.name);
    json_kv_string(j, "label", r->when.label);
    json_kv_double(j, "threshold", r->when.threshold);
    json_kv_string(j, "unit", r->unit);
}

static void send_message(struct alarms *a, struct json *j, struct buf *message)
{
    pid_t pids[HOOK_KINDS];
    json_object_end(j);
    json_finish(j, NULL);
    buf_add_char(message, '\n');
    hooks_start(&a->hooks, message, pids);
    buf_release(message);
}

static void tell(struct alarms *a, struct alarm *al, const char *action)
{
    struct buf message = BUF_INIT;
    struct json j;
    al->told = al->firing;
    al->dirty = true;
    if (!alarms_tells(a)) return;
    begin_message(&j, &message, al->firing ? "fired" : "cleared", al->rule);
    json_kv_double(&j, "value", al->value);
    json_kv_string(&j, "about", al->about);
    json_kv_string(&j, "project", al->project);
    json_kv_string(&j, "run", al->run[0] ? al->run : NULL);
    json_kv_int(&j, "at_ms", al->since_ms);
    json_kv_string(&j, "action", action);
    send_message(a, &j, &message);
}

static void tell_test(struct alarms *a, const struct alert_rule *r)
{
    struct buf message = BUF_INIT;
    struct json j;
    begin_message(&j, &message, "test", r);
    json_kv_bool(&j, "test", true);
    json_kv_string(&j, "text", "this is a test of the rule's message: nothing happened");
    json_kv_int(&j, "at_ms", alarms_now_ms());
    json_kv_string(&j, "action", r->action);
    send_message(a, &j, &message);
}

static void reap(struct alarms *a)
{
    int status;
    hooks_expire(&a->hooks, clock_raw_ns());
    for (size_t i = 0; i < HOOKS_AT_ONCE; i++) {
        pid_t pid = a->hooks.running[i].pid;
        if (pid && waitpid(pid, &status, WNOHANG) == pid) hooks_ended(&a->hooks, pid, status);
    }
}

/* Is there room for one more message, to everybody who gets it? */
static bool has_room(const struct alarms *a)
{
    return hooks_running(&a->hooks) + HOOK_KINDS <= HOOKS_AT_ONCE;
}

/* ---- how things stand ---- */

static void free_alarm(struct alarm *al)
{
    if (!al) return;
    alerts_free(al->alone);
    mem_free(al->project);
    mem_free(al->about);
    mem_free(al);
}

tare_status alarm_find(struct alarms *a, const struct alarm *like, struct alarm **out, tare_error *err)
{
    for (size_t i = 0; i < a->at.n; i++) {
        struct alarm *al = *out = a->at.items[i];
        if (strcmp(al->rule->text, like->rule->text) == 0 && strcmp(al->project, like->project) == 0 &&
            strcmp(al->about, like->about) == 0)
            return TARE_OK;
    }
    struct alarm *al = *out = mem_new(1, sizeof *al);
    if (!al) return error_nomem(err, "an alert");
    al->rule = like->rule;
    al->project = mem_strdup(like->project);
    al->about = mem_strdup(like->about);
    tare_status s = al->project && al->about ? TARE_OK : error_nomem(err, "an alert");
    if (s == TARE_OK) s = alerts_new(&al->alone, like->rule, 1, err);
    pthread_mutex_lock(&a->lock);
    if (s == TARE_OK) s = vec_push(&a->at, al, err);
    pthread_mutex_unlock(&a->lock);
    if (s != TARE_OK) free_alarm(al);
    return s;
}

void alarm_change(struct alarms *a, struct alarm *al, const struct alarm_news *news)
{
    pthread_mutex_lock(&a->lock);
    al->ever = al->dirty = true;
    al->firing = news->fired;
    al->since_ms = news->at_ms;
    al->value = news->value;
    if (news->fired) snprintf(al->run, sizeof al->run, "%s", news->run ? news->run : "");
    pthread_mutex_unlock(&a->lock);
    if (al->firing != al->told && !silent_until(&a->silences, al) && has_room(a)) tell(a, al, news->action);
}

void alarm_heard(struct alarms *a, struct alarm *al, int64_t at_ms)
{
    pthread_mutex_lock(&a->lock);
    al->heard_ms = at_ms;
    pthread_mutex_unlock(&a->lock);
}

tare_status alarm_judge(struct alarms *a, const struct alarm *like, const struct alarm_news *news,
                        tare_error *err)
{
    struct alarm *al;
    struct alarm_news now = *news;
    tare_status s = alarm_find(a, like, &al, err);
    if (s != TARE_OK || isnan(news->value)) return s;
    int what = alerts_tell(al->alone, 0, news->value, (uint64_t)news->at_ms * 1000000);
    now.fired = what > 0;
    if (what != 0) alarm_change(a, al, &now);
    alarm_heard(a, al, strcmp(al->rule->when.name, ALERT_REGRESSION) == 0 ? INT64_MAX : news->at_ms);
    return TARE_OK;
}

/* What could not be told before: somebody wanted silence, or too much was told at once. */
static void tell_rest(struct alarms *a)
{
    for (size_t i = 0; i < a->at.n && has_room(a); i++) {
        struct alarm *al = a->at.items[i];
        if (al->firing != al->told && !silent_until(&a->silences, al)) tell(a, al, al->rule->action);
    }
    for (size_t i = 0; i < a->rules.items.n && has_room(a); i++)
        if (atomic_exchange(&a->tests[i], false)) tell_test(a, &a->rules.items.items[i]);
}

/* ---- the store ---- */

static tare_status save(struct alarms *a, tare_error *err)
{
    bool any = false;
    for (size_t i = 0; i < a->at.n; i++) any = any || a->at.items[i]->dirty;
    tare_status s = any ? a->store->ops->begin(a->store, err) : TARE_OK;
    if (!any || s != TARE_OK) return s;
    for (size_t i = 0; i < a->at.n && s == TARE_OK; i++) {
        const struct alarm *al = a->at.items[i];
        struct store_alert row = {.rule = al->rule->text,
                                  .project = al->project,
                                  .about = al->about,
                                  .firing = al->firing,
                                  .told = al->told,
                                  .since_ms = al->since_ms,
                                  .value = al->value,
                                  .run = al->run[0] ? al->run : NULL};
        if (al->dirty) s = a->store->ops->alert_put(a->store, &row, err);
    }
    tare_status end = a->store->ops->end(a->store, s == TARE_OK, s == TARE_OK ? err : NULL);
    for (size_t i = 0; i < a->at.n && s == TARE_OK && end == TARE_OK; i++) a->at.items[i]->dirty = false;
    return s != TARE_OK ? s : end;
}

static const struct alert_rule *rule_of(const struct alarms *a, const char *text)
{
    for (size_t i = 0; i < a->rules.items.n; i++)
        if (strcmp(a->rules.items.items[i].text, text) == 0) return &a->rules.items.items[i];
    return NULL;
}

/* A rule that is no longer there has no state. */
static tare_status resume(void *ctx, const struct store_alert *row, tare_error *err)
{
    struct alarms *a = ctx;
    struct alarm *al, like = {.rule = rule_of(a, row->rule)};
    if (!like.rule) return TARE_OK;
    like.project = mem_strdup(row->project);
    like.about = mem_strdup(row->about);
    tare_status s =
        like.project && like.about ? alarm_find(a, &like, &al, err) : error_nomem(err, "an alert");
    mem_free(like.project);
    mem_free(like.about);
    if (s != TARE_OK) return s;
    al->ever = true;
    al->firing = row->firing;
    al->told = row->told;
    al->since_ms = row->since_ms;
    al->value = row->value;
    al->heard_ms = alarms_now_ms();
    snprintf(al->run, sizeof al->run, "%s", row->run ? row->run : "");
    alerts_resume(al->alone, 0, row->firing);
    return TARE_OK;
}

/* ---- looking ---- */

static tare_status look(struct alarms *a, bool *more, tare_error *err)
{
    silences_release(&a->silences);
    tare_status s = silences_read(&a->silences, a->store, err);
    if (s == TARE_OK) s = alarms_look_hosts(a, more, err);
    if (s == TARE_OK) s = alarms_look_burns(a, err);
    if (s == TARE_OK) s = alarms_look_runs(a, err);
    if (s == TARE_OK) tell_rest(a);
    return s == TARE_OK ? save(a, err) : s;
}

static void *keep_looking(void *ctx)
{
    struct alarms *a = ctx;
    bool failed = false;
    pthread_mutex_lock(&a->lock);
    while (!a->stop) {
        tare_error err = TARE_ERROR_INIT;
        struct timespec until;
        bool more = false;
        pthread_mutex_unlock(&a->lock);
        reap(a);
        tare_status s = look(a, &more, &err);
        if (s != TARE_OK && !failed) a->options.say(a->options.say_ctx, err.text);
        failed = s != TARE_OK;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += more ? 0 : LOOK_EVERY_MS / 1000;
        pthread_mutex_lock(&a->lock);
        if (!a->stop) pthread_cond_timedwait(&a->wake, &a->lock, &until);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* ---- asking ---- */

static const char *state_of(const struct alarm *al)
{
    if (alarms_now_ms() - NO_DATA_MS > al->heard_ms) return "no data";
    if (al->firing) return "firing";
    return al->ever ? "resolved" : "good";
}

static void put_alarm(struct json *j, const struct alarm *al, const struct silences *q)
{
    int64_t silent = silent_until(q, al);
    json_object_begin(j);
    json_kv_string(j, "rule", al->rule->text);
    json_kv_string(j, "about", al->about);
    json_kv_string(j, "project", al->project[0] ? al->project : NULL);
    json_kv_string(j, "state", state_of(al));
    json_key(j, "since_ms");
    if (al->ever)
        json_put_int(j, al->since_ms);
    else
        json_put_null(j);
    json_kv_double(j, "value", al->ever ? al->value : (double)NAN);
    json_kv_double(j, "threshold", al->rule->when.threshold);
    json_kv_string(j, "unit", al->rule->unit);
    json_kv_string(j, "run", al->run[0] ? al->run : NULL);
    json_key(j, "silent_until_ms");
    if (silent)
        json_put_int(j, silent);
    else
        json_put_null(j);
    json_object_end(j);
}

void alarms_json(struct alarms *a, const char *project, const struct silences *q, struct json *j)
{
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->at.n; i++)
        if (!project[0] || strcmp(project, a->at.items[i]->project) == 0) put_alarm(j, a->at.items[i], q);
    pthread_mutex_unlock(&a->lock);
}

bool alarms_has(const struct alarms *a, const char *rule)
{
    return rule_of(a, rule) != NULL;
}

bool alarms_tells(const struct alarms *a)
{
    return a->hooks.command || a->hooks.url;
}

void alarms_test(struct alarms *a, const char *rule)
{
    const struct alert_rule *r = rule_of(a, rule);
    if (!r) return;
    atomic_store(&a->tests[r - a->rules.items.items], true);
    pthread_cond_signal(&a->wake);
}

/* ---- opening ---- */

static tare_status start(struct alarms *a, tare_error *err)
{
    sigset_t all, was;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    int rc = pthread_create(&a->thread, NULL, keep_looking, a);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    a->started = rc == 0;
    errno = rc;
    return rc ? error_errno(err, "no thread for alerts") : TARE_OK;
}

static tare_status read_rules(struct alarms *a, const struct words *texts, tare_error *err)
{
    struct alert_rule rule;
    tare_status s = TARE_OK;
    for (size_t i = 0; i < texts->n && s == TARE_OK; i++) {
        s = alert_parse_served(&rule, texts->at[i], err);
        if (s == TARE_OK) s = vec_push(&a->rules.items, rule, err);
        if (s == TARE_OK && rule.when.quantity != DERIVED_NONE) s = vec_push(&a->host_rules.items, rule, err);
    }
    return s;
}

tare_status alarms_open(struct alarms **out, const struct alarms_options *o, tare_error *err)
{
    const struct operations *ops = o->operations;
    struct alarms *a = mem_new(1, sizeof *a);
    pthread_condattr_t steady;
    if (!a) return error_nomem(err, "alerts");
    a->options = *o;
    a->silences = (struct silences)SILENCES_INIT;
    a->hooks = (struct hooks){.command = ops->alert_command, .url = ops->alert_webhook};
    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&a->wake, &steady);
    pthread_condattr_destroy(&steady);
    tare_status s = read_rules(a, &ops->alert_rules, err);
    if (s == TARE_OK) s = store_open(&a->store, o->store, &(struct store_options){.create = true}, err);
    if (s == TARE_OK) s = a->store->ops->chunk_newest(a->store, &a->chunk_seq, err);
    if (s == TARE_OK) s = a->store->ops->alerts(a->store, resume, a, err);
    if (s == TARE_OK) s = start(a, err);
    if (s != TARE_OK) {
        alarms_close(a);
        return s;
    }
    *out = a;
    return TARE_OK;
}

void alarms_close(struct alarms *a)
{
    if (!a) return;
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_mutex_unlock(&a->lock);
    pthread_cond_signal(&a->wake);
    if (a->started) pthread_join(a->thread, NULL);
    alarms_forget_hosts(a);
    for (size_t i = 0; i < a->at.n; i++) free_alarm(a->at.items[i]);
    vec_release(&a->at);
    silences_release(&a->silences);
    vec_release(&a->rules.items);
    vec_release(&a->host_rules.items);
    store_close(a->store);
    pthread_cond_destroy(&a->wake);
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
}
