/* SPDX-License-Identifier: MIT
 * import_torch.h - `tare import --torch-profile`: a file of torch.profiler as a trace. */
#ifndef CLI_IMPORT_TORCH_H
#define CLI_IMPORT_TORCH_H

#include "cli/cli.h"

struct import_torch {
    const char *path;
    const char *output; /* NULL: a new name in output_dir */
    const char *output_dir;
    bool json;
};
int import_torch(struct cli *cli, const struct import_torch *a); /* the exit code */

#endif
