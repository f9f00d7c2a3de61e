/* SPDX-License-Identifier: MIT
 * framing_cases.h - what clients, attackers and other parsers have sent, and what the server must make of it. `wanted`:
 * one word per request, in order: 200 taken, a status: refused with it, and nothing after it is read; wait: it goes on.
 * The bytes are `a`, then `unit` n times, then `b`. */
#ifndef FRAMING_CASES_H
#define FRAMING_CASES_H

#include <stddef.h>

struct framing_case {
    const char *name, *a, *unit;
    size_t n;
    const char *b, *wanted;
    size_t size_a; /* where it holds a NUL; 0: strlen */
};

#define GET "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define ONE(name, bytes, wanted) {name, bytes, "", 0, "", wanted, sizeof(bytes) - 1}

/* clang-format off */
static const struct framing_case framing_cases[] = {
    /* what must work */
    ONE("plain GET", GET "\r\n", "200"),
    ONE("HTTP/1.0 with Host", "GET / HTTP/1.0\r\nHost: a\r\n\r\n", "200"),
    ONE("empty line before", "\r\n" GET "\r\n", "200"),
    ONE("header without value", GET "X:\r\n\r\n", "200"),
    ONE("value with blanks around", GET "X: \t y \t\r\n\r\n", "200"),
    ONE("obs-text in value", GET "X: \xc3\xa4\r\n\r\n", "200"),
    ONE("POST with length", POST "Content-Length: 5\r\n\r\nhello", "200"),
    ONE("POST of nothing", POST "Content-Length: 0\r\n\r\n", "200"),
    ONE("length with zeros before", POST "Content-Length: 005\r\n\r\nhello", "200"),
    ONE("POST without framing", POST "\r\n", "200"),
    ONE("GET with body", GET "Content-Length: 2\r\n\r\nhi", "200"),
    ONE("chunked", CHUNKED "5\r\nhello\r\n0\r\n\r\n", "200"),
    ONE("Chunked in capitals", POST "Transfer-Encoding: CHUNKED\r\n\r\n1\r\nx\r\n0\r\n\r\n", "200"),
    ONE("chunks with extension", CHUNKED "5;a=b\r\nhello\r\n0;c\r\n\r\n", "200"),
    ONE("chunk size in capitals", CHUNKED "A\r\n0123456789\r\n0\r\n\r\n", "200"),
    ONE("harmless trailer", CHUNKED "1\r\nx\r\n0\r\nX-Sum: 1\r\n\r\n", "200"),
    ONE("absolute form", "GET http://b.example:80/x HTTP/1.1\r\nHost: a\r\n\r\n", "200"),
    ONE("absolute form, no path", "GET http://b HTTP/1.1\r\nHost: a\r\n\r\n", "200"),
    ONE("absolute form, query only", "GET http://b?x=1 HTTP/1.1\r\nHost: a\r\n\r\n", "200"),
    ONE("OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "200"),
    ONE("a method of others", "PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n", "200"),
    ONE("Upgrade is not followed", GET "Connection: upgrade\r\nUpgrade: websocket\r\n\r\n" GET "\r\n", "200 200"),
    ONE("Expect: 100-continue", POST "Content-Length: 1\r\nExpect: 100-Continue\r\n\r\nx", "200"),
    {"10 GETs in a row", "", GET "\r\n", 10, "", "200 200 200 200 200 200 200 200 200 200", 0},
    ONE("POST, GET, chunked POST",
        POST "Content-Length: 3\r\n\r\nabc" GET "\r\n" CHUNKED "3\r\nabc\r\n0\r\n\r\n" GET "\r\n",
        "200 200 200 200"),
    ONE("body that looks like a request", POST "Content-Length: 27\r\n\r\n" GET "\r\n", "200"),
    ONE("Host with port", "GET / HTTP/1.1\r\nHost: a.example:8321\r\n\r\n", "200"),
    ONE("Host is IPv6", "GET / HTTP/1.1\r\nHost: [::1]:8321\r\n\r\n", "200"),
    {"head of 16,384 bytes", GET "X: ", "y", 16384 - 25 - 3 - 4, "\r\n\r\n", "200", 0},
    {"URL of 4,096 bytes", "GET /", "u", 4095, " HTTP/1.1\r\nHost: a\r\n\r\n", "200", 0},
    {"100 headers", GET, "X: y\r\n", 99, "\r\n", "200", 0},
    {"1 MB in chunks of 1 KB", CHUNKED, "00000008\r\nabcdefgh\r\n", 1200, "0\r\n\r\n", "200", 0},
    ONE("half a head", "GET / HTTP/1.1\r\nHost: a\r\nX-", "wait"),
    ONE("half a body", POST "Content-Length: 9\r\n\r\nhalf", "wait"),
    ONE("half a chunk", CHUNKED "9\r\nhalf", "wait"),
    /* two lengths: the classic ways to smuggle */
    ONE("Content-Length, then Transfer-Encoding", POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\n\r\n" GET "\r\n", "400"),
    ONE("Transfer-Encoding, then Content-Length", POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"
        "0\r\n\r\n" GET "\r\n", "400"),
    ONE("two different lengths", POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "400"),
    ONE("the same length twice", POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "400"),
    ONE("two lengths in one header", POST "Content-Length: 5, 5\r\n\r\nhello", "400"),
    ONE("length +5", POST "Content-Length: +5\r\n\r\nhello", "400"),
    ONE("length -1", POST "Content-Length: -1\r\n\r\n", "400"),
    ONE("length 0x5", POST "Content-Length: 0x5\r\n\r\nhello", "400"),
    ONE("length 5 5", POST "Content-Length: 5 5\r\n\r\nhello", "400"),
    ONE("length 5.0", POST "Content-Length: 5.0\r\n\r\nhello", "400"),
    ONE("length without digits", POST "Content-Length: \r\n\r\n", "400"),
    ONE("length of 20 digits", POST "Content-Length: 99999999999999999999\r\n\r\n", "400"),
    ONE("length of 2^64", POST "Content-Length: 18446744073709551616\r\n\r\n", "400"),
    ONE("Transfer-Encoding twice",
        POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"),
    ONE("Transfer-Encoding chunked, chunked", POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "501|400"),
    ONE("Transfer-Encoding xchunked", POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "501|400"),
    ONE("Transfer-Encoding gzip, chunked", POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501"),
    ONE("Transfer-Encoding chunked, gzip", POST "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", "501|400"),
    ONE("Transfer-Encoding identity", POST "Transfer-Encoding: identity\r\n\r\n", "501|400"),
    ONE("Transfer-Encoding empty", POST "Transfer-Encoding:\r\n\r\n0\r\n\r\n", "400"),
    ONE("Transfer-Encoding chunked and a tab", POST "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n", "400"),
    ONE("Transfer-Encoding with vertical tab", POST "Transfer-Encoding: \x0b" "chunked\r\n\r\n0\r\n\r\n", "400|501"),
    ONE("Transfer-Encoding in HTTP/1.0",
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"),
    ONE("Transfer-Encoding folded", POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", "400"),
    ONE("space before the colon of the length", POST "Content-Length : 5\r\n\r\nhello", "400"),
    /* lines */
    ONE("space before colon", GET "X : y\r\n\r\n", "400"),
    ONE("header without name", GET ": y\r\n\r\n", "400"),
    ONE("header without colon", GET "X\r\n\r\n", "400"),
    ONE("first header begins with blank", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", "400"),
    ONE("obs-fold", GET "X: y\r\n z\r\n\r\n", "400"),
    ONE("bare LF everywhere", "GET / HTTP/1.1\nHost: a\n\n", "400"),
    ONE("bare LF after a header", GET "X: y\nZ: 1\r\n\r\n", "400"),
    ONE("bare LF at the end of the head", GET "\n", "400"),
    ONE("bare CR as line end", "GET / HTTP/1.1\rHost: a\r\r", "400"),
    ONE("bare CR in value", GET "X: a\rb\r\n\r\n", "400"),
    ONE("NUL in value", GET "X: a\0b\r\n\r\n", "400"),
    ONE("NUL in name", GET "X\0: b\r\n\r\n", "400"),
    ONE("control byte in value", GET "X: a\x01" "b\r\n\r\n", "400"),
    ONE("DEL in value", GET "X: a\x7f" "b\r\n\r\n", "400"),
    ONE("non-ASCII in name", GET "X\xc3\xa4: b\r\n\r\n", "400"),
    ONE("bracket in name", GET "X(: b\r\n\r\n", "400"),
    /* the request line */
    ONE("two spaces before target", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    ONE("two spaces before version", "GET /  HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    ONE("tabs in request line", "GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    ONE("space after version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "400"),
    ONE("space before method", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    ONE("method in small letters", "get / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    ONE("unknown method", "FROB / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    ONE("no target", "GET HTTP/1.1\r\nHost: a\r\n\r\n", "400|505"),
    ONE("target without slash", "GET x HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    ONE("GET *", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    ONE("target with user", "GET http://u@b/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    ONE("target of ftp", "GET ftp://b/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    ONE("fragment in target", "GET /#x HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    ONE("control byte in target", "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    ONE("NUL in target", "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
    ONE("CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", "501"),
    ONE("HTTP/0.9", "GET /\r\n", "505|400"),
    ONE("HTTP/0.9 with headers", "GET /\r\nHost: a\r\n\r\n", "505|400"),
    ONE("HTTP/0.9 with bare LF", "GET /\nHost: a\r\n\r\n", "505|400"),
    ONE("HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505"),
    ONE("HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", "505"),
    ONE("HTTP/11.1", "GET / HTTP/11.1\r\nHost: a\r\n\r\n", "400|505"),
    ONE("HTTP/1.10", "GET / HTTP/1.10\r\nHost: a\r\n\r\n", "400|505"),
    ONE("http/1.1 in small letters", "GET / http/1.1\r\nHost: a\r\n\r\n", "400"),
    ONE("RTSP", "GET / RTSP/1.0\r\nHost: a\r\n\r\n", "400"),
    ONE("preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400|505"),
    ONE("TLS where there is none", "\x16\x03\x01\x02\x00\x01\x00", "400"),
    /* Host */
    ONE("Host is missing", "GET / HTTP/1.1\r\n\r\n", "400"),
    ONE("Host is missing in HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", "400"),
    ONE("Host twice", GET "Host: b\r\n\r\n", "400"),
    ONE("Host twice, the same", GET "host: a\r\n\r\n", "400"),
    ONE("Host is empty", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "400"),
    ONE("Host a b/c", "GET / HTTP/1.1\r\nHost: a b/c\r\n\r\n", "400"),
    ONE("Host with user", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", "400"),
    ONE("two Hosts in one", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "400"),
    ONE("Host with bad port", "GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n", "400"),
    /* chunks */
    ONE("chunk size overflows", CHUNKED "fffffffffffffffff\r\nx\r\n0\r\n\r\n", "400"),
    ONE("chunk size with 0x", CHUNKED "0x1\r\nx\r\n0\r\n\r\n", "400"),
    ONE("negative chunk size", CHUNKED "-1\r\nx\r\n0\r\n\r\n", "400"),
    ONE("empty chunk size", CHUNKED "\r\nx\r\n0\r\n\r\n", "400"),
    ONE("space after chunk size", CHUNKED "1 \r\nx\r\n0\r\n\r\n", "400"),
    ONE("space before chunk size", CHUNKED " 1\r\nx\r\n0\r\n\r\n", "400"),
    ONE("LF after chunk size", CHUNKED "1\nx\r\n0\r\n\r\n", "400"),
    ONE("LF after chunk", CHUNKED "1\r\nx\n0\r\n\r\n", "400"),
    ONE("chunk longer than it says", CHUNKED "1\r\nxy\r\n0\r\n\r\n", "400"),
    ONE("CR in chunk extension", CHUNKED "1;a\rb\r\nx\r\n0\r\n\r\n", "400"),
    ONE("LF in chunk extension", CHUNKED "1;a\nb\r\nx\r\n0\r\n\r\n", "400"),
    ONE("LF in trailer", CHUNKED "1\r\nx\r\n0\r\nX: y\n\r\n", "400"),
    ONE("length in trailer", CHUNKED "1\r\nx\r\n0\r\nContent-Length: 5\r\n\r\n", "400"),
    ONE("coding in trailer", CHUNKED "1\r\nx\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
    ONE("Host in trailer", CHUNKED "1\r\nx\r\n0\r\nHost: b\r\n\r\n", "400"),
    {"chunk extension of 1 MB", CHUNKED "1;", "e", 1 << 20, "\r\nx\r\n0\r\n\r\n", "400", 0},
    {"4,000 chunk extensions of 256 bytes", CHUNKED,
     "1;eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
     "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
     "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
     "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee\r\nx\r\n",
     4000, "0\r\n\r\n", "400", 0},
    {"chunks of one byte", CHUNKED, "1\r\nx\r\n", 4000, "0\r\n\r\n", "400", 0},
    {"trailers without end", CHUNKED "1\r\nx\r\n0\r\n", "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n", 1000, "\r\n", "400", 0},
    /* sizes */
    {"head of 16,385 bytes", GET "X: ", "y", 16385 - 25 - 3 - 4, "\r\n\r\n", "431", 0},
    {"header of 64 KB", GET "X: ", "y", 65536, "\r\n\r\n", "431", 0},
    {"name of 64 KB", GET, "y", 65536, ": x\r\n\r\n", "431", 0},
    {"101 headers", GET, "X: y\r\n", 100, "\r\n", "431", 0},
    {"URL of 4,097 bytes", "GET /", "u", 4096, " HTTP/1.1\r\nHost: a\r\n\r\n", "414", 0},
    {"URL of 64 KB", "GET /", "u", 65536, " HTTP/1.1\r\nHost: a\r\n\r\n", "414", 0},
    {"64 KB of empty lines", "", "\r\n", 32768, GET "\r\n", "431", 0},
    {"method of 64 KB", "", "G", 65536, " / HTTP/1.1\r\n\r\n", "400", 0},
    /* others */
    ONE("Expect: something", POST "Content-Length: 1\r\nExpect: miracle\r\n\r\nx", "417"),
    ONE("two tokens", GET "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", "400"),
    ONE("good, then bad", GET "\r\nGET / HTTP/1.1\r\n\r\n" GET "\r\n", "200 400"),
    ONE("garbage after a body", POST "Content-Length: 1\r\n\r\nx\x01\x02", "200 400"),
};
/* clang-format on */

#undef ONE

#endif
