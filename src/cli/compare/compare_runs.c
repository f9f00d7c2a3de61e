/* SPDX-License-Identifier: MIT
 * compare_runs.c - `tare compare BASE NEW`: saved runs from files, folders and the history, judged without measuring.
 * What the history knows of earlier runs on the same machine is the yardstick for two single runs. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/memory/memory_group.h"
#include "analyze/compare/compare_saved.h"
#include "analyze/judge/launches.h"
#include "cli/compare/compare_args.h"
#include "report/stacks/stacks_export.h"
#include "cli/input.h"
#include "cli/kept.h"
#include "cli/shell_words.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"
#include "history/good.h"
#include "history/past.h"

struct side {
    VEC(struct run) runs;
    VEC(const struct run *) list;
};

struct comparing {
    struct cli *cli;
    const struct compare_args *a;
    struct store *store; /* NULL: there is no history, or it was not asked */
    struct side base, new_;
    const char *subject;
    char host[RUN_FINGERPRINT_SIZE]; /* of the new side; "": not known yet */
    const char *fresh;               /* id of the run that was just made; NULL: none */
};

static void side_release(struct side *s)
{
    for (size_t i = 0; i < s->runs.n; i++) run_release(&s->runs.items[i]);
    vec_release(&s->runs);
    vec_release(&s->list);
}

/* ---- from names to runs ---- */

static bool is_there(const char *name)
{
    struct stat st;
    return stat(name, &st) == 0;
}

static tare_status add_file(struct side *to, const char *path, tare_error *err)
{
    struct run run;
    tare_status s = input_run_load(&run, path, err);
    if (s < 0) return s;
    s = vec_push(&to->runs, run, err);
    if (s < 0) run_release(&run);
    return s;
}

static int wanted_entry(const struct dirent *e)
{
    return strlen(e->d_name) > 5 && str_ends_with(e->d_name, ".json");
}

/* Every run document in it, by name; other documents that tare keeps there are passed over. */
static tare_status add_folder(struct side *to, const char *path, tare_error *err)
{
    struct dirent **entries = NULL;
    size_t before = to->runs.n;
    int n = scandir(path, &entries, wanted_entry, alphasort);
    if (n < 0) return error_errno(err, "%s: cannot read this folder", path);
    tare_status s = TARE_OK;
    for (int i = 0; i < n; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        if (s == TARE_OK && input_is_run(file)) s = add_file(to, file, err);
        mem_free_libc(entries[i]);
    }
    mem_free_libc(entries);
    if (s == TARE_OK && to->runs.n == before)
        s = error_set(err, TARE_INVALID, "%s: no run document in this folder", path);
    return s;
}

/* "@good:main": the last good run of the branch, on the machine of the new side. */
static tare_status find_good(const struct comparing *k, const char **name, char id[ULID_SIZE])
{
    struct good_ask ask = {
        .subject = k->subject, .branch = good_branch(*name), .host = k->host[0] ? k->host : NULL};
    if (!k->store || !k->subject)
        return error_set(&k->cli->error, TARE_INVALID, "%s: %s", *name,
                         k->store ? "of which subject?" : "there is no history to find it in (--history, --server)");
    *name = id;
    return good_run(k->store, &ask, id, &k->cli->error);
}

static tare_status add_kept(struct comparing *k, struct side *to, const char *name)
{
    struct run run;
    char id[ULID_SIZE];
    struct kept_runs kept = {k->store, k->subject, k->fresh};
    tare_status s = good_branch(name) ? find_good(k, &name, id) : TARE_OK;
    if (s == TARE_OK) s = kept_load(&kept, name, &run, &k->cli->error);
    if (s < 0) return s;
    s = vec_push(&to->runs, run, &k->cli->error);
    if (s < 0) run_release(&run);
    return s;
}

static tare_status add_named(struct comparing *k, struct side *to, const char *name)
{
    struct stat st;
    if (kept_is_name(name)) return add_kept(k, to, name);
    if (stat(name, &st) == 0 && S_ISDIR(st.st_mode)) return add_folder(to, name, &k->cli->error);
    return add_file(to, name, &k->cli->error);
}

static void note_host(struct comparing *k, const struct run *run)
{
    struct history_past here = {.store = NULL};
    history_past_of(&here, run);
    memcpy(k->host, here.host, sizeof k->host);
}

/* Files first: they tell the subject whose baseline a name means. */
static tare_status load_side(struct comparing *k, struct side *to, const struct opt_list *names, bool kept)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < names->n; i++)
        if (kept_is_name(names->items[i]) == kept) s = add_named(k, to, names->items[i]);
    if (to == &k->new_ && to->runs.n) note_host(k, &to->runs.items[0]);
    if (!k->subject && to->runs.n) k->subject = to->runs.items[0].subject.name;
    return s;
}

