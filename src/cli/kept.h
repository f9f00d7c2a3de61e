/* SPDX-License-Identifier: MIT
 * kept.h - runs that a user names by what a history or a server calls them: @main, baseline:main, latest, an id. */
#ifndef CLI_KEPT_H
#define CLI_KEPT_H

#include "store/store.h"

/* Such a name, and no file is called so. */
bool kept_is_name(const char *name);

struct kept_runs {
    struct store *store; /* NULL: there is none */
    const char *subject; /* whose baseline or newest run is meant; NULL: any */
    const char *fresh;   /* id of a run that was just made, which is not the newest; NULL: none */
};
/* TARE_INVALID: there is none of this name, or several. */
tare_status kept_find(const struct kept_runs *k, const char *name, char id[ULID_SIZE], tare_error *err);
tare_status kept_load(const struct kept_runs *k, const char *name, struct run *out, tare_error *err);

#endif
