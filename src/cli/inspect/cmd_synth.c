/* SPDX-License-Identifier: MIT
 * cmd_synth.c - `tare synth`: write a model of a known architecture with seeded weights. A file of that
 * name is replaced, as by a compiler, but only by a whole one: nothing half-written is ever left. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "core/mem.h"
#include "core/fmt.h"
#include "core/str.h"
#include "core/suggest.h"
#include "model/synth/synth.h"
#include "report/sink.h"

#define OPSET_DEFAULT 17

struct synth_args {
    const struct synth_arch *arch;
    const char *output;
    struct synth_config config;
    bool list, json, external;
};

/* ---- the list ---- */

static int print_list(struct cli *cli, bool json)
{
    struct answer out;
    cli_answer_begin(cli, &out, json);
    answer_list(&out, NULL);
    for (const struct synth_arch *a = synth_table; a->name; a++) {
        answer_object_flat(&out, NULL);
        answer_str(&out, "name", a->name, "%-16s ", a->name);
        answer_str(&out, "summary", a->summary, "%s\n", a->summary);
        answer_object_end(&out);
    }
    answer_list_end(&out);
    return cli_answer_end(cli, &out);
}

/* ---- writing ---- */

struct files {
    char *data_path; /* NULL: everything in one file */
    uint64_t file_bytes, data_bytes;
};

/* Whether there is a data file, and what the sizes are. */
static tare_status plan_files(struct cli *cli, struct ow *w, const struct synth_args *a, struct files *f)
{
    struct buf name = BUF_INIT;
    struct stat st;
    bool to_stdout = strcmp(a->output, "-") == 0;
    tare_status s = ow_size(w, NULL, &f->file_bytes, &f->data_bytes);
    if (s < 0 || (f->file_bytes <= OW_FILE_MAX && !a->external)) return s;
    if (to_stdout)
        return error_set(&cli->error, TARE_INVALID,
                         "a model with a data file beside it cannot go to stdout; name a file with -o");
    if (stat(a->output, &st) == 0 && !S_ISREG(st.st_mode))
        return error_set(&cli->error, TARE_INVALID,
                         "%s: not a regular file: there is no place beside it for the weights", a->output);
    buf_printf(&name, "%s.data", a->output);
    f->data_path = buf_take(&name);
    if (!f->data_path) return error_set(&cli->error, TARE_NOMEM, "%s: out of memory", a->output);
    s = ow_size(w, str_file_name(f->data_path), &f->file_bytes, &f->data_bytes);
    if (s == TARE_OK && f->data_bytes == 0) { /* nothing is large enough to go there */
        mem_free(f->data_path);
        f->data_path = NULL;
    }
    return s;
}

static tare_status stream_model(struct cli *cli, struct ow *w, struct sink file, struct sink data,
                                const struct files *f)
{
    struct progress_count count = {PROGRESS_INIT(cli), "writing", 0, f->file_bytes + f->data_bytes};
    struct progress_sink to_file = {file, &count}, to_data = {data, &count};
    struct ow_target to = {.file = {progress_sink_write, &to_file}, .data = {progress_sink_write, &to_data}};
    if (f->data_path) to.location = str_file_name(f->data_path);
    tare_status s = ow_write(w, &to);
    progress_end(&count.bar);
    return s;
}

/* 0, or an exit code. A name that cannot be written is bad input; a write that fails is not. */
static int write_files(struct cli *cli, struct ow *w, const struct synth_args *a, const struct files *f)
{
    struct file_out file = FILE_OUT_INIT, data = FILE_OUT_INIT;
    bool opened = false;
    tare_status s = file_out_open(&file, a->output, FILE_SHARED, &cli->error);
    if (s == TARE_OK && f->data_path) s = file_out_open(&data, f->data_path, FILE_SHARED, &cli->error);
    if (s < 0) goto out;
    opened = true;
    s = stream_model(cli, w, sink_to_file(&file), sink_to_file(&data), f);
    if (s == TARE_OK && f->data_path) s = file_out_commit(&data, &cli->error);
    if (s == TARE_OK) s = file_out_commit(&file, &cli->error);
out:
    file_out_close(&file);
    file_out_close(&data);
    if (s == TARE_OK) return CLI_GOOD;
    return opened ? cli_fail(cli) : cli_fail_input(cli);
}

