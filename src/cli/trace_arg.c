/* SPDX-License-Identifier: MIT
 * trace_arg.c - see trace_arg.h. */
#include "cli/trace_arg.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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
    return error_set(err, TARE_INVALID, "%s: is JSON, not a trace", path);
}

bool trace_arg_is_run(const char *path)
{
    char head[SNIFFED + 1], schema[40] = "";
    sniff(path, head);
    const char *at = head + strspn(head, " \t\r\n");
    return *at == '{' && json_word(at, "\"schema\"", schema, sizeof schema) &&
           strncmp(schema, "tare.run/", 9) == 0;
}

int trace_arg_open(struct cli *cli, const char *path, struct trace **out)
{
    char head[SNIFFED + 1];
    size_t blanks = 0, n = sniff(path, head);
    while (blanks < n && isspace((unsigned char)head[blanks])) blanks++;
    tare_status s =
        head[blanks] == '{' ? explain_json(path, head, &cli->error) : trace_open(out, path, &cli->error);
    if (s == TARE_OK) return 0;
    int rc = cli_fail(cli);
    return s == TARE_NOMEM ? rc : CLI_USAGE; /* missing, unreadable, no trace: bad input */
}

/* ---- writing ---- */

static tare_status write_out(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    struct cli *cli = ctx;
    char *data = NULL;
    memcpy(&data, &bytes, sizeof data); /* a buf's data is not const, but cli_put only reads it */
    struct buf piece = {.data = data, .len = n, .cap = n};
    cli_put(cli, &piece);
    return ferror(cli->out) ? error_set(err, TARE_IO, "could not write the answer") : TARE_OK;
}

struct sink cli_sink(struct cli *cli)
{
    return (struct sink){write_out, cli};
}

int cli_stream_result(struct cli *cli, tare_status status)
{
    if (status == TARE_OK || ferror(cli->out)) return CLI_GOOD;
    return cli_fail(cli);
}
