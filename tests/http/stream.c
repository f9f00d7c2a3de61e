/* SPDX-License-Identifier: MIT
 * stream.c - the reference server as a language model: tokens at known times, as servers and proxies send them; and as
 * a KServe v2 model that gives back its inputs. In the query, times in ms:
 *   tokens=50 first=100 gap=10   token i (from 0) is there at first + i * gap
 *   vary=0       the number of tokens is even over tokens - vary .. tokens + vary
 *   per_event=1  tokens in one event; per_write=1: events in one write; both wait for their last
 *   split=0      each event in two writes, so far apart
 *   role=T       an event with a role alone at T; comments=1: a comment before each event; headers=T: when they come
 *   reasoning=0  so many events first are reasoning; tool=1: tool calls, no text
 *   usage=1      0: none; 1: an event at the end, if asked for by include_usage; 2: in every event; 3: always
 *   prompt=12 cached=0   input tokens, and of these in the cache
 *   stall_at=K stall=T   the stream stands still for T before event K
 *   error_at=K   an error event in place of event K; cut_at=K: the connection ends there; done=0: no [DONE]
 *   slots=0      so many streams at once; others wait (0: any number)
 *   eol=0        0: \n, 1: \r\n, 2: \r; data=1: data over two lines */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref_server.h"

struct reply {
    const struct request *r;
    struct script *out;
    bool chat;
    uint64_t began;
    unsigned tokens, per_event, per_write, usage, prompt, cached;
    const char *eol;
    char event[1 << 16]; /* events not yet written */
    size_t n;
    unsigned n_content;
};

/* Whether the body has "name": true, spaces aside. */
static bool asked(const struct request *r, const char *name)
{
    const char *at = strstr(r->body, name);
    if (!at) return false;
    at += strlen(name);
    at += strspn(at, "\" \t\r\n:");
    return strncmp(at, "true", 4) == 0;
}

static void usage_text(const struct reply *a, unsigned tokens, char *text, size_t room)
{
    snprintf(text, room,
             "{\"prompt_tokens\":%u,\"completion_tokens\":%u,\"total_tokens\":%u,"
             "\"prompt_tokens_details\":{\"cached_tokens\":%u}}",
             a->prompt, tokens, a->prompt + tokens, a->cached);
}

/* As a chunk of a chunked body. */
static void flush(struct reply *a, uint64_t at)
{
    if (!a->n) return;
    struct step *step = script_printf(a->out, at, "%zx\r\n%.*s\r\n", a->n, (int)a->n, a->event);
    step->events = a->n_content;
    a->n = 0;
    a->n_content = 0;
}

static void put(struct reply *a, const char *data)
{
    const char *lines = number_of(a->r, "data", 0) > 0 && data[0] == '{' ? "{" : "";
    size_t room = sizeof a->event - a->n;
    char *at = a->event + a->n;
    int n = number_of(a->r, "comments", 0) > 0 ? snprintf(at, room, ": still here%s", a->eol) : 0;
    if (*lines) {
        n += snprintf(at + n, room - (size_t)n, "data: {%sdata: %s%s%s", a->eol, data + 1, a->eol, a->eol);
    } else {
        n += snprintf(at + n, room - (size_t)n, "data: %s%s%s", data, a->eol, a->eol);
    }
    a->n += (size_t)n < room ? (size_t)n : room - 1;
}

static void put_event(struct reply *a, const char *delta, const char *finish, unsigned tokens)
{
    char usage[200] = "", data[1200];
    if (a->usage == 2) {
        memcpy(usage, ",\"usage\":", 10);
        usage_text(a, tokens, usage + 9, sizeof usage - 9);
    }
    snprintf(
        data, sizeof data,
        "{\"id\":\"r-%llu\",\"object\":\"%s\",\"created\":1,\"model\":\"ref\",\"choices\":[{\"index\":0,%s,"
        "\"finish_reason\":%s}]%s}",
        (unsigned long long)a->r->number, a->chat ? "chat.completion.chunk" : "text_completion", delta,
        finish, usage);
    put(a, data);
}

