/* SPDX-License-Identifier: MIT
 * compare_side.c - the two sides of an interleaved comparison: from the words of the command line to lanes. A model
 * becomes a worker process, a command a subject of this process whose environment can be padded. */
#include <string.h>
#include <unistd.h>

#include "bench/ab.h"
#include "cli/compare/compare_args.h"
#include "cli/compare/shell_words.h"
#include "core/mem.h"
#include "core/str.h"

#define PAD_NAME "TARE_AB_PAD="

/* ---- options of one side alone ---- */

static const struct opt_usage side_usage = {.synopsis = "--a '<options>'", .about = ""};

static int read_own(struct cli *cli, struct compare_sides *out, int which, const char *text)
{
    struct compare_texts *t = &out->side[which].texts;
    const struct opt rows[] = {
        OPT_STRING('b', "batch", &t->batch, "<n,..>", ""),
        OPT_STRING('s', "seq", &t->seq, "<n,..>", ""),
        OPT_STRING('t', "threads", &t->threads, "<n,..>", ""),
        OPT_LIST(0, "dim", &t->dims, "<name=n,..>", ""),
        OPT_STRING(0, "provider", &t->provider, "<name>", ""),
        OPT_LIST(0, "ort", &t->runtimes, "<path>", ""),
        OPT_PATH(0, "inputs", &t->inputs, "<path>", ""),
        OPT_INT_IN(0, "optimization", &t->optimization, -1, 99, ""),
        OPT_LIST(0, "session-config", &t->session_config, "<key=value>", ""),
        OPT_FLAG(0, "no-arena", &t->no_arena, ""),
        OPT_END,
    };
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

/* "program model.onnx" is a command. */
bool compare_is_model(const char *arg)
{
    if (!str_ends_with(arg, ".onnx") || strlen(arg) == 5) return false;
    return !strpbrk(arg, " \t") || access(arg, F_OK) == 0;
}

static const char *chosen(const char *own, const char *common)
{
    return own ? own : common;
}

static int read_ints(struct cli *cli, const char *name, struct grid_ints *to, const char *text)
{
    if (!text || grid_parse_ints(to, text, &cli->error) == TARE_OK) return 0;
    return cli_usage_error(cli, "--%s %s: %s", name, text, cli->error.text);
}

/* The side's own lists and numbers; the common ones where it has none. */
static int fill_grid(struct cli *cli, const struct compare_texts *common, struct compare_side *s)
{
    const struct compare_texts *t = &s->texts;
    const struct opt_list *dims = t->dims.n ? &t->dims : &common->dims;
    const char *provider = chosen(t->provider, common->provider);
    s->grid = (struct grid)GRID_INIT;
    int rc = read_ints(cli, "batch", &s->grid.batch, chosen(t->batch, common->batch));
    if (!rc) rc = read_ints(cli, "seq", &s->grid.seq, chosen(t->seq, common->seq));
    if (!rc) rc = read_ints(cli, "threads", &s->grid.threads, chosen(t->threads, common->threads));
    for (size_t i = 0; !rc && i < dims->n; i++)
        if (grid_parse_dim(&s->grid, dims->items[i], &cli->error) != TARE_OK)
            rc = cli_usage_error(cli, "--dim %s: %s", dims->items[i], cli->error.text);
    if (!rc && provider && grid_parse_providers(&s->grid, provider, &cli->error) != TARE_OK)
        rc = cli_usage_error(cli, "--provider %s: %s", provider, cli->error.text);
    if (rc) return rc;
    const struct grid_subject one = {0};
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
    if (s->texts.runtimes.n) return s->texts.runtimes.items[s->texts.runtimes.n - 1];
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
    struct command_options o = {.argv = a->shell && s->line ? line : s->command,
                                .shell = a->shell && s->line,
                                .prepare = a->prepare,
                                .timeout_ns = (uint64_t)a->timeout.ns,
                                .ignore_failure = a->ignore_failure,
                                .interrupted = &interrupted,
                                .env = s->env,
                                .dir = s->dir};
    return subject_open_command(&s->subject, &o, err);
}

static int read_command(struct cli *cli, const struct compare_args *a, struct compare_sides *out,
                        struct compare_side *s, const char *text)
{
    size_t n = 0;
    s->line = text;
    tare_status made = TARE_OK;
    if (!a->shell) made = words_split(&out->arena, text, &s->command, &n, &cli->error);
    if (made == TARE_OK && !a->shell && n == 0)
        made = error_set(&cli->error, TARE_INVALID, "'%s': no command to run", text);
    if (made == TARE_OK) made = open_command(a, out, s, &cli->error);
    return made == TARE_OK ? 0 : cli_fail(cli);
}

static bool any_model_option(const struct compare_args *a)
{
    const struct compare_texts *t = &a->common;
    return t->batch || t->seq || t->threads || t->provider || t->inputs || t->dims.n || t->runtimes.n ||
           t->session_config.n || t->no_arena || a->options[PAIR_A] || a->options[PAIR_B];
}

/* ---- both ---- */

static int read_one(struct cli *cli, const struct compare_args *a, struct compare_sides *out, int which)
{
    struct compare_side *s = &out->side[which];
    const char *arg = a->args[a->n > 1 ? which : 0];
    s->texts = (struct compare_texts){.optimization = a->common.optimization, .no_arena = a->common.no_arena};
    s->name = arg;
    if (!compare_is_model(arg)) return read_command(cli, a, out, s, arg);
    s->path = arg;
    int rc = check_model(cli, s);
    if (!rc && a->options[which]) rc = read_own(cli, out, which, a->options[which]);
    if (!rc) rc = fill_grid(cli, &a->common, s);
    if (!rc) find_runtime(&out->arena, s, asked_runtime(a, s, which));
    return rc;
}

static int check_both(struct cli *cli, const struct compare_args *a, const struct compare_sides *out)
{
    const struct compare_side *x = &out->side[PAIR_A], *y = &out->side[PAIR_B];
    if (!x->path != !y->path)
        return cli_usage_error(cli, "'%s' is a %s and '%s' a %s: compare two of one kind", x->name,
                               x->path ? "model" : "command", y->name, y->path ? "model" : "command");
    if (!x->path && any_model_option(a))
        return cli_usage_error(
            cli, "--a, --b, --batch, --seq, --threads, --dim, --ort and the like are for models");
    if (x->path && (a->shell || a->prepare || a->ignore_failure))
        return cli_usage_error(cli, "--shell, --prepare and --ignore-failure are for commands");
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
    const char *words = a->shell ? a->args[0] : line.data;
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
        return cli_usage_error(cli, "'%s': and the other command?", a->args[0]);
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
        s->texts =
            (struct compare_texts){.optimization = a->common.optimization, .no_arena = a->common.no_arena};
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
        opt_list_release(&s->side[i].texts.dims);
        opt_list_release(&s->side[i].texts.runtimes);
        opt_list_release(&s->side[i].texts.session_config);
        grid_release(&s->side[i].grid);
        grid_cases_release(&s->side[i].cases);
        subject_close(s->side[i].subject);
    }
    arena_release(&s->arena);
}

