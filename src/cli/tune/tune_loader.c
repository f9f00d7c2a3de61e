/* SPDX-License-Identifier: MIT
 * tune_loader.c - `tare tune py:FILE.py:make_loader`: a Python process makes the loader, searches and confirms with the
 * package's own optimizer, and tells what it found; the rest is as for models. Ctrl-C asks it for what there is, and
 * whatever it started goes with it. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench/bench_args.h"
#include "cli/tune/loader_answer.h"
#include "cli/tune/tune_args.h"
#include "core/clock.h"
#include "core/json.h"
#include "probe/host.h"
#include "subject/py_wire.h"

enum { ANSWER_MAX = 64 << 20 };
#define ASK_NS UINT64_C(2000000000) /* after Ctrl-C it is asked so often for what there is, since Python may .. */
enum { ASKED_MOST = 10 };           /* .. swallow it where nothing can be raised */
#define END_NS UINT64_C(20000000000)
#define SLOW 10                      /* times the budget: then it does not answer any more */

/* ---- what is asked ---- */

static void put_words(struct json *j, const char *list)
{
    json_array_begin(j);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(p, ","), p);
        json_put_string(j, word);
    }
    json_array_end(j);
}

static void put_batches(struct json *j, const struct grid *asked)
{
    json_array_begin(j);
    for (size_t i = 0; i < asked->batch.values.n; i++) json_put_int(j, asked->batch.values.items[i]);
    json_array_end(j);
}

static void put_limits(struct json *j, const struct tune_args *a)
{
    double memory = NAN;
    json_key(j, "latency");
    json_array_begin(j);
    for (size_t i = 0; i < a->n_targets; i++) {
        const struct measure *m = measure_find(a->targets[i].metric);
        if (m->kind == MEASURE_BYTES) memory = a->targets[i].value;
        if (m->kind != MEASURE_TIME) continue;
        json_put_double(j, m->quantile);
        json_put_double(j, a->targets[i].value / 1e9);
    }
    json_array_end(j);
    json_kv_double(j, "memory", memory); /* none: null */
}

static tare_status write_wishes(const struct tune_args *a, struct buf *out, tare_error *err)
{
    struct json j;
    struct grid asked = GRID_INIT;
    tare_status s = model_args_grid(&a->setup, &asked, err);
    json_init(&j, out, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "target", a->model);
    json_kv_string(&j, "step", a->step);
    json_kv_double(&j, "budget_s", (double)a->budget.ns / 1e9);
    json_kv_double(&j, "min_gain", a->min_gain);
    json_kv_int(&j, "seed", (int64_t)(a->seed & INT32_MAX));
    json_kv_bool(&j, "explain", a->explain);
    json_kv_string(&j, "place", a->no_save ? NULL : a->history.output_dir); /* of a search that is not over */
    json_kv_bool(&j, "recalls", !a->no_resume);
    put_limits(&j, a);
    json_key(&j, "batches");
    put_batches(&j, &asked);
    json_key(&j, "only");
    put_words(&j, a->only);
    json_object_end(&j);
    grid_release(&asked);
    return s == TARE_OK ? json_finish(&j, err) : s;
}

/* ---- the process ---- */

struct listening {
    struct tuning *t;
    struct peer peer;
    struct buf text;  /* of the answer, piece by piece */
    int asked_to_end; /* so often */
    bool told;        /* it ends by itself: what it holds, it gives back */
};

/* One more packet; *done: the answer is complete. */
static tare_status hear_piece(struct listening *l, bool *done, tare_error *err)
{
    char bytes[PY_PACKET_MAX];
    struct peer_packet packet = {bytes, sizeof bytes, 0};
    uint64_t budget = (uint64_t)l->t->plan->args->budget.ns;
    struct peer_patience patience = {.timeout_ns = l->asked_to_end ? ASK_NS : SLOW * budget + END_NS,
                                     .interrupted = l->asked_to_end ? NULL : &interrupted};
    struct py_reply head = {0};
    const char *text = NULL;
    tare_status s = peer_hear(&l->peer, 0, &patience, &packet, err);
    if (s < 0 && interrupted && l->asked_to_end < ASKED_MOST && !peer_over(&l->peer)) {
        l->asked_to_end++;
        kill(l->peer.pid, SIGINT);
        return TARE_OK;
    }
    l->told = s == TARE_OK;
    if (s == TARE_OK) s = py_piece_read(bytes, packet.got, &head, &text, err);
    if (s < 0) return s;
    if (head.status > 0) {
        char what[320];
        uint64_t spent = clock_raw_ns() - l->t->began_ns;
        snprintf(what, sizeof what, "%.*s", (int)(head.n < 300 ? head.n : 300), text);
        progress_time(&l->t->bar, what, spent < budget ? spent : budget, budget);
        return TARE_OK;
    }
    if (head.value > ANSWER_MAX || l->text.len + head.n > head.value || head.n == 0)
        return error_set(err, TARE_FORMAT, "an answer of %zu bytes that says it has %llu",
                         l->text.len + head.n, (unsigned long long)head.value);
    buf_add(&l->text, text, head.n);
    *done = l->text.len == head.value;
    return buf_status(&l->text, err);
}

static void describe(const struct tune_args *a, const struct py_hello *hello, const char *python,
                     struct run *run)
{
    struct arena *m = &run->arena;
    run->subject.type = "python";
    run->subject.name = arena_str(m, hello->name);
    if (hello->path[0]) run->subject.path = arena_str(m, hello->path);
    run->subject.runtime = (struct run_runtime){true, "python", arena_str(m, hello->version)};
    run_map_text(m, &run->config, "function", a->model);
    if (a->step) run_map_text(m, &run->config, "step", a->step);
    run_map_text(m, &run->config, "python", python);
}

