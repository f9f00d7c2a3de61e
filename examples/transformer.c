/* SPDX-License-Identifier: MIT
 * transformer.c - the forward pass of a small sentence encoder (the shape of MiniLM-L6 at half its width),
 * with seeded random weights and tare's scopes in it. It shows where to put scopes, and it has something to
 * find: "scores" and "context" do the same number of multiplications. Run it, look at the report, then run it
 * again with --transpose-keys: the checksum stays, the time of "scores" does not.
 *
 *     cc -O2 transformer.c -ltare -pthread -lm -o transformer
 *     TARE_TRACE=transformer.tare ./transformer && tare report transformer.tare */
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tare/tare.h>

enum { LAYERS = 6, HIDDEN = 192, HEADS = 6, HEAD = HIDDEN / HEADS, FF = 4 * HIDDEN, VOCAB = 4096 };
enum { SEQ_MAX = 512, BATCHES_MAX = 100000, THREADS_MAX = 256 };

struct linear { /* y = x w + b; w is [in][out] */
    float *w, *b;
    int in, out;
};
struct norm {
    float *gain, *bias;
};
struct layer {
    struct linear qkv, out, up, down;
    struct norm after_attention, after_mlp;
};
struct model {
    float *words, *places; /* [VOCAB][HIDDEN], [SEQ_MAX][HIDDEN] */
    struct norm embedded;
    struct layer layer[LAYERS];
};
struct config {
    int batches, threads, seq;
    bool transpose_keys;
};
struct work { /* what one forward pass scribbles on; one per thread */
    float *x, *y, *qkv, *mixed, *wide, *scores, *keys;
    int seq;
    bool transpose_keys;
};

static void *get_memory(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (!p) {
        fprintf(stderr, "transformer: out of memory for %zu x %zu bytes\n", n, size);
        exit(1);
    }
    return p;
}

static float *floats(size_t n)
{
    return get_memory(n, sizeof(float));
}

/* ---- weights ---- */

