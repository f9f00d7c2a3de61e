/* SPDX-License-Identifier: MIT
 * test_opt.c - option rows: every spelling, every type, every mistake, layers, help, completion, typos. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/opt.h"
#include "core/mem.h"

static const struct opt_choice formats[] = {
    {"chrome", 7, "for chrome://tracing"}, {"speedscope", 8, NULL}, {"folded", 9, NULL}, {NULL, 0, NULL}};

static struct {
    bool json, quick, self;
    const char *output;
    int format;
    int64_t level;
    uint64_t runs;
    struct duration budget;
    double ratio;
    struct opt_list tags;
    int calls;
    char called_with[64];
} v;

static tare_status on_target(void *ctx, const char *text, tare_error *err)
{
    (*(int *)ctx)++;
    snprintf(v.called_with, sizeof v.called_with, "%s", text);
    return strcmp(text, "bad") == 0 ? error_set(err, TARE_INVALID, "'bad' is no target") : TARE_OK;
}

static bool is_word(const char *text)
{
    return text[0] != '-' && !strchr(text, '.');
}

static const struct opt rows[] = {
    OPT_FLAG('j', "json", &v.json, "as JSON"),
    OPT_FLAG('q', "quick", &v.quick, "be quick"),
    OPT_FLAG(0, "self", &v.self, "show the own weight"),
    OPT_GROUP("more"),
    OPT_PATH('o', "output", &v.output, "<file>", "write here"),
    OPT_ENUM('f', "format", &v.format, formats, "how to write it"),
    OPT_INT_IN('l', "level", &v.level, -5, 5, "a level"),
    OPT_UINT_IN('n', "runs", &v.runs, 1, 1000, "measured runs"),
    OPT_TIME_IN('t', "budget", &v.budget, 1000, INT64_C(3600000000000), "stop after this long"),
    OPT_DOUBLE(0, "ratio", &v.ratio, 0, 1, "a ratio"),
    OPT_LIST(0, "tag", &v.tags, "<word>", "a tag"),
    OPT_CALLBACK(0, "target", on_target, &v.calls, "<target>", "a limit"),
    {OPT_ROW_(CALLBACK, 0, "parts", ctx, &v.calls, "parts, or all"),
     .callback = on_target, .takes = is_word, .flags = OPT_HIDDEN},
    OPT_FLAG(0, "secret", &v.quick, "not for all", .flags = OPT_HIDDEN),
    OPT_FLAG('h', "help", NULL, "help", .flags = OPT_NO_ENV),
    OPT_END,
};

static struct opt_usage usage = {
    .synopsis = "tare try [options] <trace>", .about = "Try it.", .max_args = OPT_ANY};

static const char *layer_option, *layer_text;
static const char *test_layer(const struct opt_request *req, const struct opt *row, char *origin, size_t size)
{
    assert_string_equal(req->command, "try");
    assert_false(row->flags & OPT_NO_ENV);
    snprintf(origin, size, "LAYER_%s", row->name);
    return layer_option && strcmp(row->name, layer_option) == 0 ? layer_text : NULL;
}
static opt_layer_fn *const layers[] = {test_layer, NULL};
static const struct opt_request req = {"try", &usage, rows, layers, NULL, NULL};

static tare_error err;
static char *words[32];
static char **args;
static int n_args;
static bool help;

/* Parse the words of `line`, split at single blanks ("_" stands for an empty word). */
static tare_status parse(const char *line)
{
    static char copy[512], empty[1], name[] = "try";
    snprintf(copy, sizeof copy, "%s", line);
    n_args = 1;
    words[0] = name;
    char *save = NULL;
    for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        words[n_args++] = strcmp(w, "_") ? w : empty;
    args = words;
    err = (tare_error)TARE_ERROR_INIT;
    opt_list_release(&v.tags);
    memset(&v, 0, sizeof v);
    v.self = true;
    v.runs = 10;
    v.format = 7;
    v.budget.ns = 1500000000;
    return opt_read(&req, &n_args, &args, &help, &err);
}

static void good(const char *line)
{
    if (parse(line) != TARE_OK) fail_msg("%s: %s", line, err.text);
}

static void bad(const char *line, const char *text)
{
    assert_int_equal(parse(line), TARE_INVALID);
    assert_string_equal(err.text, text);
}

