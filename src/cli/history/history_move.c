/* SPDX-License-Identifier: MIT
 * history_move.c - `tare history import` and `export`: documents into the history and out again. A file
 * that is bad is named and the rest goes on; nothing is overwritten. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/history/history_question.h"
#include "cli/input.h"
#include "cli/output.h"
#include "core/file.h"
#include "core/str.h"

/* ---- in ---- */

struct import {
    struct cli *cli;
    struct store *store;
    const struct history_question *a;
    uint64_t added, there, bad, other;
    bool broken; /* the history itself failed: no use to go on */
};

static void refuse(struct import *in)
{
    in->bad++;
    cli_warn(in->cli, "left out: %s", in->cli->error.text);
}

static void add_text(struct import *in, const char *name, const char *text, size_t n)
{
    struct run run;
    bool added = false;
    struct store_context c = {.commit = in->a->commit, .branch = in->a->branch, .text = {text, n}};
    if (run_read(&run, name, text, n, &in->cli->error) != TARE_OK) {
        refuse(in);
        return;
    }
    in->broken = store_add_run(in->store, &run, &c, &added, &in->cli->error) != TARE_OK;
    if (!in->broken) (*(added ? &in->added : &in->there))++;
    run_release(&run);
}

/* A document on each line; empty lines are no fault. */
static void add_lines(struct import *in, const char *path, const char *text, size_t n)
{
    char name[4200];
    for (size_t at = 0, line = 1; at < n && !in->broken; line++) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - text) - at : n - at;
        snprintf(name, sizeof name, "%s:%zu", path, line);
        if (len > strspn(text + at, " \t\r")) add_text(in, name, text + at, len);
        at += len + 1;
    }
}

static tare_status read_file(const char *path, struct buf *out, tare_error *err)
{
    bool lines = str_ends_with(path, ".jsonl");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;
    if (fd < 0) return error_errno(err, "%s: cannot open", path);
    while (buf_reserve(out, 1 << 16) == 0 && (n = read(fd, out->data + out->len, 1 << 16)) != 0) {
        if (n < 0 && errno != EINTR) break;
        if (n > 0) out->len += (size_t)n;
        if (!lines && out->len > RUN_BYTES_MAX) break; /* run_read says so */
    }
    tare_status s = n < 0 ? error_errno(err, "%s: cannot read", path) : buf_status(out, err);
    close(fd);
    if (s == TARE_OK) buf_add(out, "", 0); /* its NUL */
    return s;
}

static void add_file(struct import *in, const char *path)
{
    struct buf text = BUF_INIT;
    if (read_file(path, &text, &in->cli->error) != TARE_OK)
        refuse(in);
    else if (str_ends_with(path, ".jsonl"))
        add_lines(in, path, text.data, text.len);
    else
        add_text(in, path, text.data, text.len);
    buf_release(&text);
}

static int is_document(const struct dirent *e)
{
    return str_ends_with(e->d_name, ".json") || str_ends_with(e->d_name, ".jsonl");
}

/* Of a folder only what looks like run documents: other files of tare lie there too. */
static void add_folder(struct import *in, const char *path)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, is_document, alphasort);
    if (n < 0) {
        error_errno(&in->cli->error, "%s: cannot read the folder", path);
        refuse(in);
    }
    for (int i = 0; i < n; i++) {
        struct buf file = BUF_INIT;
        buf_printf(&file, "%s/%s", path, names[i]->d_name);
        if (in->broken || file.failed)
            in->broken = true;
        else if (str_ends_with(file.data, ".jsonl") || input_is_run(file.data))
            add_file(in, file.data);
        else
            in->other++;
        buf_release(&file);
        mem_free_libc(names[i]);
    }
    mem_free_libc(names);
}

static int answer_import(const struct import *in)
{
    struct answer a;
    cli_answer_begin(in->cli, &a, in->a->json);
    answer_uint(&a, "added", in->added, "%" PRIu64 " added, ", in->added);
    answer_uint(&a, "there_already", in->there, "%" PRIu64 " there already, ", in->there);
    answer_uint(&a, "bad", in->bad, "%" PRIu64 " bad", in->bad);
    answer_uint(&a, "other_files", in->other, in->other ? ", %" PRIu64 " other files" : NULL, in->other);
    answer_say(&a, "\n");
    int rc = cli_answer_end(in->cli, &a);
    return rc == CLI_GOOD && in->bad ? CLI_USAGE : rc;
}