/* ---- the answer ---- */

static void say_port(struct answer *out, const struct ow *w, const struct ow_port *p)
{
    answer_object_flat(out, NULL);
    answer_str(out, "name", ow_name(w, p->value), "%s ", ow_name(w, p->value));
    answer_str(out, "type", onnx_type_name(p->type), "%s [", onnx_type_name(p->type));
    answer_list(out, "dims");
    for (unsigned i = 0; i < p->rank; i++) {
        const char *comma = i ? ", " : "";
        if (p->dims[i].value >= 0)
            answer_int(out, NULL, p->dims[i].value, "%s%lld", comma, (long long)p->dims[i].value);
        else
            answer_str(out, NULL, p->dims[i].name, "%s%s", comma, p->dims[i].name);
    }
    answer_list_end(out);
    answer_object_end(out);
    answer_say(out, "]\n");
}

/* People see the first few of them. */
static void say_ports(struct answer *out, const struct ow *w, const char *what, const struct ow_port *ports,
                      size_t n)
{
    enum { SHOWN = 5 };
    size_t shown = out->as_json || n < SHOWN ? n : SHOWN;
    answer_list(out, what);
    for (size_t i = 0; i < shown; i++) {
        answer_say(out, "  %-8s ", i ? "" : what);
        say_port(out, w, &ports[i]);
    }
    answer_list_end(out);
    if (n > shown) answer_say(out, "  %-8s and %zu more\n", "", n - shown);
}

static void say_files(struct buf *out, const struct synth_args *a, const struct ow *w, const struct files *f)
{
    term_clean(out, a->output);
    buf_add_str(out, ": ");
    fmt_bytes(out, f->file_bytes);
    buf_printf(out, ", %s %s, opset %lld, ", a->arch->name, synth_dtype_name(a->config.dtype),
               (long long)a->config.opset);
    fmt_count(out, w->parameters);
    buf_add_str(out, " parameters\n");
    if (!f->data_path) return;
    term_clean(out, f->data_path);
    buf_add_str(out, ": ");
    fmt_bytes(out, f->data_bytes);
    buf_add_str(out, " of weights; keep it beside the model\n");
}

static int answer_synth(struct cli *cli, const struct synth_args *a, const struct ow *w,
                        const struct files *f)
{
    struct answer out;
    cli_answer_begin(cli, &out, a->json);
    say_files(answer_text(&out), a, w, f);
    answer_str(&out, "architecture", a->arch->name, NULL);
    answer_str(&out, "file", a->output, NULL);
    answer_uint(&out, "bytes", f->file_bytes, NULL);
    answer_str(&out, "data_file", f->data_path, NULL);
    answer_uint(&out, "data_bytes", f->data_bytes, NULL);
    answer_uint(&out, "parameters", w->parameters, NULL);
    answer_str(&out, "dtype", synth_dtype_name(a->config.dtype), NULL);
    answer_int(&out, "opset", a->config.opset, NULL);
    answer_uint(&out, "seed", a->config.seed, NULL);
    say_ports(&out, w, "inputs", w->inputs.items, w->inputs.n);
    say_ports(&out, w, "outputs", w->outputs.items, w->outputs.n);
    return cli_answer_end(cli, &out);
}

/* With `-o -` the model itself is the answer, without a word about it. `w` is released also after a failure:
 * synth_build() always initialises it. */
