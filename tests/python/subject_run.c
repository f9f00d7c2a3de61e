/* SPDX-License-Identifier: MIT
 * subject_run.c - opens an ONNX subject, prepares one case, runs it and prints the run document. Driven by
 * test_onnx_subject.py, so that the subject is tested without the harness. Saves inputs and outputs for others to see.
 * usage: subject_run MODEL [key=value...]   keys: ort inputs batch seq dim (NAME:VALUE) provider threads runs seed
 *        workers save_inputs save_outputs io bind (inputs and outputs stay in this memory) config
 *        optimization fix many venv
 * With model "-" it reads lines of such arguments from stdin and writes one line per model: "ok" or the error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../npz_write.h"
#include "core/mem.h"
#include "subject/onnx_model.h"

struct job {
    struct onnx_options options;
    struct ort_places places;
    struct case_params params;
    struct dim_value dims[8];
    const char *config[8];
    const char *save_inputs, *save_outputs, *bind;
    long runs;
};

static void set_dim(struct job *j, char *text)
{
    char *colon = strrchr(text, ':');
    if (!colon || j->params.n_dims == 8) return;
    *colon = 0;
    j->dims[j->params.n_dims++] = (struct dim_value){text, strtoll(colon + 1, NULL, 10)};
    j->params.dims = j->dims;
}

static bool set_text(struct job *j, const char *key, const char *value)
{
    const struct {
        const char *key;
        const char **to;
    } rows[] = {{"ort", &j->options.runtime},
                {"inputs", &j->options.inputs},
                {"provider", &j->params.provider},
                {"save_inputs", &j->save_inputs},
                {"save_outputs", &j->save_outputs},
                {"venv", &j->places.virtual_env},
                {"io", &j->params.io},
                {"bind", &j->bind}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(key, rows[i].key) == 0) {
            *rows[i].to = value;
            return true;
        }
    }
    return false;
}

static bool set_one(struct job *j, char *word)
{
    char *value = strchr(word, '=');
    if (!value) return false;
    *value++ = 0;
    long long n = strtoll(value, NULL, 10);
    if (set_text(j, word, value)) return true;
    if (strcmp(word, "batch") == 0)
        j->params.batch = n;
    else if (strcmp(word, "seq") == 0)
        j->params.seq = n;
    else if (strcmp(word, "dim") == 0)
        set_dim(j, value);
    else if (strcmp(word, "threads") == 0)
        j->params.threads = n;
    else if (strcmp(word, "workers") == 0)
        j->params.workers = (unsigned)n;
    else if (strcmp(word, "runs") == 0)
        j->runs = (long)n;
    else if (strcmp(word, "seed") == 0)
        j->params.seed = (uint64_t)n;
    else if (strcmp(word, "many") == 0)
        j->params.has_neighbours = n != 0;
    else if (strcmp(word, "fix") == 0)
        j->options.fix_dims = n != 0;
    else if (strcmp(word, "optimization") == 0)
        j->options.optimization = (int)n;
    else if (strcmp(word, "config") == 0 && j->options.n_session_config < 8)
        j->config[j->options.n_session_config++] = value;
    else
        return false;
    return true;
}

/* .npy has no 4- and 8-bit floats nor bfloat16: their values as doubles. */
static tare_status as_doubles(struct tensor_set *set, tare_error *err)
{
    for (size_t i = 0; i < set->items.n; i++) {
        struct tensor *t = &set->items.items[i], wide;
        if (t->type < ONNX_BFLOAT16) continue;
        tare_status s =
            tensor_make(&wide, &(struct tensor_spec){t->name, ONNX_DOUBLE, t->dims, t->rank}, err);
        if (s < 0) return s;
        for (uint64_t k = 0, n = tensor_elements(t); k < n; k++)
            ((double *)wide.data)[k] = tensor_value(t, k);
        tensor_release(t);
        *t = wide;
    }
    return TARE_OK;
}