/* ---- lanes ---- */

static tare_status model_lane(struct compare_sides *sides, int which, size_t i, struct ab_lane **out,
                              tare_error *err)
{
    const struct compare_args *a = sides->args;
    static char name[] = "tare", verb[] = "__ab-worker";
    static char *argv[] = {name, verb, NULL};
    const struct compare_side *s = &sides->side[which];
    const struct opt_list *config =
        s->texts.session_config.n ? &s->texts.session_config : &a->common.session_config;
    struct ab_spec spec = {.model = {.path = s->path,
                                     .runtime = s->runtime,
                                     .inputs = chosen(s->texts.inputs, a->common.inputs),
                                     .session_config = (const char *const *)config->items,
                                     .n_session_config = config->n,
                                     .optimization = (int)s->texts.optimization,
                                     .no_arena = s->texts.no_arena},
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
                                   .timeout_ns = (uint64_t)a->timeout.ns,
                                   .interrupted = &interrupted};
    return ab_lane_process(out, &o, err);
}

tare_status compare_side_lane(struct compare_sides *sides, int which, size_t i, struct ab_lane **out,
                              tare_error *err)
{
    struct compare_side *s = &sides->side[which];
    if (s->path) return model_lane(sides, which, i, out, err);
    struct ab_subject_options o = {
        .name = s->name, .subject = s->subject, .params = {.workers = 1}, .pad = s->pad};
    return ab_lane_subject(out, &o, err);
}

void compare_side_describe(const struct compare_side *s, struct comparison *c, struct comparison_side *to)
{
    struct arena *a = &c->arena;
    to->name = arena_str(a, s->name);
    to->type = s->path ? "onnx" : "command";
    to->path = arena_str(a, s->path);
    if (s->path && s->runtime)
        to->runtime = (struct run_runtime){true, "onnxruntime", arena_str(a, s->runtime_version)};
    if (s->path && s->runtime) run_map_text(a, &to->options, "runtime", s->runtime);
    if (s->texts.threads) run_map_text(a, &to->options, "threads", s->texts.threads);
    if (s->texts.batch) run_map_text(a, &to->options, "batch", s->texts.batch);
    if (s->texts.seq) run_map_text(a, &to->options, "seq", s->texts.seq);
    if (s->texts.provider) run_map_text(a, &to->options, "provider", s->texts.provider);
    if (s->dir) run_map_text(a, &to->options, "dir", s->dir);
}