static int synthesize(struct cli *cli, const struct synth_args *a)
{
    struct ow w;
    struct files f = {0};
    int rc;
    tare_status s = synth_build(&w, a->arch, &a->config, &cli->error);
    if (s == TARE_OK) s = plan_files(cli, &w, a, &f);
    if (s < 0) {
        rc = cli_fail(cli);
    } else if (strcmp(a->output, "-") == 0) {
        struct sink out = cli_sink_exact(cli);
        rc = cli_stream_result(cli, stream_model(cli, &w, out, out, &f));
    } else {
        rc = write_files(cli, &w, a, &f);
        if (rc == CLI_GOOD) rc = answer_synth(cli, a, &w, &f);
    }
    mem_free(f.data_path);
    ow_release(&w);
    return rc;
}

/* ---- options ---- */

/* At least one number; the last comma must have one behind it. */
static tare_status read_sizes(void *ctx, const char *text, tare_error *err)
{
    struct synth_config *c = ctx;
    c->n_sizes = 0;
    for (const char *at = text; *at || at == text;) {
        char *end = NULL;
        unsigned long long v = *at >= '0' && *at <= '9' ? strtoull(at, &end, 10) : 0;
        if (!end || v < 1 || v > SYNTH_WIDTH_MAX || (*end && *end != ','))
            return error_set(err, TARE_INVALID, "sizes are numbers from 1 to %d with commas: 784,512,10",
                             SYNTH_WIDTH_MAX);
        if (c->n_sizes == SYNTH_SIZES_MAX)
            return error_set(err, TARE_INVALID, "at most %d sizes", SYNTH_SIZES_MAX);
        c->sizes[c->n_sizes++] = v;
        if (*end == ',' && !end[1])
            return error_set(err, TARE_INVALID, "a size is missing after the last comma");
        at = *end ? end + 1 : end;
    }
    return TARE_OK;
}

static const struct opt_choice *arch_words(void)
{
    enum { WORDS_MAX = 32 };
    static struct opt_choice words[WORDS_MAX];
    for (size_t i = 0; synth_table[i].name && i < WORDS_MAX - 1; i++)
        words[i] = (struct opt_choice){synth_table[i].name, (int)i, synth_table[i].summary};
    return words;
}

static int find_arch(struct cli *cli, struct synth_args *a, const char *name)
{
    struct suggest near;
    a->arch = synth_find(name);
    if (a->arch) return CLI_GOOD;
    suggest_init(&near, name, strlen(name));
    for (const struct synth_arch *row = synth_table; row->name; row++) suggest_offer(&near, row->name);
    const char *best = suggest_best(&near);
    if (best) return cli_usage_error(cli, "no architecture '%s'; did you mean '%s'?", name, best);
    return cli_usage_error(cli, "no architecture '%s'; --list names them", name);
}

/* The arguments that are not options. 0, or an exit code. */
static int check_words(struct cli *cli, struct synth_args *a, int argc, char **argv)
{
    if (a->list) return argc ? cli_usage_error(cli, "--list takes no architecture") : CLI_GOOD;
    if (argc == 0) return cli_usage_error(cli, "which architecture? --list names them");
    int rc = find_arch(cli, a, argv[0]);
    if (rc) return rc;
    if (!a->output) return cli_usage_error(cli, "where to? -o <file>");
    if (strcmp(a->output, "-") == 0 && cli->out_term.tty)
        return cli_usage_error(cli, "a model is binary and would garble the terminal; use -o <file>");
    if (strcmp(a->output, "-") == 0 && a->json)
        return cli_usage_error(cli, "--json and the model cannot both go to stdout; use -o <file>");
    return CLI_GOOD;
}

#define NUMBER(name, field, low, high, text) \
    OPT_UINT_IN(0, name, &a.config.field, low, high, text, .flags = OPT_NO_DEFAULT | OPT_NO_ENV)