static tare_status run_and_save(const struct job *j, struct subject *s, struct instance *i, tare_error *err)
{
    struct subject_cost cost;
    struct tensor_set outputs = TENSOR_SET_INIT;
    tare_status st = TARE_OK;
    for (long k = 0; st == TARE_OK && k < j->runs; k++) {
        for (unsigned w = 0; st == TARE_OK && w < (j->params.workers ? j->params.workers : 1); w++)
            st = s->ops->run(i, w, &cost, err);
    }
    if (st == TARE_OK && j->save_inputs)
        st = tensor_save_npz(&((struct onnx_instance *)i)->workers[0].inputs, j->save_inputs, err);
    if (st == TARE_OK && j->save_outputs) {
        st = s->ops->outputs(i, &outputs, err);
        if (st == TARE_OK) st = as_doubles(&outputs, err);
        if (st == TARE_OK) st = tensor_save_npz(&outputs, j->save_outputs, err);
    }
    tensor_set_release(&outputs);
    return st;
}

static tare_status do_job(struct job *j, struct run *run, tare_error *err)
{
    struct subject *s = NULL;
    struct instance *i = NULL;
    struct run_case *c = run_add_case(run, "case");
    j->options.places = &j->places;
    j->options.session_config = j->config;
    tare_status st = c ? subject_open_onnx(&s, &j->options, err) : TARE_NOMEM;
    struct case_record to = {run, c ? &c->params : NULL};
    if (st == TARE_OK) st = s->ops->describe(s, run, err);
    if (st == TARE_OK) st = s->ops->prepare(s, &j->params, &to, &i, err);
    if (st == TARE_OK && j->bind) st = onnx_bind((struct onnx_instance *)i, j->bind, err);
    if (st == TARE_OK) st = run_and_save(j, s, i, err);
    if (st == TARE_OK) st = s->ops->report(i, run, c, err);
    if (st == TARE_OK) c->units_per_run = known_u64((uint64_t)s->ops->units(i));
    if (st == TARE_OK)
        c->self = (struct run_self){.known = true, .ns_per_run = known_u64(s->ops->overhead_ns(i))};
    if (i) s->ops->finish(i);
    subject_close(s);
    return st;
}

/* One line of words: 0, or the exit status. */
static int job_of(char **words, int n, bool quiet)
{
    struct job j = {.options = {.optimization = -1}, .params = {.workers = 1, .seed = 1}, .runs = 2};
    struct run run;
    struct buf text = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    j.options.path = words[0];
    for (int i = 1; i < n; i++) {
        if (set_one(&j, words[i])) continue;
        fprintf(stderr, "subject_run: what is '%s'?\n", words[i]);
        return 2;
    }
    tare_status st = run_init(&run, "bench", &err);
    if (st == TARE_OK) st = do_job(&j, &run, &err);
    if (st == TARE_OK && !quiet) st = run_write(&run, &text, &err);
    if (st < 0) {
        fprintf(quiet ? stdout : stderr, "%d %s\n", st, err.text);
    } else {
        puts(quiet ? "ok" : text.data);
    }
    buf_release(&text);
    run_release(&run);
    long live = mem_live_blocks();
    if (live) fprintf(stderr, "subject_run: %ld blocks were not released\n", live);
    return st < 0 ? 1 : live ? 3 : 0;
}

int main(int argc, char **argv)
{
    char line[8192], *words[32];
    if (argc < 2) return 2;
    if (strcmp(argv[1], "-") != 0) return job_of(argv + 1, argc - 1, false);
    while (fgets(line, sizeof line, stdin)) {
        int n = 0;
        char *save = NULL;
        for (char *w = strtok_r(line, "\t\n", &save); w && n < 32; w = strtok_r(NULL, "\t\n", &save))
            words[n++] = w;
        if (n && job_of(words, n, true) > 1) return 3;
        fflush(stdout);
    }
    return 0;
}