/* One content event, of `tokens` tokens. */
static void put_content(struct reply *a, unsigned event, unsigned tokens, unsigned so_far)
{
    char text[600] = "", delta[700];
    size_t n = 0;
    for (unsigned i = 0; i < tokens && n < sizeof text - 16; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " \\u00e4w%u", so_far - tokens + i);
    if (!a->chat) {
        snprintf(delta, sizeof delta, "\"text\":\"%s\"", text);
    } else if (number_of(a->r, "tool", 0) > 0) {
        snprintf(delta, sizeof delta,
                 "\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"%s\"}}]}", text);
    } else if (event < (unsigned)number_of(a->r, "reasoning", 0)) {
        snprintf(delta, sizeof delta, "\"delta\":{\"content\":null,\"reasoning_content\":\"%s\"}", text);
    } else {
        snprintf(delta, sizeof delta, "\"delta\":{\"content\":\"%s\"}", text);
    }
    put_event(a, delta, "null", so_far);
    a->n_content++;
}

/* The first part at its time, the rest `split` later: the event is there with the rest. */
static void flush_split(struct reply *a, uint64_t at, uint64_t split)
{
    size_t first = a->n / 2;
    script_printf(a->out, at, "%zx\r\n%.*s\r\n", first, (int)first, a->event);
    memmove(a->event, a->event + first, a->n - first);
    a->n -= first;
    flush(a, at + split);
}

/* True: it ended here. */
static bool broke(struct reply *a, unsigned event, uint64_t at)
{
    if (event == (unsigned)number_of(a->r, "error_at", -1)) {
        flush(a, at);
        put(a, "{\"error\":{\"message\":\"out of blocks\",\"type\":\"server_error\",\"code\":500}}");
        flush(a, at);
        script_printf(a->out, at, "0\r\n\r\n");
        return true;
    }
    if (event != (unsigned)number_of(a->r, "cut_at", -1)) return false;
    flush(a, at);
    script_act(a->out, at, ACT_CLOSE);
    return true;
}

static uint64_t put_tokens(struct reply *a)
{
    uint64_t first = ms_of(a->r, "first", 100), gap = ms_of(a->r, "gap", 10), split = ms_of(a->r, "split", 0);
    unsigned stall_at = (unsigned)number_of(a->r, "stall_at", -1), events = 0;
    uint64_t at = a->began + first, late = 0;
    for (unsigned done = 0; done < a->tokens; events++) {
        unsigned n = a->per_event < a->tokens - done ? a->per_event : a->tokens - done;
        if (events == stall_at) late = ms_of(a->r, "stall", 500);
        done += n;
        at = a->began + first + (done - n) * gap + late;
        if (broke(a, events, at)) return 0;
        put_content(a, events, n, done);
        if ((events + 1) % a->per_write && done < a->tokens) continue;
        if (split) {
            flush_split(a, at, split);
        } else {
            flush(a, at);
        }
    }
    return at + split;
}

static void whole_reply(struct reply *a)
{
    char usage[200], body[600];
    uint64_t at = a->began + ms_of(a->r, "first", 100) + (a->tokens - 1) * ms_of(a->r, "gap", 10);
    usage_text(a, a->tokens, usage, sizeof usage);
    snprintf(body, sizeof body,
             "{\"id\":\"r-%llu\",\"object\":\"%s\",\"choices\":[{\"index\":0,%s,\"finish_reason\":\"stop\"}],"
             "\"usage\":%s}",
             (unsigned long long)a->r->number, a->chat ? "chat.completion" : "text_completion",
             a->chat ? "\"message\":{\"role\":\"assistant\",\"content\":\"all of it\"}"
                     : "\"text\":\"all of it\"",
             usage);
    script_reply(a->out, at, 200, body);
}

static void finish(struct reply *a, uint64_t end)
{
    char usage[200], data[600];
    put_event(a, a->chat ? "\"delta\":{}" : "\"text\":\"\"", "\"stop\"", a->tokens);
    if (a->usage == 3 || (a->usage == 1 && asked(a->r, "include_usage"))) {
        usage_text(a, a->tokens, usage, sizeof usage);
        snprintf(data, sizeof data,
                 "{\"id\":\"r\",\"object\":\"chat.completion.chunk\",\"choices\":[],\"usage\":%s}", usage);
        put(a, data);
    }
    if (number_of(a->r, "done", 1) > 0) put(a, "[DONE]");
    flush(a, end);
    script_printf(a->out, end, "0\r\n\r\n");
}