static tare_status ask_python(struct tuning *t, struct loader_answer *out, tare_error *err)
{
    const struct tune_args *a = t->plan->args;
    struct listening l = {.t = t, .peer = PEER_INIT("the Python process")};
    struct buf wishes = BUF_INIT;
    struct py_hello hello;
    char room[PATH_MAX];
    const char *python = cli_python(room, sizeof room);
    tare_status s = write_wishes(a, &wishes, err);
    const char *argv[] = {python, "-m", "tare", "_tune_worker", wishes.data, NULL};
    if (s == TARE_OK) s = py_start(&l.peer, python, argv, 1, err);
    if (s == TARE_IO) s = err->status = TARE_UNSUPPORTED; /* no Python is no bad input */
    if (s == TARE_OK) s = py_greeting(&l.peer, python, &interrupted, &hello, err);
    if (s == TARE_OK) describe(a, &hello, python, t->run);
    for (bool done = false; s == TARE_OK && !done;) s = hear_piece(&l, &done, err);
    if (s == TARE_OK) s = loader_answer_read(out, &t->run->arena, l.text.data, l.text.len, err);
    if (s < 0 && !l.told && peer_alive(&l.peer)) kill(l.peer.pid, SIGINT); /* names in /dev/shm are its own */
    peer_stop(&l.peer);
    buf_release(&l.text);
    buf_release(&wishes);
    return s;
}

/* ---- what it found ---- */

static tare_status take_trial(struct tuning *t, const struct loader_trial *of, tare_error *err)
{
    struct tune_trial trial = {.name = of->name, .params = of->params, .units = of->units};
    struct run_case c = {.failure = of->failure, .samples_raw = of->times};
    c.cpu.utilization = of->cpu_share;
    c.memory.rss_peak = of->memory;
    tare_status s = ab_member_recall(&trial.member, &c, err);
    if (s == TARE_OK) s = vec_push(&t->trials, trial, err);
    if (s < 0)
        ab_member_release(&trial.member);
    else
        tune_over_limit(t, vec_last(&t->trials), err);
    return s;
}

static void add_notes(struct tuning *t, const struct loader_texts *notes)
{
    for (size_t i = 0; i < notes->n; i++) {
        struct run_finding *f = run_add_finding(t->run, "tune.noted", "info");
        if (f) f->title = notes->at[i];
    }
}

static tare_status take_texts(struct tuning *t, const struct loader_answer *of, tare_error *err)
{
    struct buf b = BUF_INIT;
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < of->left.n; i++)
        s = tune_plan_leave(t->plan, err, "%s", of->left.at[i]);
    for (size_t i = 0; i < of->to_try.n; i++) buf_printf(&b, "%s%s", i ? ", " : "", of->to_try.at[i]);
    if (!b.failed && b.len) t->to_try = arena_str(&t->run->arena, b.data);
    buf_release(&b);
    t->refusal = of->refusal;
    t->apply = of->apply;
    return s;
}

static tare_status take(struct tuning *t, const struct loader_answer *of, tare_error *err)
{
    tare_status s = take_texts(t, of, err);
    for (size_t i = 0; s == TARE_OK && i < of->n; i++) s = take_trial(t, &of->trials[i], err);
    if (s < 0 || t->plan->args->explain) return s;
    if (of->n == 0 || !of->trials[0].times.known)
        return error_set(err, TARE_DENIED, "%s",
                         of->n && of->trials[0].failure && !of->interrupted
                             ? of->trials[0].failure
                             : "interrupted: nothing was measured");
    t->best = of->best;
    t->measurements = of->measurements;
    t->recalled = of->recalled;
    t->has_proof = of->has_proof;
    t->proof = of->proof;
    t->nothing_fits = t->trials.items[t->best].over != NULL;
    snprintf(t->proof_failure, sizeof t->proof_failure, "%s",
             of->interrupted ? "it was interrupted" : "it was not measured");
    return s;
}

static struct tune_bound bound_of(const struct loader_answer *of)
{
    struct tune_bound b = {.known = of->bound.known,
                           .gain = of->bound.v,
                           .any_batch = NAN,
                           .loader = of->by_what,
                           .stages_ms = of->stages_ms};
    snprintf(b.why_not, sizeof b.why_not, "%.150s", of->bound_why ? of->bound_why : "");
    return b;
}

int tune_loader(struct cli *cli, const struct tune_args *a, struct run *run)
{
    struct tune_plan plan = {.args = a};
    struct tuning t = {.cli = cli, .plan = &plan, .run = run, .bar = PROGRESS_INIT(cli)};
    struct loader_answer found = {0};
    struct tune_bound bound;
    tare_status s = run_init(run, "tune", &cli->error);
    if (s == TARE_OK) s = host_read(run, "", &cli->error);
    if (s == TARE_OK) gitstate_describe(run);
    t.began_ns = clock_raw_ns();
    if (s == TARE_OK) s = ask_python(&t, &found, &cli->error);
    progress_end(&t.bar);
    if (s == TARE_OK) s = take(&t, &found, &cli->error);
    bound = bound_of(&found);
    if (s == TARE_OK) s = tune_begin(&t, &bound);
    if (s == TARE_OK) add_notes(&t, &found.notes);
    int rc = 0;
    if (s < 0)
        rc = cli_fail(cli);
    else
        rc = a->explain ? tune_answer_bound(&t, &bound) : tune_conclude(&t, &bound);
    tuning_release(&t);
    tune_plan_release(&plan);
    return rc;
}
