/* SPDX-License-Identifier: MIT
 * cmd_trace_view.c - `tare __trace-view KIND MOST`: a document of the trace on stdin, for a server that was sent it by
 * somebody. Bounds its own memory and time first. 2: what is wrong is on stdout. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/command.h"
#include "cli/html_out.h"
#include "cli/output.h"
#include "report/export/profile_json.h"
#include "report/page/bars_json.h"
#include "report/trace/report.h"

enum { MEMORY_MIB = 2048, SECONDS = 30 };

static tare_status write_timeline(struct stream *s, const char *path)
{
    struct samples samples = SAMPLES_INIT;
    tare_status status = samples_load(&samples, path, s->err);
    if (status == TARE_OK && !samples.at_ns.n)
        status = error_set(s->err, TARE_INVALID, "the trace holds no samples of probes");
    if (status == TARE_OK) status = timeline_json_write(s, &samples);
    samples_release(&samples);
    return status;
}

static tare_status write_view(struct stream *s, struct trace *t, const char *kind, uint64_t most)
{
    if (strcmp(kind, "profile") == 0 && profile_json_has_scopes(t))
        return profile_json_trace(s, &(struct profile_wish){.of = t, .nodes_max = (uint32_t)most});
    if (strcmp(kind, "profile") == 0) return error_set(s->err, TARE_INVALID, "the trace holds no scopes");
    if (bars_json_has_any(t)) return bars_json_write(s, &t, 1, most);
    return error_set(s->err, TARE_INVALID, "the trace holds no events");
}

static const char path[] = "/proc/self/fd/0";

/* Whoever sent the trace knows another name of it. */
static const char *what_is_wrong(const char *text)
{
    size_t n = strlen(path);
    return strncmp(text, path, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

/* All that the report page has of it. */
static tare_status write_page(struct stream *s)
{
    struct html_out h = HTML_OUT_INIT;
    tare_status status = html_out_trace(&h, path, s->err);
    struct html_page page = {NULL, h.items.items, h.items.n};
    if (status == TARE_OK) status = html_write_data(s, &page);
    html_out_release(&h);
    return status;
}

static tare_status answer(struct buf *out, const char *kind, uint64_t most, tare_error *err)
{
    struct stream s;
    struct trace *t = NULL;
    tare_status status = trace_open(&t, path, err);
    stream_init(&s, sink_to_buf(out), err);
    if (status == TARE_OK && strcmp(kind, "page") == 0)
        status = write_page(&s);
    else if (status == TARE_OK)
        status = strcmp(kind, "timeline") == 0 ? write_timeline(&s, path) : write_view(&s, t, kind, most);
    tare_status ended = stream_finish(&s);
    trace_close(t);
    return status == TARE_OK ? ended : status;
}

int cmd_trace_view(struct cli *cli, int argc, char **argv)
{
    struct rlimit memory = {(rlim_t)MEMORY_MIB << 20, (rlim_t)MEMORY_MIB << 20}, time = {SECONDS, SECONDS};
    struct buf out = BUF_INIT;
    if (argc != 3) return CLI_USAGE;
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CPU, &time);
    tare_status status = answer(&out, argv[1], strtoull(argv[2], NULL, 10), &cli->error);
    if (status != TARE_OK) {
        buf_clear(&out);
        buf_add_str(&out, what_is_wrong(cli->error.text));
    }
    fwrite(out.data, 1, out.len, cli->out);
    buf_release(&out);
    if (status == TARE_NOMEM) return CLI_FAILED;
    return status == TARE_OK ? CLI_GOOD : CLI_USAGE;
}
