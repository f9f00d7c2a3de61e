/* SPDX-License-Identifier: MIT
 * text.h - what a request says on the wire: its line, headers and body as one text. Private to src/load. */
#ifndef LOAD_TEXT_H
#define LOAD_TEXT_H

#include "load/address.h"
#include "load/source.h"

struct load_wording {
    const struct load_address *to;
    const char *method;  /* NULL: POST where there is a body, else GET */
    const char *headers; /* the user's lines; NULL: none */
    const char *content_type;
    bool closes; /* the connection is for this one alone */
};

void load_write_request(const struct load_wording *w, const struct load_request *r, struct buf *out);
/* A line as the user wrote it, "Name: value" or "Name: env:VARIABLE", checked and added with its \r\n. What the engine
 * says itself (Content-Length, Transfer-Encoding, Connection) is refused. Values are never in the error. */
tare_status load_add_header(struct buf *lines, const char *text, tare_error *err);
void load_request_release(struct load_request *r);
void load_request_clear(struct load_request *r);

#endif
