/* SPDX-License-Identifier: MIT
 * report_comparison.c - a comparison that `tare compare` kept, shown again. */
#include "cli/report/report_comparison.h"

#include "cli/html_out.h"
#include "cli/output.h"
#include "core/file.h"
#include "report/compare/comparison_report.h"

static tare_status show_page(struct cli *cli, const struct comparison *c, const char *html)
{
    struct html_out h = HTML_OUT_INIT;
    tare_status s = html_out_comparison(&h, c, &cli->error);
    if (s == TARE_OK) s = html_out_write(cli, &h, html, c->new_.name);
    html_out_release(&h);
    return s;
}

static tare_status show_text(struct cli *cli, const struct comparison *c, const char *path,
                             const struct comparison_format *format)
{
    struct output o;
    tare_status s = output_open(cli, &o, path);
    if (s < 0) return s;
    format->write(&o.stream, c);
    return output_close(cli, &o);
}

int report_comparison(struct cli *cli, const char *path, const char *html, const char *output,
                      const char *format)
{
    struct file_view file = FILE_VIEW_INIT;
    struct comparison c;
    const struct comparison_format *how = comparison_format_find(format);
    if (!how)
        return cli_usage_error(cli, "a comparison is printed as text, json, md or junit, not as %s", format);
    tare_status s = file_map(path, &file, &cli->error);
    if (s == TARE_OK) s = comparison_read(&c, path, file.data, file.size, &cli->error);
    file_unmap(&file);
    if (s != TARE_OK) return cli_fail_input(cli);
    s = html ? show_page(cli, &c, html) : show_text(cli, &c, output, how);
    comparison_release(&c);
    return s == TARE_OK ? 0 : cli_fail(cli);
}
