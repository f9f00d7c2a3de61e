/* SPDX-License-Identifier: MIT
 * markup.h - texts from outside inside Markdown, XML and workflow commands: none can open a tag, a link, a cell or
 * another command. */
#ifndef REPORT_MARKUP_H
#define REPORT_MARKUP_H

#include "core/buf.h"

void markup_md_bytes(struct buf *b, const char *text, size_t n); /* what is clean already */
void markup_md(struct buf *b, const char *text);
void markup_xml(struct buf *b, const char *text); /* attribute or element text */
/* The message of a GitHub workflow command; `property`: of its title and the like. */
void markup_command(struct buf *b, const char *text, int property);

#endif
