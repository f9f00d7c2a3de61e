/* SPDX-License-Identifier: MIT
 * demangle.h - names of functions as people read them, out of what compilers made of them. */
#ifndef SYMBOL_DEMANGLE_H
#define SYMBOL_DEMANGLE_H

#include "core/arena.h"

/* demangle.c: demangled where that can be done here, in bounded time and memory; else the name itself. At the end the
 * child that may have been started for it is ended, and what names it died of is forgotten. */
const char *demangle(struct arena *a, const char *mangled);
void demangle_end(void);

/* short_name.c: of a demangled name what people say: "void std::vector<int>::push_back(int const&)" is
 * "std::vector::push_back". */
const char *demangle_short(struct arena *a, const char *full);

#endif
