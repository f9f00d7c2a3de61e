/* SPDX-License-Identifier: MIT
 * input.c - see input.h. */
#include "cli/input.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/kept.h"
#include "core/mem.h"
#include "core/str.h"

/* ---- what a file that is no trace is ---- */

#define SNIFFED 4096

/* The beginning of a file as a string; 0 bytes when it cannot be read (trace_open will say why). */
static size_t sniff(const char *path, char head[SNIFFED + 1])
{
    size_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (fd >= 0 && n < SNIFFED) {
        ssize_t got = read(fd, head + n, SNIFFED - n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        n += (size_t)got;
    }
    if (fd >= 0) close(fd);
    head[n] = 0;
    return n;
}

/* The value of "key" in the beginning of a JSON text, if it is a plain word there. */
static bool json_word(const char *head, const char *key, char *out, size_t size)
{
    const char *at = strstr(head, key);
    if (!at) return false;
    at += strlen(key);
    at += strspn(at, " \t\r\n:");
    size_t n = *at == '"' ? strcspn(at + 1, "\"\\\n") : 0;
    if (n == 0 || n >= size || at[1 + n] != '"') return false;
    memcpy(out, at + 1, n);
    out[n] = 0;
    return true;
}

static tare_status explain_json(const char *path, const char *head, tare_error *err)
{
    char schema[40] = "", kind[20] = "";
    json_word(head, "\"schema\"", schema, sizeof schema);
    if (strncmp(schema, "tare.run/", 9) == 0) {
        bool known = json_word(head, "\"kind\"", kind, sizeof kind);
        return error_set(err, TARE_INVALID,
                         "%s: is a run document (%s) made by `tare %s`, not a trace; `tare report` shows it",
                         path, schema, known ? kind : "bench");
    }
    if (strncmp(schema, "tare.", 5) == 0)
        return error_set(err, TARE_INVALID, "%s: is JSON that tare itself printed (%s), not a trace", path,
                         schema);
    if (strstr(head, "\"traceEvents\"") || strstr(head, "speedscope"))
        return error_set(err, TARE_INVALID, "%s: is an exported timeline in JSON, not a .tare trace", path);
    struct run none; /* what is no document of ours says so, with the place where it breaks */
    if (run_load(&none, path, err) == TARE_OK) run_release(&none);
    return TARE_INVALID;
}

static bool has_schema(const char *path, const char *stem)
{
    char head[SNIFFED + 1], schema[40] = "";
    sniff(path, head);
    const char *at = head + strspn(head, " \t\r\n");
    return *at == '{' && json_word(at, "\"schema\"", schema, sizeof schema) &&
           strncmp(schema, stem, strlen(stem)) == 0;
}

bool input_is_run(const char *path)
{
    return has_schema(path, "tare.run/");
}

bool input_is_comparison(const char *path)
{
    return has_schema(path, "tare.comparison/");
}

/* The results of the Python profilers for texts name their run document, which lies beside them. */
static bool names_run(const char *path, char *out, size_t size)
{
    char head[SNIFFED + 1], name[256];
    sniff(path, head);
    if (head[strspn(head, " \t\r\n")] != '{' || strstr(head, "\"schema\"") ||
        !json_word(head, "\"run\"", name, sizeof name) || strchr(name, '/') || !str_ends_with(name, ".json"))
        return false;
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash + 1 - path) : 0;
    return snprintf(out, size, "%.*s%s", folder, path, name) < (int)size;
}

bool input_holds_run(const char *path)
{
    char named[4096];
    return input_is_run(path) || names_run(path, named, sizeof named) || kept_is_name(path);
}

tare_status input_run_load(struct run *out, const char *path, tare_error *err)
{
    char named[4096];
    return run_load(out, names_run(path, named, sizeof named) ? named : path, err);
}

int input_trace(struct cli *cli, const char *path, struct trace **out)
{
    char head[SNIFFED + 1];
    size_t blanks = 0, n = sniff(path, head);
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        error_set(&cli->error, TARE_INVALID,
                  "%s: is a folder; name a file in it (%s/*.json: all of its runs)", path, path);
        return cli_fail_input(cli);
    }
    while (blanks < n && isspace((unsigned char)head[blanks])) blanks++;
    tare_status s =
        head[blanks] == '{' ? explain_json(path, head, &cli->error) : trace_open(out, path, &cli->error);
    return s == TARE_OK ? 0 : cli_fail_input(cli);
}

/* ---- run documents ---- */

void input_runs_release(struct input_runs *r)
{
    for (size_t i = 0; i < r->n; i++) run_release(&r->runs[i]);
    mem_free(r->runs);
    mem_free(r->list);
    *r = (struct input_runs){NULL, NULL, 0};
}

/* The history is opened only where a name is in it. */
static tare_status load_all(struct input_runs *out, const struct history_args *history, char **names,
                            size_t n, tare_error *err)
{
    struct kept_runs kept = {NULL, NULL, NULL};
    tare_status s = TARE_OK;
    for (; s == TARE_OK && out->n < n; out->n++) {
        const char *name = names[out->n];
        bool is_kept = kept_is_name(name);
        if (is_kept && !kept.store) s = history_store(history, false, &kept.store, err);
        if (s == TARE_OK)
            s = is_kept ? kept_load(&kept, name, &out->runs[out->n], err)
                        : input_run_load(&out->runs[out->n], name, err);
        if (s < 0) break;
        out->list[out->n] = &out->runs[out->n];
    }
    store_close(kept.store);
    return s;
}

int input_runs_load(struct cli *cli, struct input_runs *out, const struct history_args *history, char **names,
                    size_t n)
{
    tare_status s = TARE_OK;
    *out = (struct input_runs){NULL, NULL, 0};
    out->runs = mem_new(n, sizeof *out->runs);
    out->list = mem_new(n, sizeof *out->list); /* NOLINT(bugprone-sizeof-expression): of pointers */
    if (!out->runs || !out->list)
        s = error_set(&cli->error, TARE_NOMEM, "out of memory for %zu documents", n);
    if (s == TARE_OK) s = load_all(out, history, names, n, &cli->error);
    if (s == TARE_OK) return 0;
    input_runs_release(out);
    return cli_fail_input(cli);
}
