/* SPDX-License-Identifier: MIT
 * compare_side.c - the two sides of an interleaved comparison: from the words of the command line to lanes. A model
 * becomes a worker process, a command a subject of this process whose environment can be padded, a service one that is
 * asked from here. */
#include <string.h>
#include <unistd.h>

#include "bench/ab.h"
#include "cli/compare/compare_args.h"
#include "cli/shell_words.h"
#include "core/mem.h"
#include "core/str.h"
#include "load/address.h"

#define PAD_NAME "TARE_AB_PAD="

/* ---- options of one side alone ---- */

static const struct opt_usage side_usage = {.synopsis = "--a '<options>'", .about = ""};

/* The options in quotes of --a or --b, read by the rows that the command itself has for models. */
static int read_own(struct cli *cli, struct compare_sides *out, int which, const char *text)
{
    struct model_args *own = &out->side[which].own;
    const struct opt rows[] = {OPT_SWEEP(own, NULL), OPT_RUNTIME(own, ""), OPT_END};
    struct opt_request request = {.command = "compare", .usage = &side_usage, .rows = rows};
    char **words = NULL, **argv = NULL;
    size_t n = 0;
    bool help = false;
    tare_status s = words_split(&out->arena, text, &words, &n, &cli->error);
    if (s == TARE_OK && !(argv = arena_new(&out->arena, n + 2, sizeof *argv)))
        s = error_set(&cli->error, TARE_NOMEM, "out of memory for options");
    if (s == TARE_OK) {
        int argc = (int)n + 1;
        static char name[] = "compare";
        argv[0] = name;
        memcpy(argv + 1, words, n * sizeof *argv);
        s = opt_read(&request, &argc, &argv, &help, &cli->error);
        if (s == TARE_OK && (argc || help)) s = error_set(&cli->error, TARE_INVALID, "takes options only");
    }
    if (s == TARE_OK) return 0;
    return cli_usage_error(cli, "--%s '%s': %s", which == PAIR_A ? "a" : "b", text, cli->error.text);
}

/* ---- what a side is ---- */

/* What a side that says nothing has: switches cannot be told from "not said". */
static struct model_args own_settings(const struct model_args *common)
{
    return (struct model_args){.optimization = common->optimization,
                               .no_arena = common->no_arena,
                               .no_pattern = common->no_pattern,
                               .parallel = common->parallel};
}

/* "program model.onnx" is a command. */
bool compare_is_model(const char *arg)
{
    if (!str_ends_with(arg, ".onnx") || strlen(arg) == 5) return false;
    return !strpbrk(arg, " \t") || access(arg, F_OK) == 0;
}

static int fill_grid(struct cli *cli, const struct model_args *common, struct compare_side *s)
{
    const struct model_args m = model_args_over(&s->own, common);
    const struct grid_subject one = {0};
    s->grid = (struct grid)GRID_INIT;
    if (model_args_grid(&m, &s->grid, &cli->error) < 0) return cli_usage_error(cli, "%s", cli->error.text);
    return grid_build(&s->grid, &one, 1, &s->cases, &cli->error) == TARE_OK ? 0 : cli_fail(cli);
}

static int check_model(struct cli *cli, const struct compare_side *s)
{
    if (access(s->path, R_OK) == 0) return 0;
    error_errno(&cli->error, "%s", s->path);
    return cli_fail_input(cli);
}

static const char *asked_runtime(const struct compare_args *a, const struct compare_side *s, int which)
{
    const struct opt_list *common = &a->common.runtimes;
    if (s->own.runtimes.n) return s->own.runtimes.items[s->own.runtimes.n - 1];
    if (common->n == 2) return common->items[which];
    return common->n ? common->items[0] : NULL;
}

/* Found once, here: a search in each launch would take longer than the launch. What cannot be found is left to the
 * worker, which can say why. */
