/* SPDX-License-Identifier: MIT
 * report_out.c - see report_out.h. */
#include "cli/report_out.h"

#include <string.h>

#include "cli/trace_arg.h"

bool report_out_is_answer(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

struct report_style report_out_style(const struct cli *cli)
{
    const struct term *t = &cli->out_term;
    return (struct report_style){term_style(t, TERM_BOLD), term_style(t, TERM_DIM), term_style(t, TERM_PLAIN),
                                 t->utf8};
}

tare_status report_out_write(struct cli *cli, const char *path, const struct run_report *r,
                             report_out_fn *format)
{
    struct stream s;
    if (report_out_is_answer(path)) {
        stream_init(&s, cli_sink(cli), &cli->error);
        format(&s, r);
        return stream_finish(&s);
    }
    struct sink_file file;
    tare_status status = sink_file_open(&file, path, &cli->error);
    if (status != TARE_OK) return status;
    stream_init(&s, sink_to_file(&file), &cli->error);
    format(&s, r);
    status = stream_finish(&s);
    if (status == TARE_OK) status = sink_file_commit(&file, &cli->error);
    sink_file_close(&file);
    return status;
}