static uint64_t random_next(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* Even in [-scale, scale). */
static float *random_floats(uint64_t *state, size_t n, float scale)
{
    float *v = floats(n);
    for (size_t i = 0; i < n; i++) v[i] = ((float)(random_next(state) >> 40) / 8388608.0f - 1.0f) * scale;
    return v;
}

static struct linear linear_new(uint64_t *state, int in, int out)
{
    struct linear l = {.in = in, .out = out};
    l.w = random_floats(state, (size_t)in * (size_t)out, 1.7f / sqrtf((float)in));
    l.b = random_floats(state, (size_t)out, 0.02f);
    return l;
}

static struct norm norm_new(uint64_t *state)
{
    struct norm n = {random_floats(state, HIDDEN, 0.1f), random_floats(state, HIDDEN, 0.1f)};
    for (int i = 0; i < HIDDEN; i++) n.gain[i] += 1;
    return n;
}

static struct model *model_new(uint64_t seed)
{
    TARE_SCOPE("weights");
    struct model *m = get_memory(1, sizeof *m);
    m->words = random_floats(&seed, (size_t)VOCAB * HIDDEN, 1);
    m->places = random_floats(&seed, (size_t)SEQ_MAX * HIDDEN, 0.5f);
    m->embedded = norm_new(&seed);
    for (int i = 0; i < LAYERS; i++) {
        struct layer *l = &m->layer[i];
        l->qkv = linear_new(&seed, HIDDEN, 3 * HIDDEN);
        l->out = linear_new(&seed, HIDDEN, HIDDEN);
        l->up = linear_new(&seed, HIDDEN, FF);
        l->down = linear_new(&seed, FF, HIDDEN);
        l->after_attention = norm_new(&seed);
        l->after_mlp = norm_new(&seed);
    }
    return m;
}

static void linear_free(struct linear *l)
{
    free(l->w);
    free(l->b);
}

static void norm_free(struct norm *n)
{
    free(n->gain);
    free(n->bias);
}

static void model_free(struct model *m)
{
    for (int i = 0; i < LAYERS; i++) {
        struct layer *l = &m->layer[i];
        linear_free(&l->qkv);
        linear_free(&l->out);
        linear_free(&l->up);
        linear_free(&l->down);
        norm_free(&l->after_attention);
        norm_free(&l->after_mlp);
    }
    norm_free(&m->embedded);
    free(m->words);
    free(m->places);
    free(m);
}

/* ---- the pieces ---- */

enum { COLUMNS = 64, DEPTH = 96 }; /* a tile of weights: 24 KB, fits the first cache */

/* One row of x times a tile of w, added to a row of y. Both sizes are constants: compilers vectorise this. */
static void row_tile(float *restrict y, const float *restrict x, const float *restrict w, int stride)
{
    float sum[COLUMNS];
    memcpy(sum, y, sizeof sum);
    for (int k = 0; k < DEPTH; k++)
        for (int j = 0; j < COLUMNS; j++) sum[j] += x[k] * w[k * stride + j];
    memcpy(y, sum, sizeof sum);
}

/* Every size of this model is a multiple of the tile. */
static void linear_apply(float *y, const struct linear *l, const float *x, int rows)
{
    for (int r = 0; r < rows; r++) memcpy(y + r * l->out, l->b, (size_t)l->out * sizeof *y);
    for (int k = 0; k < l->in; k += DEPTH)
        for (int j = 0; j < l->out; j += COLUMNS)
            for (int r = 0; r < rows; r++)
                row_tile(y + r * l->out + j, x + r * l->in + k, l->w + k * l->out + j, l->out);
}

static void add_and_norm(float *x, const float *add, const struct norm *n, int rows)
{
    TARE_SCOPE("layernorm");
    for (int r = 0; r < rows; r++, x += HIDDEN) {
        float mean = 0, spread = 0;
        for (int i = 0; i < HIDDEN; i++) {
            x[i] += add ? add[r * HIDDEN + i] : 0;
            mean += x[i] / HIDDEN;
        }
        for (int i = 0; i < HIDDEN; i++) spread += (x[i] - mean) * (x[i] - mean) / HIDDEN;
        float scale = 1 / sqrtf(spread + 1e-5f);
        for (int i = 0; i < HIDDEN; i++) x[i] = (x[i] - mean) * scale * n->gain[i] + n->bias[i];
    }
}

static void gelu(float *x, size_t n)
{
    TARE_SCOPE("gelu");
    for (size_t i = 0; i < n; i++) {
        float inner = 0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
        x[i] = 0.5f * x[i] * (1 + tanhf(inner));
    }
}

static void softmax_row(float *row, int n)
{
    TARE_SCOPE("row"); /* short: a scope costs a visible part of it, which the report takes out */
    float most = row[0], sum = 0;
    for (int i = 1; i < n; i++) most = fmaxf(most, row[i]);
    for (int i = 0; i < n; i++) sum += row[i] = expf(row[i] - most);
    for (int i = 0; i < n; i++) row[i] /= sum;
}

/* ---- attention ---- */

/* Dot products, one sum at a time: the additions must happen in this order, so nothing runs side by side. */
static void scores_plain(struct work *w, const float *q, const float *k)
{
    for (int i = 0; i < w->seq; i++)
        for (int j = 0; j < w->seq; j++) {
            float sum = 0;
            for (int d = 0; d < HEAD; d++) sum += q[i * 3 * HIDDEN + d] * k[j * 3 * HIDDEN + d];
            w->scores[i * w->seq + j] = sum / sqrtf(HEAD);
        }
}

enum { LANES = 16 };

/* The same sums in the same order, LANES of them at a time: keys are first laid out with d outermost. */
static void scores_transposed(struct work *w, const float *q, const float *k)
{
    int width = (w->seq + LANES - 1) / LANES * LANES;
    for (int j = 0; j < w->seq; j++)
        for (int d = 0; d < HEAD; d++) w->keys[d * width + j] = k[j * 3 * HIDDEN + d];
    for (int i = 0; i < w->seq; i++)
        for (int j = 0; j < w->seq; j += LANES) {
            float sum[LANES] = {0};
            for (int d = 0; d < HEAD; d++)
                for (int n = 0; n < LANES; n++) sum[n] += q[i * 3 * HIDDEN + d] * w->keys[d * width + j + n];
            int some = w->seq - j < LANES ? w->seq - j : LANES;
            for (int n = 0; n < some; n++) w->scores[i * w->seq + j + n] = sum[n] / sqrtf(HEAD);
        }
}

static void context(const struct work *w, float *out, const float *v)
{
    TARE_SCOPE("context");
    for (int i = 0; i < w->seq; i++) {
        float sum[HEAD] = {0};
        for (int j = 0; j < w->seq; j++)
            for (int d = 0; d < HEAD; d++) sum[d] += w->scores[i * w->seq + j] * v[j * 3 * HIDDEN + d];
        memcpy(out + i * HIDDEN, sum, sizeof sum);
    }
}

static void one_head(struct work *w, int head)
{
    const float *q = w->qkv + head * HEAD, *k = q + HIDDEN, *v = k + HIDDEN;
    {
        TARE_SCOPE("scores");
        (w->transpose_keys ? scores_transposed : scores_plain)(w, q, k);
    }
    {
        TARE_SCOPE("softmax");
        for (int i = 0; i < w->seq; i++) softmax_row(w->scores + i * w->seq, w->seq);
    }
    context(w, w->mixed + head * HEAD, v);
}

static void attention(struct work *w, const struct layer *l)
{
    TARE_SCOPE("attention");
    {
        TARE_SCOPE("qkv");
        linear_apply(w->qkv, &l->qkv, w->x, w->seq);
    }
    for (int head = 0; head < HEADS; head++) one_head(w, head);
    TARE_SCOPE("out");
    linear_apply(w->y, &l->out, w->mixed, w->seq);
}

/* ---- the whole ---- */

static void mlp(struct work *w, const struct layer *l)
{
    TARE_SCOPE("mlp");
    {
        TARE_SCOPE("up");
        linear_apply(w->wide, &l->up, w->x, w->seq);
    }
    gelu(w->wide, (size_t)w->seq * FF);
    TARE_SCOPE("down");
    linear_apply(w->y, &l->down, w->wide, w->seq);
}

static void run_layer(struct work *w, const struct layer *l)
{
    TARE_SCOPE("layer");
    attention(w, l);
    add_and_norm(w->x, w->y, &l->after_attention, w->seq);
    mlp(w, l);
    add_and_norm(w->x, w->y, &l->after_mlp, w->seq);
}

static void embed(const struct model *m, struct work *w, uint64_t seed)
{
    TARE_SCOPE("embedding");
    for (int i = 0; i < w->seq; i++) {
        const float *word = m->words + random_next(&seed) % VOCAB * HIDDEN, *place = m->places + i * HIDDEN;
        for (int d = 0; d < HIDDEN; d++) w->x[i * HIDDEN + d] = word[d] + place[d];
    }
    add_and_norm(w->x, NULL, &m->embedded, w->seq);
}

/* The mean over all tokens, of length one: what a sentence encoder answers. */
static void pool(const struct work *w, float *out)
{
    TARE_SCOPE("pool");
    float length = 0;
    for (int d = 0; d < HIDDEN; d++) {
        out[d] = 0;
        for (int i = 0; i < w->seq; i++) out[d] += w->x[i * HIDDEN + d] / (float)w->seq;
        length += out[d] * out[d];
    }
    for (int d = 0; d < HIDDEN; d++) out[d] /= sqrtf(length);
}

static void run_batch(const struct model *m, struct work *w, int batch, float *out)
{
    TARE_SCOPE("batch");
    tare_mark("batch", "%d", batch);
    embed(m, w, (uint64_t)batch);
    for (int i = 0; i < LAYERS; i++) run_layer(w, &m->layer[i]);
    pool(w, out);
    tare_count("tokens", w->seq);
}

/* ---- threads: each takes the next batch that nobody has ---- */

struct job {
    const struct model *model;
    const struct config *config;
    float *out; /* [batches][HIDDEN]: where a batch lands does not depend on who runs it */
    atomic_int next;
};

static struct work work_new(const struct config *c)
{
    size_t n = (size_t)c->seq;
    return (struct work){.x = floats(n * HIDDEN),
                         .y = floats(n * HIDDEN),
                         .qkv = floats(n * 3 * HIDDEN),
                         .mixed = floats(n * HIDDEN),
                         .wide = floats(n * FF),
                         .scores = floats(n * n),
                         .keys = floats((n + LANES) * HEAD),
                         .seq = c->seq,
                         .transpose_keys = c->transpose_keys};
}

static void work_free(struct work *w)
{
    float *all[] = {w->x, w->y, w->qkv, w->mixed, w->wide, w->scores, w->keys};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

static void *worker(void *arg)
{
    struct job *job = arg;
    struct work w = work_new(job->config);
    for (int i; (i = atomic_fetch_add(&job->next, 1)) < job->config->batches;)
        run_batch(job->model, &w, i, job->out + (size_t)i * HIDDEN);
    work_free(&w);
    return NULL;
}

static void run_job(struct job *job)
{
    pthread_t thread[THREADS_MAX];
    int started = 0;
    while (started < job->config->threads - 1 && pthread_create(&thread[started], NULL, worker, job) == 0)
        started++;
    worker(job); /* this thread is one of them */
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
}

/* FNV-1a over the bits of all answers: one wrong bit anywhere shows. */
static uint64_t checksum(const float *v, size_t n)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        sum = (sum ^ bits) * UINT64_C(0x100000001b3);
    }
    return sum;
}