static tare_status list_side(struct side *s, tare_error *err)
{
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i < s->runs.n; i++) st = vec_push(&s->list, &s->runs.items[i], err);
    return st;
}

static bool any_kept(const struct opt_list *names)
{
    for (size_t i = 0; i < names->n; i++)
        if (kept_is_name(names->items[i])) return true;
    return false;
}

/* A history that is not there is none; one that cannot be read is told, and is needed when a name is in it. */
static tare_status open_history(struct comparing *k, bool needed)
{
    tare_error err = TARE_ERROR_INIT;
    struct buf path = BUF_INIT;
    const struct history_args *h = &k->a->history;
    if (h->none && !needed) return TARE_OK;
    tare_status s = history_path(h, &path, &err);
    if (s == TARE_OK && (needed || h->file || is_there(path.data)))
        s = history_store(h, false, &k->store, &err);
    buf_release(&path);
    if (s == TARE_OK) return s;
    if (needed) return error_set(&k->cli->error, err.status, "%s", err.text);
    cli_warn(k->cli, "judged without the history: %s", err.text);
    return TARE_OK;
}

/* ---- judging ---- */

tare_status compare_limits_read(const struct opt_list *texts, const struct measure *among,
                                struct compare_limits *out, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < texts->n; i++) {
        struct compare_limit l;
        s = compare_limit_parse(&l, texts->items[i], among, err);
        if (s == TARE_OK) s = vec_push(out, l, err);
        if (s < 0) return error_wrap(err, "--fail-on");
    }
    return s;
}

static void add_words(struct buf *b, const char *option, const struct opt_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        buf_printf(b, " %s%s", option, *option ? " " : "");
        words_quote(b, list->items[i]);
    }
}

void compare_tell_again(const struct compare_args *a, struct comparison *c)
{
    struct buf b = BUF_INIT;
    bool single = a->base.n == 1 && a->new_.n == 1;
    if (a->new_.n == 0) return; /* of a run that was just made: what made it says how */
    buf_printf(&b, "tare compare%s%s%s", a->gpu ? " --gpu" : "", a->memory ? " --memory" : "",
               a->stacks ? " --stacks" : "");
    if (a->stacks && a->time != STACKS_CPU) buf_printf(&b, " --time %s", stacks_time_words[a->time]);
    if (a->memory && a->by != MEMORY_BY_FUNCTION) buf_printf(&b, " --by %s", memory_by_words[a->by]);
    add_words(&b, single ? "" : "--base", &a->base);
    add_words(&b, single ? "" : "--new", &a->new_);
    add_words(&b, "--fail-on", &a->fail_on);
    if (a->min_effect >= 0) buf_printf(&b, " --min-effect %.6g", a->min_effect);
    buf_printf(&b, "%s%s%s", a->force ? " --force" : "", a->close_runs ? " --close-runs" : "",
               a->history.none ? " --no-history" : "");
    if (a->history.file) {
        buf_add_str(&b, strncmp(a->history.file, "http", 4) == 0 ? " --server " : " --history ");
        words_quote(&b, a->history.file);
    }
    c->reproduce = b.failed ? NULL : arena_str(&c->arena, b.data);
    buf_release(&b);
}

static void name_sides(struct comparing *k, struct comparison *c)
{
    const struct opt_list *names[] = {&k->a->base, &k->a->new_};
    struct comparison_side *sides[] = {&c->base, &c->new_};
    for (int i = 0; i < 2; i++) {
        if (names[i]->n == 0) continue;
        sides[i]->name = arena_str(&c->arena, names[i]->items[0]);
        sides[i]->path = kept_is_name(names[i]->items[0]) ? NULL : sides[i]->name;
        if (names[i]->n > 1)
            sides[i]->name = arena_printf(&c->arena, "%s and %zu more", names[i]->items[0], names[i]->n - 1);
    }
}

/* The subject and the machine of the new side say which part of the history is its own. What is to be found at least
 * grows with what counts as no change: 2.5 times it can just be told apart. */