static void test_spellings(void **state)
{
    (void)state;
    good("--output=a -n5 -l -3 --format folded");
    assert_string_equal(v.output, "a");
    assert_int_equal(v.runs, 5);
    assert_int_equal(v.level, -3);
    assert_int_equal(v.format, 9);
    good("-jq --no-self");
    assert_true(v.json && v.quick && !v.self);
    good("-jqo out x");
    assert_string_equal(v.output, "out");
    assert_int_equal(n_args, 1);
    good("-jqoout");
    assert_string_equal(v.output, "out");
    good("--output= --json --no-json");
    assert_string_equal(v.output, "");
    assert_false(v.json);
    good("--output=a=b --output --json"); /* the value is the next word whatever it is; the last one wins */
    assert_string_equal(v.output, "--json");
    assert_false(v.json);
    good("");
    assert_int_equal(n_args, 0);
    assert_null(args[0]);
}

static void test_arguments(void **state)
{
    (void)state;
    good("a --json b - -n 3 -- --quick -x");
    assert_int_equal(n_args, 5);
    const char *want[] = {"a", "b", "-", "--quick", "-x"};
    for (int i = 0; i < 5; i++) assert_string_equal(args[i], want[i]);
    assert_null(args[5]);
    assert_false(v.quick);
    usage.stop_at_arg = true;
    good("-j program --json -- -x");
    assert_int_equal(n_args, 4);
    assert_string_equal(args[1], "--json");
    assert_string_equal(args[2], "--");
    usage.stop_at_arg = false;
    usage.min_args = 1;
    usage.max_args = 2;
    bad("--json", "missing argument: <trace>");
    bad("a b c", "too many arguments: 3 given, at most 2 taken");
    usage.max_args = usage.min_args = 0;
    bad("a", "takes no arguments");
    usage.max_args = OPT_ANY;
}

/* Such an option looks at the next word before it takes it. */
static void test_optional_value(void **state)
{
    (void)state;
    good("--parts a,b model.onnx");
    assert_string_equal(v.called_with, "a,b");
    assert_int_equal(n_args, 1);
    good("--parts model.onnx");
    assert_int_equal(v.calls, 1);
    assert_string_equal(v.called_with, "");
    assert_string_equal(args[0], "model.onnx");
    good("model.onnx --parts --json");
    assert_true(v.json && v.calls == 1);
    good("--parts");
    assert_int_equal(v.calls, 1);
    good("--parts=x.onnx y");
    assert_string_equal(v.called_with, "x.onnx");
    assert_string_equal(args[0], "y");
}

static void test_mistakes(void **state)
{
    (void)state;
    bad("--fromat=x", "unknown option --fromat; did you mean --format?");
    bad("--form", "unknown option --form; did you mean --format?"); /* a prefix is not accepted */
    bad("--no-jsno", "unknown option --no-jsno; did you mean --no-json?");
    bad("--no-output", "unknown option --no-output");
    bad("--no-help", "unknown option --no-help");
    bad("--xyzzyx", "unknown option --xyzzyx");
    bad("--secre", "unknown option --secre"); /* hidden: not suggested */
    good("--secret");
    bad("-x", "unknown option -x");
    bad("-jx", "unknown option -x in -jx");
    bad("-\x01", "unknown option -?");
    bad("--json=1", "--json takes no value");
    bad("--runs", "--runs needs a value: --runs <n>");
    bad("-jn", "-n needs a value: -n <n>");
    bad("-o", "-o needs a value: -o <file>");
    bad("--=x", "unknown option --");
    bad("--format=chrme", "--format: 'chrme' is not one of chrome, speedscope, folded; did you mean chrome?");
    bad("--format _", "--format: '' is not one of chrome, speedscope, folded");
    bad("--target bad", "--target: 'bad' is no target");
}

static void test_ranges(void **state)
{
    (void)state;
    bad("-n 0", "-n: '0' is out of range 1 to 1000");
    bad("-n 1001", "-n: '1001' is out of range 1 to 1000");
    bad("-n -1", "-n: '-1' is not a whole number of 0 or more");
    bad("-n 99999999999999999999", "-n: '99999999999999999999' is too large");
    bad("-n 5x", "-n: '5x' is not a whole number");
    bad("-n _", "-n: '' is not a whole number");
    bad("-n +5", "-n: '+5' is not a whole number");
    bad("-l 6", "-l: '6' is out of range -5 to 5");
    bad("-l -6", "-l: '-6' is out of range -5 to 5");
    bad("-l -", "-l: '-' is not a whole number");
    bad("-l 99999999999999999999", "-l: '99999999999999999999' is out of range -5 to 5");
    bad("--ratio 1.5", "--ratio: '1.5' is out of range 0 to 1");
    bad("--ratio nan", "--ratio: 'nan' is not a number");
    bad("--ratio 1x", "--ratio: '1x' is not a number");
    good("--ratio 1e-3");
    assert_true(fabs(v.ratio - 1e-3) < 1e-12);
    bad("-t 10ns", "-t: '10ns' is out of range 1e-06s to 3600s");
}