/* ---- options ---- */

static const char help[] =
    "usage: transformer [options]\n"
    "Forward passes of a small transformer encoder with random weights; prints a checksum of its answers.\n"
    "  --batches N        sequences to run, one after another (48)\n"
    "  --threads N        threads that share them (1)\n"
    "  --seq N            tokens in a sequence (64)\n"
    "  --transpose-keys   lay out keys so that \"scores\" can be vectorised; the same answers, bit for bit\n"
    "  -h, --help         this text\n"
    "Record: TARE_TRACE=transformer.tare transformer    then: tare report transformer.tare\n";

static int number(const char *option, const char *text, int most)
{
    char *end;
    long v = strtol(text, &end, 10);
    if (end != text && !*end && v >= 1 && v <= most) return (int)v;
    fprintf(stderr, "transformer: %s %s: a whole number from 1 to %d is wanted\n", option, text, most);
    exit(2);
}

static struct config options(int argc, char **argv)
{
    static const struct option rows[] = {
        {"batches", required_argument, NULL, 'b'},
        {"threads", required_argument, NULL, 't'},
        {"seq", required_argument, NULL, 's'},
        {"transpose-keys", no_argument, NULL, 'k'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct config c = {.batches = 48, .threads = 1, .seq = 64};
    for (int o; (o = getopt_long(argc, argv, "h", rows, NULL)) != -1;) {
        switch (o) {
        case 'b': c.batches = number("--batches", optarg, BATCHES_MAX); break;
        case 't': c.threads = number("--threads", optarg, THREADS_MAX); break;
        case 's': c.seq = number("--seq", optarg, SEQ_MAX); break;
        case 'k': c.transpose_keys = true; break;
        case 'h': fputs(help, stdout); exit(0);
        default: fputs("transformer: --help lists the options\n", stderr); exit(2);
        }
    }
    if (optind == argc) return c;
    fprintf(stderr, "transformer: %s: takes no such argument; --help lists the options\n", argv[optind]);
    exit(2);
}

int main(int argc, char **argv)
{
    struct config c = options(argc, argv);
    struct model *model = model_new(42);
    size_t answers = (size_t)c.batches * HIDDEN;
    struct job job = {.model = model, .config = &c, .out = floats(answers)};
    run_job(&job);
    printf("%d x %d tokens through %d layers: checksum %016llx\n", c.batches, c.seq, LAYERS,
           (unsigned long long)checksum(job.out, answers));
    free(job.out);
    model_free(model);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
