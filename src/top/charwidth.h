/* SPDX-License-Identifier: MIT
 * charwidth.h - how many columns of a terminal a character takes. Knows nothing of locales, unlike wcwidth(). */
#ifndef TOP_CHARWIDTH_H
#define TOP_CHARWIDTH_H

#include <stdint.h>

/* 0 for what joins the character before it, 2 for wide ones, else 1. Controls are the caller's to keep out. */
unsigned charwidth(uint32_t cp);

#endif
