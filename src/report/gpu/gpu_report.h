/* SPDX-License-Identifier: MIT
 * gpu_report.h - what GPUs did, for people. For programs there is the document itself. */
#ifndef REPORT_GPU_REPORT_H
#define REPORT_GPU_REPORT_H

#include "report/sink.h"
#include "run/gpu_profile.h"

void gpu_report_text(struct stream *s, const struct gpu_profile *p);
void gpu_job_text(struct stream *s, const struct gpu_job *j); /* its part about ranks */

#endif
