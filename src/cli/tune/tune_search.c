/* SPDX-License-Identifier: MIT
 * tune_search.c - the loop of a search: ask for a block of configurations, measure them in turns, tell. What an
 * earlier search of the same key measured is told first. Judges nothing: analyze/tune does. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/tune/told.h"
#include "cli/tune/tune_args.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/fmt.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/stats.h"
#include "probe/procstat.h"

#define SLICE_LEAST_NS UINT64_C(60000000)
#define SLICE_MOST_NS UINT64_C(1000000000) /* but for the one run that each turn has */
#define SLICE_RUNS 6       /* that a slice has room for, at the speed of today */
#define SLOW_NS UINT64_C(400000000) /* runs from this on are measured once in a block, and again if they look good */
#define RUN_SHARE 0.12 /* of the search's time that one run may be expected to take: slower ones are not tried */
#define SEARCH_SHARE 0.6   /* of the budget; the rest is for the proof */
#define LAUNCH_NS UINT64_C(250000000) /* of a worker, before one was launched */
#define EQUAL 0.01
#define AS_GOOD 0.03 /* a simpler configuration may cost so much more */
enum { LIMIT_RUNS = 150 }; /* a p95 needs 72, and more where neighbours are alike */

/* ---- trials ---- */

bool tune_is_slow(const struct tuning *t)
{
    return t->plan->typical_ns >= SLOW_NS;
}

/* As bench/ab_worker.c warms up: some runs, for about a second at most. */
double tune_warm_ns(double run_ns)
{
    return fmin(8 * run_ns, fmax(1e9, run_ns));
}

double tune_units(const struct tuning *t, const struct tune_trial *trial)
{
    if (trial->units > 0) return trial->units;
    int64_t batch = tune_chosen(t->plan, &trial->at, TUNE_BATCH)->number;
    return batch > 0 ? (double)batch : 1;
}

static size_t trial_of(struct tuning *t, const struct tune_point *at, tare_error *err)
{
    for (size_t i = 0; i < t->trials.n; i++)
        if (memcmp(t->trials.items[i].at.at, at->at, TUNE_SETTINGS) == 0) return i;
    struct tune_trial trial = {.at = *at, .name = tune_name(t->plan, at)};
    if (!trial.name) {
        error_nomem(err, "a configuration");
        return SIZE_MAX;
    }
    return vec_push(&t->trials, trial, err) == TARE_OK ? t->trials.n - 1 : SIZE_MAX;
}

/* What the limit is set against: by what was measured so far, the middle of its interval. */
static bool measured_of(const struct tune_trial *trial, const struct target *t, double *out, tare_error *err)
{
    const struct measure *m = measure_find(t->metric);
    size_t n = 0;
    if (m->kind == MEASURE_BYTES) {
        *out = (double)trial->member.rss_peak;
        return trial->member.rss_peak > 0;
    }
    if (m->kind != MEASURE_TIME) return false;
    double *x = ab_member_sorted(&trial->member, &n, err);
    if (!x) return false;
    *out = stats_quantile_sorted(x, n, m->quantile);
    mem_free(x);
    return true;
}

bool tune_over_limit(struct tuning *t, struct tune_trial *trial, tare_error *err)
{
    const struct tune_args *a = t->plan->args;
    trial->over = NULL;
    for (size_t i = 0; i < a->n_targets && !trial->over; i++) {
        const struct target *limit = &a->targets[i];
        double got;
        if (limit == a->gate || !measured_of(trial, limit, &got, err)) continue;
        if (limit->op == TARGET_LT ? got < limit->value : got <= limit->value) continue;
        bool time = measure_find(limit->metric)->kind == MEASURE_TIME;
        trial->over = arena_printf(&t->run->arena, "%s is %s: over the limit of %s", limit->metric,
                                   time ? show_time(got).s : show_bytes(got).s,
                                   time ? show_time(limit->value).s : show_bytes(limit->value).s);
    }
    return trial->over != NULL;
}

static double cost_of(const struct tuning *t, const struct tune_trial *trial)
{
    int objective = t->plan->args->objective;
    if (objective == OBJECTIVE_MEMORY) return trial->member.rss_peak ? (double)trial->member.rss_peak : NAN;
    return objective == OBJECTIVE_LATENCY ? trial->member.median_ns
                                          : trial->member.median_ns / tune_units(t, trial);
}

