/* SPDX-License-Identifier: MIT
 * symbol_read.h - between the child that reads files (symbol_read.c) and the rest: a question is an address, a build id
 * and a path; an answer is frames, or why there are none. */
#ifndef SYMBOL_READ_H
#define SYMBOL_READ_H

#include <stdbool.h>

#include "symbol/helper.h"
#include "symbol/symbol.h"

/* A question: 8 bytes of address, then the build id in hex, a NUL, the path. */
enum { SYMBOL_PATH_MOST = 4096, SYMBOL_ID_MOST = 80, SYMBOL_FRAMES_MOST = 64 };

/* An answer begins with one of these. Then a reason; or for each frame its line in digits, its function as the compiler
 * wrote it, its file, each with a NUL, the latter two empty where unknown. */
#define SYMBOL_WHY 'W'
#define SYMBOL_BARE 'B' /* likewise a reason: the file has no name for it */
#define SYMBOL_FOUND 'F'

/* In the child. ctx: the debug path, NULL: the usual one. */
helper_fn symbol_answer;

/* symbol.c: an answer as frames in the arena; false: it is none. */
bool symbol_unpack(struct arena *a, const char *answer, size_t bytes, struct symbol_place *out);

#endif
