/* SPDX-License-Identifier: MIT
 * runner_tree.h - the folder that a job left behind: its results, and its end. Trusts nothing in it. */
#ifndef SERVER_RUNNER_TREE_H
#define SERVER_RUNNER_TREE_H

#include "core/buf.h"

/* Regular files NAME.json directly in `under`, at most DOCUMENTS_MAX of at most DOCUMENT_MAX. */
void tree_documents(int dir, const char *under,
                    void (*found)(void *ctx, const char *name, const struct buf *text), void *ctx);
/* All of it, however deep and whatever its modes. Closes dir. */
void tree_remove(const char *path, int dir);

#endif