static struct tune_answer answer_of(struct tuning *t, struct tune_trial *trial, tare_error *err)
{
    struct tune_answer a = {.outcome = TUNE_FAILED};
    double cost = cost_of(t, trial);
    if (trial->member.failed < 0 || !(cost > 0) || !isfinite(cost)) return a;
    a.cost = cost;
    a.outcome = tune_over_limit(t, trial, err) ? TUNE_OVER_LIMIT : TUNE_MEASURED;
    return a;
}

/* ---- what was told, for the next search ---- */

static void remember(struct tuning *t, const struct tune_block *b, const struct tune_answer *answers)
{
    struct arena *a = &t->run->arena;
    struct run_value *list = run_map_set(a, &t->blocks, NULL, (struct run_value){.kind = RUN_LIST});
    for (size_t i = 0; list && i < b->n; i++) {
        char text[TOLD_TEXT_MAX];
        told_write(&t->plan->space, &b->at[i], &answers[i], text);
        run_map_text(a, &list->items, NULL, text);
    }
}

static const struct run_case *case_named(const struct run *of, const char *name)
{
    for (size_t i = 0; i < of->cases.n; i++)
        if (strcmp(of->cases.at[i]->name, name) == 0) return of->cases.at[i];
    return NULL;
}

/* One block of the earlier document (NULL: this search measured it); what cannot be read is left out, and measured
 * anew. */
static tare_status recall_block(struct tuning *t, const struct run *old, const struct run_value *list,
                                struct tune_search *search)
{
    struct tune_block block = {0};
    struct tune_answer answers[TUNE_BLOCK_MAX];
    tare_error *err = &t->cli->error;
    if (list->kind != RUN_LIST || list->items.n == 0 || list->items.n > TUNE_BLOCK_MAX) return TARE_OK;
    for (; block.n < list->items.n; block.n++) {
        const struct run_value *v = &list->items.at[block.n].value;
        if (v->kind != RUN_TEXT || !told_read(&t->plan->space, v->s, &block.at[block.n], &answers[block.n]))
            return TARE_OK;
    }
    for (size_t i = 0; i < block.n; i++) {
        size_t at = trial_of(t, &block.at[i], err);
        if (at == SIZE_MAX) return TARE_NOMEM;
        struct tune_trial *trial = &t->trials.items[at];
        const struct run_case *c = old ? case_named(old, trial->name) : NULL;
        if (!old) continue;
        if (!c) return TARE_OK;
        tare_status s = trial->member.sampled ? TARE_OK : ab_member_recall(&trial->member, c, err);
        if (s < 0) return s;
        tune_over_limit(t, trial, err);
        tune_plan_saw(t->plan, &trial->at, trial->member.median_ns);
    }
    if (tune_search_tell(search, &block, answers, NULL) < 0) return TARE_OK; /* as many as can be told */
    remember(t, &block, answers);
    if (old) t->recalled += block.n;
    return TARE_OK;
}

/* ---- the earlier document ---- */

static bool is_tuned(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return strncmp(e->d_name, "tune_", 5) == 0 && n > 5 && strcmp(e->d_name + n - 5, ".json") == 0;
}

static const struct run_value *told_in(const struct run *r, const char *what)
{
    const struct run_value *tune = run_map_get(&r->config, "tune");
    return tune && tune->kind == RUN_MAP ? run_map_get(&tune->items, what) : NULL;
}

/* The latest one of this key in the folder of results; what cannot be read there is not ours to complain about. */
static bool find_earlier(const char *dir, const char *key, struct run *out)
{
    DIR *folder = opendir(dir);
    bool found = false;
    for (const struct dirent *e; folder && (e = readdir(folder));) {
        char path[4096];
        struct run r = {0};
        int len = snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (!is_tuned(e) || len < 0 || (size_t)len >= sizeof path || run_load(&r, path, NULL) < 0) continue;
        const struct run_value *told = told_in(&r, "key");
        bool later = told && told->kind == RUN_TEXT && strcmp(told->s, key) == 0 &&
                     (!found || strcmp(r.created, out->created) > 0);
        if (later && found) run_release(out);
        if (later)
            *out = r;
        else
            run_release(&r);
        found = found || later;
    }
    if (folder) closedir(folder);
    return found;
}

static size_t count_told(const struct run *old)
{
    const struct run_value *blocks = told_in(old, "blocks");
    size_t n = 0;
    for (size_t i = 0; blocks && blocks->kind == RUN_LIST && i < blocks->items.n; i++)
        if (blocks->items.at[i].value.kind == RUN_LIST) n += blocks->items.at[i].value.items.n;
    return n;
}