static void test_list(void **state)
{
    (void)state;
    good("--tag a --tag=b,c");
    assert_int_equal(v.tags.n, 2);
    assert_string_equal(v.tags.items[1], "b,c");
    layer_option = "tag";
    layer_text = "x,,y,";
    good("");
    assert_int_equal(v.tags.n, 2);
    assert_string_equal(v.tags.items[0], "x");
    assert_string_equal(v.tags.items[1], "y");
    good("--tag z --tag w"); /* the command line replaces what the layer gave */
    assert_int_equal(v.tags.n, 2);
    assert_string_equal(v.tags.items[0], "z");
    layer_option = NULL;
    good("");
}

static void test_list_memory(void **state)
{
    (void)state;
    good("");
    long before = mem_live_blocks();
    for (long n = 0;; n++) {
        mem_fail_after(n);
        tare_status s = parse("--tag a --tag b --tag c");
        mem_fail_after(-1);
        opt_list_release(&v.tags);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 20);
    }
}

static void test_layers(void **state)
{
    (void)state;
    layer_option = "runs";
    layer_text = "33";
    good("");
    assert_int_equal(v.runs, 33);
    good("-n 44");
    assert_int_equal(v.runs, 44);
    layer_text = "";
    good("");
    assert_int_equal(v.runs, 10);
    layer_text = "many";
    bad("", "LAYER_runs: 'many' is not a whole number");
    bad("-n 5", "LAYER_runs: 'many' is not a whole number");
    layer_option = "json";
    layer_text = "on";
    good("");
    assert_true(v.json);
    good("--no-json");
    assert_false(v.json);
    layer_option = NULL;
}

static void test_help_changes_nothing(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    good("-n 99 --format folded a b -h");
    assert_true(help);
    assert_int_equal(v.runs, 10);
    assert_int_equal(v.format, 7);
    opt_help(&out, &req);
    assert_string_equal(out.data,
                        "usage: tare try [options] <trace>\n\nTry it.\n\noptions:\n"
                        "  -j, --json                as JSON\n"
                        "  -q, --quick               be quick\n"
                        "      --[no-]self           show the own weight (default on)\n"
                        "\nmore:\n"
                        "  -o, --output <file>       write here\n"
                        "  -f, --format <word>       how to write it: chrome, speedscope, folded (default\n"
                        "                            chrome)\n"
                        "  -l, --level <n>           a level (default 0)\n"
                        "  -n, --runs <n>            measured runs (default 10)\n"
                        "  -t, --budget <time>       stop after this long (default 1.5s)\n"
                        "      --ratio <number>      a ratio (default 0)\n"
                        "      --tag <word>          a tag (may be repeated)\n"
                        "      --target <target>     a limit\n"
                        "  -h, --help                help\n");
    for (char *line = out.data; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= OPT_HELP_WIDTH);
    buf_release(&out);
}

static void completes(const char *line, const char *want)
{
    struct buf out = BUF_INIT;
    good("");
    char copy[256], empty[1] = "", *w[16], *save = NULL;
    int n = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        w[n++] = strcmp(word, "_") ? word : empty;
    opt_complete(&out, &req, n, w);
    assert_string_equal(out.data, want);
    buf_release(&out);
}

static void test_completion(void **state)
{
    (void)state;
    usage.args = OPT_ARGS_FILES;
    completes("--j", "--json\tas JSON\n");
    completes("--s", ""); /* on by default: only switching it off makes sense; hidden ones never */
    completes("--no", "--no-self\tshow the own weight\n");
    completes("-f _", "chrome\tfor chrome://tracing\nspeedscope\t\nfolded\t\n");
    completes("--format c", "chrome\tfor chrome://tracing\n");
    completes("--format=f", "folded\t\n");
    completes("-jf c", "chrome\tfor chrome://tracing\n");
    completes("-o _", ":files\n");
    completes("--output=x", ":files\n");
    completes("--runs _", "");
    completes("_", ":files\n");
    completes("--runs 5 _", ":files\n");
    completes("-- --j", ":files\n");
    usage.max_args = 1;
    completes("trace _", "");
    completes("trace --j", "--json\tas JSON\n");
    usage.max_args = OPT_ANY;
}

/* ---- what goes together ---- */

