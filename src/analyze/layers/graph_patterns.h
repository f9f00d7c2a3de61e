/* SPDX-License-Identifier: MIT
 * graph_patterns.h - what is worth a finding in a graph, counted once so that the run document holds it: layout
 * transposes, nodes that are the same in every run, norms, activations and attention spelled out in small operators,
 * embedding tables. Counts only; finding_graph.c judges. Private to src/analyze. */
#ifndef ANALYZE_GRAPH_PATTERNS_H
#define ANALYZE_GRAPH_PATTERNS_H

#include "analyze/layers/inspect.h"

/* Fills `to` (run_static.patterns) with whole numbers; a key whose number cannot be told is left out:
 *   transposes, transpose_bytes                       layout changes at run time, bytes they read and write
 *   foldable_nodes, foldable_macs                     made of constants only, yet nodes of the graph
 *   layer_norm, rms_norm, gelu, attention             how often spelled out
 *   unfused_nodes, unfused_bytes                      the nodes of these spellings, bytes they read and write
 *   embedding_tables, embedding_parameters, embedding_bytes   tables that are looked up by row
 * Only the main graph is looked at. Running out of memory is remembered by the run's arena. */
void graph_patterns_record(const struct inspected *in, struct run *run, struct run_map *to);

#endif
