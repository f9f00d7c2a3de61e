/* SPDX-License-Identifier: MIT
 * as_nothing.h - the end of a list of fields: its words mean nothing any more. */

#undef STRUCT
#undef RECORD
#undef END
#undef ARENA
#undef TEXT
#undef TEXT_AS
#undef U64
#undef I64
#undef F64
#undef BOOL
#undef BOOL_AS
#undef NUMBER
#undef COUNT
#undef INTEGER
#undef TIME
#undef ESTIMATE
#undef ESTIMATE_AS
#undef INTERVAL
#undef OBJECT
#undef OBJECT_AS
#undef LIST
#undef MAP
#undef REASONS
#undef COUNTS
#undef SAMPLES
#undef PATTERN
#undef WORDS
#undef ROWS
#undef ROWS_
#undef TYPE
#undef TYPE_
#undef ROW
