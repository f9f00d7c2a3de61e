/* SPDX-License-Identifier: MIT
 * as_both.h - the short forms of a list of fields: key and member have the same name. Private to as_structs.h and
 * as_rows.h. */

#define TEXT(name, need, rule, help) TEXT_AS(name, name, need, rule, help)
#define BOOL(name, help) BOOL_AS(name, name, help)
#define ESTIMATE(name, unit, help) ESTIMATE_AS(name, name, unit, help)
#define OBJECT(name, how, type, help) OBJECT_AS(name, name, how, type, help)