/* A search that came to its end goes on only when it is given more time than then. */
static tare_status recall(struct tuning *t, const struct run *old, struct tune_search *search)
{
    const struct run_value *blocks = told_in(old, "blocks"), *done = told_in(old, "done");
    const struct run_value *budget = run_map_get(&old->config, "budget_s");
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && blocks && blocks->kind == RUN_LIST && i < blocks->items.n; i++)
        s = recall_block(t, old, &blocks->items.at[i].value, search);
    double then = budget && budget->kind == RUN_REAL ? budget->d : 0;
    if (budget && budget->kind == RUN_INT) then = (double)budget->i; /* whole numbers are read as such */
    bool more = (double)t->plan->args->budget.ns / 1e9 > then;
    t->done = t->recalled > 0 && done && done->kind == RUN_BOOL && done->yes && !more;
    return s;
}

/* ---- what there is so far, for the next search if this one is killed ---- */

static void record_search(struct tuning *t)
{
    struct arena *a = &t->run->arena;
    struct run_map m = {0};
    run_map_text(a, &m, "key", t->key);
    run_map_bool(a, &m, "done", t->done);
    run_map_int(a, &m, "measurements", (int64_t)t->measurements);
    run_map_int(a, &m, "recalled", (int64_t)t->recalled);
    run_map_set(a, &m, "blocks", (struct run_value){.kind = RUN_LIST, .items = t->blocks});
    run_map_set(a, &t->run->config, "tune", (struct run_value){.kind = RUN_MAP, .items = m});
}

/* A search of the same key has the same one, which find_earlier() finds. False: there is none. */
static bool part_path(const struct tuning *t, char *path, size_t size)
{
    const struct tune_args *a = t->plan->args;
    if (a->no_save || !t->key) return false;
    int n = snprintf(path, size, "%s/tune_%016llx.part.json", a->history.output_dir,
                     (unsigned long long)map_hash(0, t->key, strlen(t->key)));
    return n > 0 && (size_t)n < size;
}

/* A document like the one at the end, in memory of its own. Where it cannot be written, the search goes on: then it
 * cannot be resumed if it is killed, and the end will tell what is wrong with the folder. */
static void keep_part(struct tuning *t)
{
    char path[4096];
    struct run part = *t->run, *whole = t->run;
    struct buf text = BUF_INIT;
    if (!part_path(t, path, sizeof path) || file_make_folders(t->plan->args->history.output_dir, NULL) < 0)
        return;
    part.arena = (struct arena)ARENA_INIT;
    memset(&part.cases, 0, sizeof part.cases);
    t->run = &part;
    record_search(t);
    if (tune_record_trials(t) == TARE_OK && run_write(&part, &text, NULL) == TARE_OK)
        file_write_atomic(path, text.data, text.len, 0, NULL);
    t->run = whole;
    t->cli->error = (tare_error)TARE_ERROR_INIT;
    buf_release(&text);
    arena_release(&part.arena);
}

void tune_part_remove(const struct tuning *t)
{
    char path[4096];
    if (part_path(t, path, sizeof path)) unlink(path);
}

/* ---- measuring ---- */

/* All at once only where memory has room for them beside each other with ease. */
static bool must_be_alone(const struct tuning *t, size_t n)
{
    struct stat st;
    struct known_u64 free = memory_available("");
    if (t->plan->of[TUNE_PROVIDER].n > 1) return true; /* a GPU's memory is nobody's guess */
    if (stat(t->plan->args->model, &st) < 0 || !free.known) return true;
    return (uint64_t)st.st_size * 4 * n > free.v / 2;
}

static tare_status measure(struct tuning *t, const size_t *numbers, size_t n)
{
    struct ab_member *members[TUNE_BLOCK_MAX];
    tare_error *err = &t->cli->error;
    size_t taken = 0;
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < n; i++) {
        struct tune_trial *trial = &t->trials.items[numbers[i]];
        if (trial->member.failed < 0) continue;
        s = tune_lane(t->plan, &trial->at, &trial->member.lane, err);
        if (s == TARE_OK) members[taken++] = &trial->member;
    }
    struct ab_block block = {.at = members,
                             .n = taken,
                             .slice_ns = t->slice_ns,
                             .least_runs = t->least_runs,
                             .turns = tune_is_slow(t) ? 1 : 0,
                             .seed = t->plan->args->seed + t->measurements,
                             .alone = must_be_alone(t, taken),
                             .interrupted = &interrupted};
    if (s == TARE_OK && taken) s = ab_block_run(&block, err);
    for (size_t i = 0; i < taken; i++) {
        ab_lane_close(members[i]->lane);
        members[i]->lane = NULL;
    }
    t->measurements += taken;
    return s;
}