enum { MODELS = 1, COMMANDS = 2, FUNCTIONS = 4 };
static const struct opt_kind kinds[] = {{MODELS, "models", "this is a model"},
                                        {COMMANDS, "commands", "this is a command"},
                                        {FUNCTIONS, "functions", "this is a function"},
                                        {0, NULL, NULL}};
static struct {
    bool shell, strict, a, b;
    const char *batch, *base, *rate;
} w;
static const struct opt rules[] = {
    OPT_STRING(0, "batch", &w.batch, "<n>", "sizes", .only_for = MODELS | FUNCTIONS),
    OPT_FLAG(0, "shell", &w.shell, "a line", .only_for = COMMANDS, .hint = "it goes after --"),
    OPT_STRING(0, "base", &w.base, "<run>", "a run"),
    OPT_FLAG(0, "strict", &w.strict, "be strict", .needs = "base batch"),
    OPT_FLAG(0, "a", &w.a, "this", .not_with = "shell b"),
    OPT_FLAG(0, "b", &w.b, "that"),
    OPT_STRING(0, "rate", &w.rate, "<n>", "how often", .required = "how many?"),
    OPT_END,
};

/* What is said of the words of `line` when they are for `kind`; "" when they fit. */
static const char *said_of(const char *line, unsigned kind)
{
    static const struct opt_usage of_rules = {.synopsis = "tare try", .kinds = kinds};
    struct opt_given given = {0};
    struct opt_request r = {.command = "try", .usage = &of_rules, .rows = rules, .given = &given};
    char copy[200], name[] = "try", *list[16] = {name}, **rest = list, *save = NULL;
    int n = 1;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) list[n++] = word;
    memset(&w, 0, sizeof w);
    err = (tare_error)TARE_ERROR_INIT;
    if (opt_read(&r, &n, &rest, &help, &err) == TARE_OK) opt_check_kind(&r, kind, &err);
    return err.text;
}

static void test_what_goes_together(void **state)
{
    (void)state;
    assert_string_equal(said_of("--rate 1", MODELS), "");
    assert_string_equal(said_of("--a", MODELS), "--rate is missing: how many?");
    assert_string_equal(said_of("--rate 1 --batch 2", FUNCTIONS), "");
    assert_string_equal(said_of("--rate 1 --batch 2", COMMANDS),
                        "--batch is for models and functions; this is a command");
    assert_string_equal(said_of("--rate 1 --shell", MODELS),
                        "--shell is for commands; this is a model (it goes after --)");
    assert_string_equal(said_of("--rate 1 --shell --no-shell", MODELS), "");
    assert_string_equal(said_of("--rate 1 --strict", MODELS), "--strict goes with --base or --batch");
    assert_string_equal(said_of("--rate 1 --strict --batch 1", MODELS), "");
    assert_string_equal(said_of("--rate 1 --a --b", MODELS), "--a does not go with --b");
    assert_string_equal(said_of("--rate 1 --a --b --no-b", MODELS), "");
}

static const char *always_strict(const struct opt_request *of, const struct opt *row, char *origin,
                                 size_t size)
{
    (void)of;
    snprintf(origin, size, "tare.yaml");
    return strcmp(row->name, "strict") == 0 || strcmp(row->name, "rate") == 0 ? "1" : NULL;
}

/* What settings hold for all runs need not go with each of them; what the user writes must, and may lean on them. */
static void test_settings_go_with_anything(void **state)
{
    (void)state;
    static opt_layer_fn *const always[] = {always_strict, NULL};
    const struct {
        const char *word, *said;
    } cases[] = {{"--b", ""}, {"--strict", "--strict goes with --base or --batch"}};
    for (size_t i = 0; i < 2; i++) {
        static const struct opt_usage of_rules = {.synopsis = "tare try", .kinds = kinds};
        struct opt_given given = {0};
        struct opt_request r = {
            .command = "try", .usage = &of_rules, .rows = rules, .given = &given, .layers = always};
        char name[] = "try", word[16], *list[] = {name, word, NULL}, **rest = list;
        int n = 2;
        snprintf(word, sizeof word, "%s", cases[i].word);
        memset(&w, 0, sizeof w);
        err = (tare_error)TARE_ERROR_INIT;
        opt_read(&r, &n, &rest, &help, &err);
        assert_string_equal(err.text, cases[i].said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings),  cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_optional_value),
        cmocka_unit_test(test_mistakes),   cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_list),       cmocka_unit_test(test_list_memory),
        cmocka_unit_test(test_layers),     cmocka_unit_test(test_help_changes_nothing),
        cmocka_unit_test(test_completion),
        cmocka_unit_test(test_what_goes_together),
        cmocka_unit_test(test_settings_go_with_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
