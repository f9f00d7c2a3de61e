/* SPDX-License-Identifier: MIT
 * input.h - tensors to feed a model with: made up so that they are valid for it, or taken from files and fitted to the
 * case. The same seed gives the same bytes. Never guesses over a mismatch: that is an error which names both sides.
 *
 * Made up, by type and name (the first row that fits):
 *   text                                refused
 *   *mask*                              ones
 *   *token_type*, *segment*             zeros
 *   *position*                          0, 1, 2, ... along the last axis, below the bound
 *   *len* of integers                   the sequence length
 *   integers with a bound in the graph  even over 0 .. bound - 1
 *   8-bit integers                      all values (images)
 *   other integers                      0 or 1: an index into anything that has two rows
 *   booleans                            even; false where there is only one (a switch)
 *   floats                              normal, mean 0, deviation 1; 8 bits and less: small finite values
 *
 * From files: names must match (arrays without a name go by their order), types and ranks be equal, every axis but the
 * first be what model and case say. The first axis is the batch: rows are cut, or taken again from the start, so that
 * one file serves a sweep; worker w starts w batches further on. */
#ifndef SUBJECT_INPUT_H
#define SUBJECT_INPUT_H

#include "subject/ort_session.h"

struct input_spec {
    const struct ort_io *io;
    const int64_t *dims; /* resolved, io->rank of them */
    int64_t bound;       /* integers are below it; 0: none known */
    int64_t seq;         /* for lengths; at least 1 */
    uint64_t seed;       /* differs per worker and input */
};

tare_status input_make(struct tensor *out, const struct input_spec *spec, tare_error *err);

/* Which of `files` belongs to each input, in out[0 .. inputs->n - 1]. Every input must have one, every array a use. */
tare_status input_match(const struct ort_ios *inputs, const struct tensor_set *files,
                        const struct tensor **out, tare_error *err);
tare_status input_fit(struct tensor *out, const struct input_spec *spec, const struct tensor *file,
                      unsigned worker, tare_error *err);

/* TARE_UNSUPPORTED, with the name, for what cannot be fed: text, sequences, maps, optional values, sparse tensors. */
tare_status input_check_kind(const struct ort_io *io, tare_error *err);

#endif