static void show_progress(struct tuning *t, const char *what)
{
    uint64_t spent = clock_raw_ns() - t->began_ns, all = (uint64_t)t->plan->args->budget.ns;
    progress_time(&t->bar, what, spent < all ? spent : all, all);
}

static tare_status measure_block(struct tuning *t, const struct tune_block *block, struct tune_search *search)
{
    size_t numbers[TUNE_BLOCK_MAX];
    struct tune_answer answers[TUNE_BLOCK_MAX];
    char what[96];
    for (size_t i = 0; i < block->n; i++) {
        numbers[i] = trial_of(t, &block->at[i], &t->cli->error);
        if (numbers[i] == SIZE_MAX) return TARE_NOMEM;
    }
    snprintf(what, sizeof what, "%zu configurations tried", t->trials.n);
    show_progress(t, what);
    tare_status s = measure(t, numbers, block->n);
    if (s < 0 || interrupted) return s;
    for (size_t i = 0; i < block->n; i++) {
        answers[i] = answer_of(t, &t->trials.items[numbers[i]], &t->cli->error);
        tune_plan_saw(t->plan, &block->at[i], t->trials.items[numbers[i]].member.median_ns);
    }
    s = tune_search_tell(search, block, answers, &t->cli->error);
    if (s == TARE_OK) remember(t, block, answers);
    if (s == TARE_OK) keep_part(t);
    return s;
}

/* ---- the loop ---- */

/* How many measurements the budget has room for, by how long those so far took: a launch, its warm-up and a slice
 * each. */
static size_t most_measurements(const struct tuning *t, uint64_t spent_ns)
{
    double one = (double)LAUNCH_NS + tune_warm_ns((double)t->plan->typical_ns) + (double)t->slice_ns;
    if (t->measurements) one = (double)spent_ns / (double)t->measurements;
    double n = (double)t->plan->args->budget.ns * SEARCH_SHARE / fmax(one, 1);
    if (n < 6) return 6;
    return n < TUNE_MEASURED_MAX ? (size_t)n : TUNE_MEASURED_MAX;
}

/* The cheapest so far; 0: what is used today. */
static size_t leader(const struct tuning *t)
{
    size_t best = 0;
    for (size_t i = 1; i < t->trials.n; i++)
        if (!t->trials.items[i].over && cost_of(t, &t->trials.items[i]) < cost_of(t, &t->trials.items[best]))
            best = i;
    return best;
}

/* The share of the search is spent, or the proof of the best so far would have to begin. */
static bool time_is_over(const struct tuning *t)
{
    double all = (double)t->plan->args->budget.ns, spent = (double)(clock_raw_ns() - t->began_ns);
    return spent > fmin(SEARCH_SHARE * 1.1 * all, all - tune_proof_ns(t, leader(t)));
}

static tare_status ask_and_measure(struct tuning *t, struct tune_search *search)
{
    struct tune_block block;
    tare_status s = tune_search_ask(search, &block, &t->cli->error);
    if (s < 0) return s;
    t->done = block.n == 0;
    return t->done ? TARE_OK : measure_block(t, &block, search);
}

/* A search is planned for a number of measurements: once a block has shown how long they take, it begins anew with
 * that number, and is told the block. */
static tare_status begin(struct tuning *t, const struct run *old, struct tune_search **search)
{
    struct tune_limits limits = {
        .most = most_measurements(t, 0), .equal = EQUAL, .seed = t->plan->args->seed, .near = tune_is_slow(t)};
    size_t told = old ? count_told(old) : 0;
    tare_error *err = &t->cli->error;
    uint64_t start = clock_raw_ns();
    limits.most = limits.most + told < TUNE_MEASURED_MAX ? limits.most + told : TUNE_MEASURED_MAX;
    tare_status s = tune_search_new(search, &t->plan->space, &limits, err);
    if (s == TARE_OK && old) s = recall(t, old, *search);
    if (s < 0 || t->recalled || interrupted) return s;
    s = ask_and_measure(t, *search);
    if (s < 0 || t->done || interrupted || t->blocks.n != 1) return s;
    limits.most = most_measurements(t, clock_raw_ns() - start);
    tune_search_free(*search);
    *search = NULL;
    struct run_map first = t->blocks;
    t->blocks = (struct run_map){0};
    s = tune_search_new(search, &t->plan->space, &limits, err);
    return s == TARE_OK ? recall_block(t, NULL, &first.at[0].value, *search) : s;
}