int history_import(struct cli *cli, struct store *s, const struct history_question *a)
{
    struct import in = {.cli = cli, .store = s, .a = a};
    struct stat st;
    if (s->ops->begin(s, &cli->error) != TARE_OK) return cli_fail(cli);
    for (int i = 0; i < a->argc && !in.broken; i++) {
        if (stat(a->argv[i], &st) == 0 && S_ISDIR(st.st_mode))
            add_folder(&in, a->argv[i]);
        else
            add_file(&in, a->argv[i]);
    }
    tare_status status = in.broken ? TARE_IO : TARE_OK;
    tare_status end = s->ops->end(s, !in.broken, in.broken ? NULL : &cli->error);
    return status == TARE_OK && end == TARE_OK ? answer_import(&in) : cli_fail(cli);
}

/* ---- out ---- */

struct export
{
    struct cli *cli;
    struct store *store;
    const struct history_question *a;
    struct output out; /* of --jsonl */
    uint64_t written, there;
};

/* JSON on one line: blanks outside strings go. */
static void add_flat(struct buf *out, const struct buf *text)
{
    bool string = false;
    for (size_t i = 0; i < text->len; i++) {
        char c = text->data[i];
        if (string && c == '\\' && i + 1 < text->len)
            buf_add_char(out, text->data[i++]);
        else if (c == '"')
            string = !string;
        else if (!string && strchr(" \t\r\n", c))
            continue;
        buf_add_char(out, text->data[i]);
    }
    buf_add_char(out, '\n');
}

static tare_status write_own_file(struct export *e, const char *id, const struct buf *text, tare_error *err)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/%s.json", e->a->argv[0], id);
    tare_status s = buf_status(&path, err);
    if (s == TARE_OK && access(path.data, F_OK) == 0)
        e->there++;
    else if (s == TARE_OK && (s = file_write_atomic(path.data, text->data, text->len,
                                                    FILE_NO_REPLACE | FILE_SHARED, err)) == TARE_OK)
        e->written++;
    buf_release(&path);
    return s;
}

static tare_status export_one(void *ctx, const struct store_run *run, tare_error *err)
{
    struct export *e = ctx;
    struct buf text = BUF_INIT;
    tare_status s = store_document(e->store, run->id, &text, err);
    if (s == TARE_OK && e->a->jsonl) {
        add_flat(&e->out.stream.out, &text);
        s = stream_poll(&e->out.stream);
        e->written++;
    } else if (s == TARE_OK) {
        s = write_own_file(e, run->id, &text, err);
    }
    buf_release(&text);
    return s;
}

static tare_status export_lines(struct export *e)
{
    tare_status s = output_open(e->cli, &e->out, e->a->jsonl);
    if (s != TARE_OK) return s;
    e->out.exact = true;
    s = e->store->ops->list(e->store, &e->a->filter, export_one, e, &e->cli->error);
    if (s != TARE_OK) e->out.stream.status = s; /* half of it is not written */
    return output_close(e->cli, &e->out);
}

int history_export(struct cli *cli, struct store *s, const struct history_question *a)
{
    struct export e = {.cli = cli, .store = s, .a = a};
    if ((a->argc == 1) == (a->jsonl != NULL))
        return cli_usage_error(cli, "export to a folder or to --jsonl <file>");
    tare_status status = a->jsonl ? TARE_OK : file_make_folders(a->argv[0], &cli->error);
    if (status == TARE_OK)
        status = a->jsonl ? export_lines(&e) : s->ops->list(s, &a->filter, export_one, &e, &cli->error);
    if (status != TARE_OK) return cli_fail(cli);
    cli_note(cli, "%llu written%s%s", (unsigned long long)e.written, a->jsonl ? "" : " to ",
             a->jsonl ? "" : a->argv[0]);
    if (e.there) cli_note(cli, "%llu were there already", (unsigned long long)e.there);
    return CLI_GOOD;
}
