/* SPDX-License-Identifier: MIT
 * subject.c - what all kinds of subject share. */
#include "subject/subject.h"

#include "core/banned.h"

void subject_close(struct subject *s)
{
    if (s) s->ops->close(s);
}