static tare_status search_on(struct tuning *t, struct tune_search *search)
{
    tare_status s = TARE_OK;
    while (s == TARE_OK && !t->done && !interrupted && (t->measurements == 0 || !time_is_over(t)))
        s = ask_and_measure(t, search);
    t->done = s == TARE_OK && !interrupted; /* with this budget */
    return s;
}

/* Where no setting has a second value there is no search, but limits that what is used today may keep. */
static tare_status measure_today(struct tuning *t)
{
    size_t today[] = {0};
    return t->trials.items[0].member.sampled ? TARE_OK : measure(t, today, 1);
}

/* The best that keeps all limits; none does: the best anyway, for the answer to name it. */
static tare_status choose(struct tuning *t, struct tune_search *search)
{
    struct tune_tried *tried = NULL;
    size_t n = 0, best = 0;
    tare_status s = tune_search_tried(search, &tried, &n, &best, &t->cli->error);
    if (s < 0) return s;
    enum tune_outcome outcome =
        n ? tried[best].outcome : answer_of(t, &t->trials.items[0], &t->cli->error).outcome;
    t->nothing_fits = outcome != TUNE_MEASURED && (n || !interrupted); /* before the first block nothing is known */
    t->best = n ? trial_of(t, &tried[best].at, &t->cli->error) : 0;
    mem_free(tried);
    return t->best == SIZE_MAX ? TARE_NOMEM : TARE_OK;
}

/* Settings that do not help are left as they are today: what is left then is measured in turns with what was found, has
 * to keep the limits and to be about as good; else it stays as it was found. */
static tare_status simplify(struct tuning *t, struct tune_search *search)
{
    struct tune_point at = t->trials.items[t->best].at;
    if (t->best == 0 || t->nothing_fits || interrupted) return TARE_OK;
    tune_search_simplify(search, &at);
    size_t number = trial_of(t, &at, &t->cli->error);
    if (number == SIZE_MAX) return TARE_NOMEM;
    if (number == t->best || number == 0) return TARE_OK; /* to need no change at all is for the proof to say */
    size_t block[] = {number, t->best};
    tare_status s = measure(t, block, 2);
    if (s < 0 || interrupted) return s;
    struct tune_answer plain = answer_of(t, &t->trials.items[number], &t->cli->error);
    struct tune_answer found = answer_of(t, &t->trials.items[t->best], &t->cli->error);
    if (plain.outcome == TUNE_MEASURED && plain.cost <= found.cost * (1 + AS_GOOD)) t->best = number;
    return TARE_OK;
}

tare_status tune_search(struct tuning *t)
{
    struct tune_search *search = NULL;
    tare_error *err = &t->cli->error;
    uint64_t want = SLICE_RUNS * t->plan->typical_ns;
    if (want > SLICE_MOST_NS) want = SLICE_MOST_NS;
    t->slice_ns = want > SLICE_LEAST_NS ? want : SLICE_LEAST_NS;
    t->plan->run_most_ns = fmax(1e9, RUN_SHARE * SEARCH_SHARE * (double)t->plan->args->budget.ns);
    const struct tune_args *a = t->plan->args;
    struct run old = {0};
    t->key = tune_key(t->plan, t->run);
    bool earlier = t->key && !a->no_resume && find_earlier(a->history.output_dir, t->key, &old);
    tare_status s = t->key ? vec_reserve(&t->trials, (size_t)TUNE_MEASURED_MAX + TUNE_BLOCK_MAX, err)
                           : error_nomem(err, "a key");
    if (s == TARE_OK && trial_of(t, &t->plan->space.base, err) == SIZE_MAX) s = TARE_NOMEM;
    if (s == TARE_OK) s = begin(t, earlier ? &old : NULL, &search);
    if (s == TARE_OK) s = search_on(t, search);
    if (s == TARE_OK) s = tune_plan_leave_slow(t->plan, err);
    if (s == TARE_OK && !interrupted) s = measure_today(t);
    if (s == TARE_OK) s = choose(t, search);
    if (s == TARE_OK) s = simplify(t, search);
    tune_search_free(search);
    run_release(&old);
    record_search(t);
    return s;
}

tare_status tune_measure_again(struct tuning *t)
{
    size_t both[] = {0, t->best};
    t->least_runs = LIMIT_RUNS;
    show_progress(t, "limits");
    return measure(t, both, t->best ? 2 : 1);
}

void tuning_release(struct tuning *t)
{
    for (size_t i = 0; i < t->trials.n; i++) ab_member_release(&t->trials.items[i].member);
    vec_release(&t->trials);
}
