/* SPDX-License-Identifier: MIT
 * api_alerts.c - alerts by HTTP: which rules there are, and how each host stands. */
#include "core/json.h"
#include "server/route.h"

static void answer_alerts(struct server *s, struct store *st, struct exchange *x)
{
    struct json j;
    (void)st;
    reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_key(&j, "rules");
    json_array_begin(&j);
    for (size_t i = 0; s->alarms && i < s->options.operations->alert_rules.n; i++)
        json_put_string(&j, s->options.operations->alert_rules.at[i]);
    json_array_end(&j);
    json_key(&j, "alerts");
    if (s->alarms) {
        alarms_json(s->alarms, x->project, &j);
    } else {
        json_array_begin(&j);
        json_array_end(&j);
    }
    json_object_end(&j);
    json_finish(&j, NULL);
}

const struct steps alerts_list = {.read = answer_alerts};