static void find_runtime(struct arena *a, struct compare_side *s, const char *asked)
{
    struct ort_candidates found = ORT_CANDIDATES_INIT;
    struct ort_places places = cli_ort_places(asked);
    s->runtime = asked;
    if (ort_find(&found, &places, NULL) == TARE_OK) {
        for (size_t i = 0; i < found.items.n; i++) {
            const struct ort_candidate *c = &found.items.items[i];
            if (c->why_not[0]) continue;
            s->runtime = arena_str(a, c->path);
            s->runtime_version = c->version[0] ? arena_str(a, c->version) : NULL;
            break;
        }
    }
    ort_candidates_release(&found);
}

/* ---- commands ---- */

static tare_status make_env(struct compare_sides *out, struct compare_side *s, tare_error *err)
{
    size_t n = 0;
    while (environ[n]) n++;
    s->env = arena_new(&out->arena, n + 2, sizeof *s->env);
    char *pad = arena_new(&out->arena, sizeof PAD_NAME + AB_ENV_PAD_MAX, 1);
    if (!s->env || !pad) return error_set(err, TARE_NOMEM, "out of memory for an environment");
    memcpy(s->env, environ, n * sizeof *s->env);
    memcpy(pad, PAD_NAME, sizeof PAD_NAME);
    s->env[n] = pad;
    s->pad = pad + sizeof PAD_NAME - 1;
    return TARE_OK;
}

static tare_status open_command(const struct compare_args *a, struct compare_sides *out,
                                struct compare_side *s, tare_error *err)
{
    char *line[] = {NULL, NULL};
    memcpy(&line[0], &s->line, sizeof line[0]);
    tare_status made = make_env(out, s, err);
    if (made < 0) return made;
    struct command_options o = {.argv = a->call.shell && s->line ? line : s->command,
                                .shell = a->call.shell && s->line,
                                .prepare = a->call.prepare,
                                .timeout_ns = (uint64_t)a->call.timeout.ns,
                                .ignore_failure = a->call.ignore_failure,
                                .interrupted = &interrupted,
                                .env = s->env,
                                .dir = s->dir};
    return subject_open_command(&s->subject, &o, err);
}

static int read_command(struct cli *cli, const struct compare_args *a, struct compare_sides *out,
                        struct compare_side *s, const char *text)
{
    size_t n = 0;
    if (strstr(text, "://") && !strpbrk(text, " \t"))
        return cli_usage_error(cli, "%s: only http:// and https:// addresses are known", text);
    s->line = text;
    tare_status made = TARE_OK;
    if (!a->call.shell) made = words_split(&out->arena, text, &s->command, &n, &cli->error);
    if (made == TARE_OK && !a->call.shell && n == 0)
        made = error_set(&cli->error, TARE_INVALID, "'%s': no command to run", text);
    if (made == TARE_OK) made = open_command(a, out, s, &cli->error);
    return made == TARE_OK ? 0 : cli_fail(cli);
}

/* ---- services ---- */

/* Both sides get the same requests, and so does who measures it again: the seed of the coin, which may be a new one
 * each time, is not theirs. */
static int read_service(struct cli *cli, const struct compare_args *a, struct compare_side *s,
                        struct arena *arena)
{
    const char *url = s->name;
    const struct asking_to to = {url, a->common.inputs, 0};
    s->url = url;
    s->name = arena_printf(arena, "%.*s", (int)strcspn(url, "?#"), url); /* a query may hold secrets */
    int rc = asking_read(cli, &a->asking, &to, &s->asking);
    if (rc) return rc;
    if (!s->name) return error_nomem(&cli->error, "a name"), cli_fail(cli);
    struct load_options o = asking_options(&s->asking, &a->asking, url);
    o.timeout_ns = (uint64_t)a->call.timeout.ns;
    return subject_open_http(&s->subject, &o, &cli->error) < 0 ? cli_fail(cli) : 0;
}

/* ---- both ---- */

