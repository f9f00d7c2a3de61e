/* SPDX-License-Identifier: MIT
 * carbon.h - from energy to grams of CO2 equivalent: the grid's figure is given or taken from a small dated table; no
 * network is asked and no place is guessed. Pure. */
#ifndef ANALYZE_CARBON_H
#define ANALYZE_CARBON_H

#include "core/error.h"
#include "run/run.h"

struct carbon_grid {
    const char *code; /* "FR"; "WORLD" */
    const char *name;
    double g_per_kwh;
};
extern const struct carbon_grid carbon_grids[]; /* ends with code NULL */
extern const char carbon_grids_source[];        /* whose figures, of which year */

/* By code, any case. TARE_INVALID names the codes there are. */
tare_status carbon_find(const struct carbon_grid **out, const char *code, tare_error *err);

struct carbon_energy {
    struct known_f64 measured_joules, estimated_joules;
    const char *absent; /* what was not measured; NULL: nothing is known to be missing */
};
void carbon_fill(struct run_carbon *out, const struct carbon_energy *e, double g_per_kwh, const char *source);

#endif