static tare_status judge(struct comparing *k, struct comparison *c)
{
    struct compare_limits l = VEC_INIT;
    tare_error *err = &k->cli->error;
    struct history_past past = {
        .store = k->store,
        .but = {{k->base.list.items, k->base.list.n}, {k->new_.list.items, k->new_.list.n}}};
    struct compare_saved in = {.base = k->base.list.items,
                               .n_base = k->base.list.n,
                               .new_ = k->new_.list.items,
                               .n_new = k->new_.list.n,
                               .rule = BETWEEN_RULE_INIT,
                               .apart_ms = k->a->close_runs ? 0 : LAUNCHES_APART_MS,
                               .force = k->a->force};
    if (k->new_.list.n) history_past_of(&past, k->new_.list.items[0]);
    k->subject = past.subject;
    if (k->store && !k->a->history.none) in.past = (struct compare_past){history_past_values, &past};
    if (k->a->min_effect >= 0) in.rule.min_effect = k->a->min_effect;
    in.rule.detect = fmax(in.rule.detect, 2.5 * in.rule.min_effect);
    tare_status s = compare_limits_read(&k->a->fail_on, NULL, &l, err);
    in.limits = l.items;
    in.n_limits = l.n;
    name_sides(k, c);
    if (s == TARE_OK) s = compare_saved(c, &in, err);
    if (past.failed.status != TARE_OK) cli_warn(k->cli, "judged without the history: %s", past.failed.text);
    if (s == TARE_OK) compare_tell_again(k->a, c);
    if (s == TARE_OK && in.past.values) history_past_draw(&past, c);
    vec_release(&l);
    return s;
}

static int answer_comparison(struct comparing *k)
{
    struct comparison c;
    if (comparison_init(&c, "saved", &k->cli->error) < 0) return cli_fail(k->cli);
    tare_status s = judge(k, &c);
    struct compare_saved_sides saved = {
        {{k->base.list.items, k->base.list.n}, {k->new_.list.items, k->new_.list.n}}};
    int rc = s == TARE_OK ? compare_answer(k->cli, k->a, &c, &saved) : cli_fail(k->cli);
    comparison_release(&c); /* before the runs it borrows from */
    return rc;
}

/* New runs first: they tell whose baseline a name of the base means. Where neither side is found, the base is told
 * of, as it was named first. */
static tare_status load_sides(struct comparing *k, bool kept)
{
    tare_status s = load_side(k, &k->new_, &k->a->new_, kept);
    if (s == TARE_OK) return load_side(k, &k->base, &k->a->base, kept);
    tare_error of_new = k->cli->error;
    if (load_side(k, &k->base, &k->a->base, kept) == TARE_OK) k->cli->error = of_new;
    return s;
}

/* Files are loaded before names in the history, which belong to the subject that the files tell. */
static int compare_loaded(struct comparing *k, const struct run *run)
{
    tare_status s = open_history(k, any_kept(&k->a->base) || any_kept(&k->a->new_));
    if (run) {
        k->subject = run->subject.name;
        k->fresh = run->id;
        note_host(k, run);
    }
    for (int kept = 0; kept < 2 && s == TARE_OK; kept++) s = load_sides(k, kept);
    if (s == TARE_OK) s = list_side(&k->base, &k->cli->error);
    if (s == TARE_OK)
        s = run ? vec_push(&k->new_.list, run, &k->cli->error) : list_side(&k->new_, &k->cli->error);
    int rc = s == TARE_OK ? answer_comparison(k) : cli_fail_input(k->cli);
    side_release(&k->base);
    side_release(&k->new_);
    store_close(k->store);
    return rc;
}

int compare_runs(struct cli *cli, const struct compare_args *a)
{
    struct comparing k = {.cli = cli, .a = a};
    return compare_loaded(&k, NULL);
}

int compare_with_run(struct cli *cli, const struct compare_args *a, const struct run *run)
{
    struct comparing k = {.cli = cli, .a = a};
    return compare_loaded(&k, run);
}

int compare_runs_check(struct cli *cli, const struct opt_list *names, const struct history_args *history,
                       const char *subject)
{
    struct compare_args a = {.base = *names, .history = *history};
    struct comparing k = {.cli = cli, .a = &a, .subject = subject};
    tare_status s = load_side(&k, &k.base, names, false);
    if (s == TARE_OK && any_kept(names)) s = open_history(&k, true);
    if (s == TARE_OK && subject) s = load_side(&k, &k.base, names, true);
    side_release(&k.base);
    store_close(k.store);
    return s == TARE_OK ? 0 : cli_fail_input(cli);
}

int compare_shown_again(struct cli *cli, const struct compare_args *a)
{
    struct file_view file = FILE_VIEW_INIT;
    struct comparison c;
    struct compare_saved_sides none = {0};
    tare_status s = file_map(a->args[0], &file, &cli->error);
    if (s == TARE_OK) s = comparison_read(&c, a->args[0], file.data, file.size, &cli->error);
    bool run = s < 0 && strstr(cli->error.text, "got \"tare.run/");
    file_unmap(&file);
    if (run)
        return cli_usage_error(cli,
                               "%s is one run: name a second, tare compare %s NEW.json; "
                               "to see this one: tare report %s",
                               a->args[0], a->args[0], a->args[0]);
    if (s < 0) return cli_fail_input(cli);
    int rc = compare_answer(cli, a, &c, &none);
    comparison_release(&c);
    return rc;
}
