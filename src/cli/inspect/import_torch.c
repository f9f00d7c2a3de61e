/* SPDX-License-Identifier: MIT
 * import_torch.c - see import_torch.h. The trace is the result; the answer says what is in it and what could not be
 * taken. */
#include "cli/inspect/import_torch.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "core/fmt.h"
#include "core/str.h"
#include "import/kineto.h"
#include "run/run.h"

/* "eager" of "traces/eager.json.gz". */
static const char *subject_of(struct arena *a, const char *path)
{
    static const char *const endings[] = {".gz", ".json", ".pt.trace"};
    const char *name = str_file_name(path);
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t m = strlen(endings[i]);
        if (n > m && memcmp(name + n - m, endings[i], m) == 0) n -= m;
    }
    return arena_str_n(a, name, n);
}

/* A name that nobody else takes meanwhile; the file under it is empty until the trace is whole. */
static tare_status reserve_name(const struct import_torch *a, char *out, size_t size, tare_error *err)
{
    struct run run;
    char stem[4096];
    tare_status s = run_init(&run, "import", err);
    if (s < 0) return s;
    struct run_file f = {a->output_dir, "import", subject_of(&run.arena, a->path), run.created};
    s = run_reserve(&f, ".tare", stem, sizeof stem, err);
    run_release(&run);
    if (s == TARE_OK && (size_t)snprintf(out, size, "%s.tare", stem) >= size)
        s = error_set(err, TARE_INVALID, "%s: too long a name", a->output_dir);
    return s;
}

static void answer_counts(struct answer *a, const struct kineto_counts *c)
{
    const struct {
        const char *key, *one, *many;
        uint64_t n;
    } rows[] = {
        {"kernels", "kernel", "kernels", c->kernels},
        {"copies", "copy", "copies", c->copies},
        {"fills", "fill", "fills", c->fills},
        {"calls", "CUDA call", "CUDA calls", c->calls},
        {"operators", "operator", "operators", c->operators},
        {"annotations", "annotation", "annotations", c->annotations},
        {"frames", "Python frame", "Python frames", c->frames},
        {"memory", "memory event of GPUs", "memory events of GPUs", c->memory},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf b = BUF_INIT;
        fmt_counted(&b, rows[i].n, rows[i].one, rows[i].many);
        answer_uint(a, rows[i].key, rows[i].n, NULL);
        if (rows[i].n) answer_say(a, "  %s\n", b.data);
        buf_release(&b);
    }
}

static int answer(struct cli *cli, const struct import_torch *a, const char *to,
                  const struct kineto_counts *c)
{
    struct answer out;
    cli_answer_begin(cli, &out, a->json);
    answer_str(&out, "file", a->path, "%s\n", a->path);
    answer_uint(&out, "events", c->events, NULL);
    answer_counts(&out, c);
    answer_uint(&out, "kernel_ns", c->kernel_ns, NULL);
    if (c->kernels) answer_say(&out, "  kernels ran for %s\n", show_time((double)c->kernel_ns).s);
    answer_uint(&out, "copy_ns", c->copy_ns, NULL);
    answer_uint(&out, "unknown", c->unknown, NULL);
    answer_uint(&out, "unusable", c->unusable, NULL);
    answer_str(&out, "trace", to, "trace: %s (tare report --gpu, tare report, tare export)\n", to);
    return cli_answer_end(cli, &out);
}

int import_torch(struct cli *cli, const struct import_torch *a)
{
    char made[4096];
    struct kineto_counts c;
    const char *to = a->output;
    bool reserved = false;
    tare_status s = TARE_OK;
    if (access(a->path, R_OK) < 0) s = error_errno(&cli->error, "%s: cannot open it", a->path);
    if (s == TARE_OK && !to) {
        s = reserve_name(a, made, sizeof made, &cli->error);
        reserved = s == TARE_OK;
        to = made;
    } else if (s < 0) {
        return cli_fail_input(cli);
    }
    if (s < 0) return cli_fail(cli);
    s = kineto_import(a->path, to, &c, &cli->error);
    if (s < 0 && reserved) unlink(made);
    if (s < 0) return cli_fail(cli);
    if (c.unusable)
        cli_warn(cli, "%" PRIu64 " of %" PRIu64 " events could not be used; the first: %s", c.unusable,
                 c.events, c.first_bad);
    if (c.too_deep)
        cli_warn(cli, "%s: %" PRIu64 " events lie within too many others and were left out", a->path,
                 c.too_deep);
    return answer(cli, a, to, &c);
}