static unsigned at_least_one(double n)
{
    return n >= 1 ? (unsigned)n : 1;
}

void stream(struct server_state *shared, const struct request *r, struct script *out)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    double vary = number_of(r, "vary", 0), slots = number_of(r, "slots", 0), u = unit_of(shared, r, 6);
    struct reply a = {.r = r,
                      .out = out,
                      .chat = strstr(r->path, "chat") != NULL,
                      .began = r->received,
                      .tokens = at_least_one(number_of(r, "tokens", 50) + (2 * u - 1) * vary),
                      .per_event = at_least_one(number_of(r, "per_event", 1)),
                      .per_write = at_least_one(number_of(r, "per_write", 1)),
                      .usage = (unsigned)number_of(r, "usage", 1),
                      .prompt = (unsigned)number_of(r, "prompt", 12),
                      .cached = (unsigned)number_of(r, "cached", 0),
                      .eol = ends[(unsigned)number_of(r, "eol", 0) % 3]};
    if (slots >= 1) {
        uint64_t service = ms_of(r, "first", 100) + a.tokens * ms_of(r, "gap", 10);
        a.began = queue_end(shared, r, (unsigned)slots, service) - service;
    }
    out->tokens = a.tokens;
    if (!asked(r, "\"stream\"")) {
        whole_reply(&a);
        return;
    }
    script_printf(out, r->received + ms_of(r, "headers", 0),
                  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    if (number_of(r, "role", -1) >= 0) {
        put_event(&a, "\"delta\":{\"role\":\"assistant\",\"content\":\"\"}", "null", 0);
        flush(&a, a.began + ms_of(r, "role", 0));
    }
    uint64_t end = put_tokens(&a);
    if (end) finish(&a, end);
}

/* ---- KServe v2 ---- */

/* The length of the JSON part, where the body has tensors in binary. */
static size_t json_part(const struct request *r)
{
    const char *at = strcasestr(r->head, "\nInference-Header-Content-Length:");
    return at ? (size_t)strtoul(strchr(at, ':') + 1, NULL, 10) : r->n_body;
}

/* Gives back the inputs as outputs: the list is sent as it came, and so are the bytes behind it. */
void infer(const struct request *r, struct script *out)
{
    uint64_t at = r->received + ms_of(r, "ms", 0);
    size_t n_json = json_part(r);
    const char *list = strstr(r->body, "\"inputs\":");
    if (strcmp(r->method, "GET") == 0) {
        script_reply(
            out, at, 200,
            "{\"name\":\"m\",\"versions\":[\"1\"],\"platform\":\"ref\",\"inputs\":[{\"name\":\"x\","
            "\"datatype\":\"FP32\",\"shape\":[-1,4]}],\"outputs\":[{\"name\":\"x\",\"datatype\":\"FP32\","
            "\"shape\":[-1,4]}]}");
        return;
    }
    if (!list || n_json > r->n_body) {
        script_reply(out, at, 400, "{\"error\":\"no inputs\"}");
        return;
    }
    list += strlen("\"inputs\":");
    int depth = 0;
    size_t n = 0;
    for (; list + n < r->body + n_json; n++) {
        depth += (list[n] == '[') - (list[n] == ']');
        if (!depth && list[n] == ']') break;
    }
    char *json = NULL;
    int n_head = asprintf(&json, "{\"model_name\":\"m\",\"outputs\":%.*s}", (int)n + 1, list);
    if (n_head < 0) abort();
    script_printf(out, at, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n", (size_t)n_head + r->n_body - n_json);
    if (n_json < r->n_body) script_printf(out, at, "Inference-Header-Content-Length: %d\r\n", n_head);
    script_printf(out, at, "\r\n%s", json);
    script_write(out, at, r->body + n_json, r->n_body - n_json);
    free(json);
}