static int read_one(struct cli *cli, const struct compare_args *a, struct compare_sides *out, int which)
{
    struct compare_side *s = &out->side[which];
    const char *arg = a->args[a->n > 1 ? which : 0];
    s->own = own_settings(&a->common);
    s->name = arg;
    if (load_is_url(arg)) return read_service(cli, a, s, &out->arena);
    if (!compare_is_model(arg)) return read_command(cli, a, out, s, arg);
    s->path = arg;
    int rc = check_model(cli, s);
    if (!rc && a->options[which]) rc = read_own(cli, out, which, a->options[which]);
    if (!rc) rc = fill_grid(cli, &a->common, s);
    if (!rc) find_runtime(&out->arena, s, asked_runtime(a, s, which));
    return rc;
}

static const char *kind_of(const struct compare_side *s)
{
    if (s->url) return "service";
    return s->path ? "model" : "command";
}

static int check_both(struct cli *cli, const struct compare_args *a, const struct compare_sides *out)
{
    const struct compare_side *x = &out->side[PAIR_A], *y = &out->side[PAIR_B];
    if (strcmp(kind_of(x), kind_of(y)) != 0)
        return cli_usage_error(cli, "'%s' is a %s and '%s' a %s: compare two of one kind", x->name,
                               kind_of(x), y->name, kind_of(y));
    if (x->path && x->cases.cases.n != y->cases.cases.n)
        return cli_usage_error(cli, "base has %zu cases and new %zu: they are compared one by one",
                               x->cases.cases.n, y->cases.cases.n);
    if (a->n == 1 && x->path && !a->options[PAIR_A] && !a->options[PAIR_B] && a->common.runtimes.n < 2)
        return cli_usage_error(cli, "%s against itself: name a second model, or --a and --b, or --ort twice",
                               x->name);
    return 0;
}

/* A command after --, of two revisions: the same words in two folders. */
static int read_revisions(struct cli *cli, const struct compare_args *a, struct compare_sides *out)
{
    struct buf line = BUF_INIT;
    for (int i = 0; i < a->n; i++) {
        if (i) buf_add_char(&line, ' ');
        words_quote(&line, a->args[i]);
    }
    const char *words = a->call.shell ? a->args[0] : line.data;
    const char *text = line.failed ? NULL : arena_str(&out->arena, words);
    buf_release(&line);
    tare_status s = text ? TARE_OK : error_set(&cli->error, TARE_NOMEM, "out of memory for a command line");
    for (int i = 0; s == TARE_OK && i < PAIR_SIDES; i++) {
        struct compare_side *side = &out->side[i];
        side->line = text;
        side->command = a->args;
        s = open_command(a, out, side, &cli->error);
    }
    return s == TARE_OK ? 0 : cli_fail(cli);
}

int compare_sides_read(struct cli *cli, const struct compare_args *a, struct compare_sides *out)
{
    out->args = a;
    if (a->revisions) return read_revisions(cli, a, out);
    if (a->n < 1 || a->n > 2)
        return cli_usage_error(
            cli, "%d things named: --ab takes a base and a new one, each as one (quoted) word", a->n);
    if (a->common.runtimes.n > 2) return cli_usage_error(cli, "--ort: at most two, one for each side");
    if (a->n == 1 && !compare_is_model(a->args[0]))
        return cli_usage_error(cli, "'%s': and the other %s?", a->args[0],
                               load_is_url(a->args[0]) ? "service" : "command");
    int rc = 0;
    for (int i = 0; !rc && i < PAIR_SIDES; i++) rc = read_one(cli, a, out, i);
    return rc ? rc : check_both(cli, a, out);
}

static int take_cases(struct cli *cli, struct compare_side *s, const struct grid_cases *cases)
{
    for (size_t i = 0; i < cases->cases.n; i++)
        if (vec_push(&s->cases.cases, cases->cases.items[i], &cli->error) < 0) return cli_fail(cli);
    return 0;
}

