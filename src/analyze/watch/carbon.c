/* SPDX-License-Identifier: MIT
 * carbon.c - see carbon.h. */
#include "analyze/watch/carbon.h"

#include <strings.h>

#include "core/buf.h"

#define JOULES_PER_KWH 3.6e6

/* Means of a whole year and a whole country: the hour and the place of a run may differ from them by half or more.
 * Only figures that could be looked up are here; for any other place there is --grid. */
const char carbon_grids_source[] =
    "yearly mean of 2023, lifecycle emissions of generation: Our World in Data, after Ember and the Energy Institute";

const struct carbon_grid carbon_grids[] = {
    {"AT", "Austria", 111},  {"AU", "Australia", 549}, {"BE", "Belgium", 138},       {"BG", "Bulgaria", 335},
    {"BR", "Brazil", 98},    {"CA", "Canada", 170},    {"CL", "Chile", 291},         {"CN", "China", 582},
    {"CZ", "Czechia", 450},  {"DE", "Germany", 381},   {"DK", "Denmark", 152},       {"EE", "Estonia", 417},
    {"EG", "Egypt", 570},    {"FI", "Finland", 79},    {"FR", "France", 56},         {"GR", "Greece", 337},
    {"HR", "Croatia", 205},  {"HU", "Hungary", 204},   {"IE", "Ireland", 291},       {"IN", "India", 713},
    {"NO", "Norway", 30},    {"US", "United States", 369}, {"WORLD", "the world", 481}, {NULL, NULL, 0},
};

tare_status carbon_find(const struct carbon_grid **out, const char *code, tare_error *err)
{
    struct buf all = BUF_INIT;
    for (const struct carbon_grid *g = carbon_grids; g->code; g++) {
        if (strcasecmp(g->code, code) == 0) {
            *out = g;
            buf_release(&all);
            return TARE_OK;
        }
        buf_printf(&all, "%s%s", g == carbon_grids ? "" : ", ", g->code);
    }
    error_set(err, TARE_INVALID, "'%.20s' is not in the table; there are %s; for others use --grid", code,
              all.data);
    buf_release(&all);
    return TARE_INVALID;
}

void carbon_fill(struct run_carbon *out, const struct carbon_energy *e, double g_per_kwh, const char *source)
{
    double joules = (e->measured_joules.known ? e->measured_joules.v : 0) +
                    (e->estimated_joules.known ? e->estimated_joules.v : 0);
    *out = (struct run_carbon){
        .known = e->measured_joules.known || e->estimated_joules.known,
        .measured_joules = e->measured_joules,
        .estimated_joules = e->estimated_joules,
        .grams = known_f64(joules / JOULES_PER_KWH * g_per_kwh),
        .grid_g_per_kwh = known_f64(g_per_kwh),
        .source = source,
        .lower_bound = known_bool(e->absent != NULL),
        .absent = e->absent,
    };
}