int cmd_synth(struct cli *cli, int argc, char **argv)
{
    static const struct opt_choice dtypes[] = {{"fp32", SYNTH_FP32, "single precision"},
                                               {"fp16", SYNTH_FP16, "half: weights and arithmetic"},
                                               {"int8", SYNTH_INT8, "dynamically quantised products"},
                                               {NULL, 0, NULL}};
    static const struct opt_choice heads[] = {
        {"none", SYNTH_HEAD_NONE, "hidden states"},
        {"embedding", SYNTH_HEAD_EMBEDDING, "also their mean, length 1"},
        {"classes", SYNTH_HEAD_CLASSES, "logits of --classes"},
        {NULL, 0, NULL}};
    struct synth_args a = {.config = {.opset = OPSET_DEFAULT, .seed = 1}};
    int dtype = SYNTH_FP32, head = SYNTH_HEAD_DEFAULT;
    const struct opt_usage usage = {
        .synopsis = "tare synth [options] <architecture> -o <file>\ntare synth --list",
        .about = "Write an ONNX model of a known architecture with seeded random weights: the graph, the "
                 "parameters and the arithmetic of the original, without a download. The same seed gives the "
                 "same file on every machine.",
        .tail = "tare synth minilm-l6 -o minilm.onnx\n"
                "tare synth minilm-l6 --dtype int8 -o minilm-int8.onnx    the same weights in 8 bits\n"
                "tare synth gpt2-small --kv-cache --layers 2 -o tiny.onnx\n"
                "tare synth mlp --sizes 784,512,10 -o mlp.onnx",
        .min_args = 0,
        .max_args = 1,
        .words = arch_words(),
    };
    const struct opt rows[] = {
        OPT_STRING('o', "output", &a.output, "<file>", "where to; - is stdout",
                 .flags = OPT_FILE | OPT_WRITTEN | OPT_NO_ENV),
        OPT_ENUM('d', "dtype", &dtype, dtypes, "precision of weights and arithmetic"),
        OPT_INT_IN(0, "opset", &a.config.opset, OW_OPSET_MIN, OW_OPSET_MAX, "operator set, 13 to 21"),
        OPT_UINT('s', "seed", &a.config.seed, "which random weights"),
        OPT_FLAG(0, "external-data", &a.external,
                 "weights in a file of their own, <file>.data; always so above 2 GB"),
        OPT_FLAG('l', "list", &a.list, "print the architectures"),
        OPT_JSON(&a.json),
        OPT_GROUP("other than the original"),
        NUMBER("layers", layers, 1, SYNTH_LAYERS_MAX, "transformer layers"),
        NUMBER("hidden", hidden, 1, SYNTH_WIDTH_MAX, "width of the hidden states"),
        NUMBER("heads", heads, 1, SYNTH_WIDTH_MAX, "attention heads"),
        NUMBER("ffn", ffn, 1, SYNTH_WIDTH_MAX, "width of the inner layer"),
        NUMBER("vocab", vocab, 2, SYNTH_VOCAB_MAX, "tokens"),
        NUMBER("positions", positions, 1, SYNTH_VOCAB_MAX, "longest sequence"),
        NUMBER("image", image, 16, 4096, "side of the images, in pixels"),
        NUMBER("classes", classes, 1, SYNTH_WIDTH_MAX, "number of logits"),
        OPT_ENUM(0, "head", &head, heads, "what a text encoder answers", .flags = OPT_NO_DEFAULT | OPT_NO_ENV),
        OPT_FLAG(0, "kv-cache", &a.config.kv_cache, "gpt2-small: keys and values in and out"),
        OPT_CALLBACK(0, "sizes", read_sizes, &a.config, "<n,n,...>", "mlp: inputs, hidden layers, outputs",
                 .flags = OPT_NO_DEFAULT | OPT_NO_ENV),
        OPT_END,
    };
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    a.config.dtype = (enum synth_dtype)dtype;
    a.config.head = (enum synth_head)head;
    rc = check_words(cli, &a, argc, argv);
    if (rc) return rc;
    if (a.list) return print_list(cli, a.json);
    if (synth_resolve(a.arch, &a.config, &cli->error) < 0) return cli_fail(cli);
    return synthesize(cli, &a);
}