int compare_sides_of(struct cli *cli, const struct compare_args *a, const struct grid_cases *cases,
                     struct compare_sides *out)
{
    int rc = 0;
    out->args = a;
    for (int i = 0; !rc && i < PAIR_SIDES; i++) {
        struct compare_side *s = &out->side[i];
        s->own = own_settings(&a->common);
        s->name = s->path = a->args[i];
        rc = check_model(cli, s);
        if (!rc) rc = take_cases(cli, s, cases);
        if (!rc) find_runtime(&out->arena, s, asked_runtime(a, s, i));
    }
    return rc;
}

void compare_sides_release(struct compare_sides *s)
{
    for (int i = 0; i < PAIR_SIDES; i++) {
        model_args_release(&s->side[i].own);
        grid_release(&s->side[i].grid);
        grid_cases_release(&s->side[i].cases);
        subject_close(s->side[i].subject);
        asking_release(&s->side[i].asking);
    }
    arena_release(&s->arena);
}

/* ---- lanes ---- */

/* A model is measured in a process of its own, which gets its specification as text: it is started afresh, often. */
static tare_status model_lane(struct compare_sides *sides, int which, size_t i, struct ab_lane **out,
                              tare_error *err)
{
    const struct compare_args *a = sides->args;
    static char name[] = "tare", verb[] = "__ab-worker";
    static char *argv[] = {name, verb, NULL};
    const struct compare_side *s = &sides->side[which];
    const struct model_args m = model_args_over(&s->own, &a->common);
    struct ab_spec spec = {.model = model_args_onnx(&m, s->path, s->runtime),
                           .params = s->cases.cases.items[i].params};
    struct buf text = BUF_INIT;
    tare_status made = ab_spec_write(&spec, &text, err);
    const char *kept = made == TARE_OK ? arena_str(&sides->arena, text.data) : NULL;
    if (made == TARE_OK && !kept) made = error_set(err, TARE_NOMEM, "out of memory for a specification");
    buf_release(&text);
    if (made < 0) return made;
    struct ab_process_options o = {.name = s->name,
                                   .exe = "/proc/self/exe",
                                   .argv = argv,
                                   .spec = kept,
                                   .timeout_ns = (uint64_t)a->call.timeout.ns,
                                   .interrupted = &interrupted};
    return ab_lane_process(out, &o, err);
}

tare_status compare_side_lane(struct compare_sides *sides, int which, size_t i, struct ab_lane **out,
                              tare_error *err)
{
    const struct compare_args *a = sides->args;
    struct compare_side *s = &sides->side[which];
    if (s->path) return model_lane(sides, which, i, out, err);
    struct ab_subject_options o = {
        .name = s->name,
        .subject = s->subject,
        .params = {.workers = 1, .concurrency = (unsigned)(s->url ? a->concurrency : 0)},
        .pad = s->pad};
    return ab_lane_subject(out, &o, err);
}

void compare_side_describe(const struct compare_side *s, struct comparison *c, struct comparison_side *to)
{
    struct arena *a = &c->arena;
    to->name = arena_str(a, s->name);
    to->type = s->path ? "onnx" : "command";
    if (s->url) to->type = "http";
    to->path = arena_str(a, s->path);
    if (s->path && s->runtime)
        to->runtime = (struct run_runtime){true, "onnxruntime", arena_str(a, s->runtime_version)};
    if (s->path && s->runtime) run_map_text(a, &to->options, "runtime", s->runtime);
    if (s->own.threads) run_map_text(a, &to->options, "threads", s->own.threads);
    if (s->own.batch) run_map_text(a, &to->options, "batch", s->own.batch);
    if (s->own.seq) run_map_text(a, &to->options, "seq", s->own.seq);
    if (s->own.provider) run_map_text(a, &to->options, "provider", s->own.provider);
    if (s->own.io) run_map_text(a, &to->options, "io", s->own.io);
    if (s->dir) run_map_text(a, &to->options, "dir", s->dir);
}
