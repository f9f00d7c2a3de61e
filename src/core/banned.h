/* SPDX-License-Identifier: MIT
 * banned.h - what the sources must not call, enforced by the compiler: the Makefile puts it in front of every file of
 * src and python/_tare by -include, except core/mem.c, the gate to malloc. A use becomes an undeclared name that says
 * what to call instead. The headers that declare these names come first, so that only uses are caught. */
#ifndef CORE_BANNED_H
#define CORE_BANNED_H

#include <alloca.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* Unbounded or unterminated text. */
#undef strcpy
#define strcpy(...) tare_banned_strcpy_use_buf_add_str
#undef strcat
#define strcat(...) tare_banned_strcat_use_buf_add_str
#undef strncpy
#define strncpy(...) tare_banned_strncpy_use_snprintf
#undef strncat
#define strncat(...) tare_banned_strncat_use_buf_add
#undef stpcpy
#define stpcpy(...) tare_banned_stpcpy_use_buf_add_str
#undef sprintf
#define sprintf(...) tare_banned_sprintf_use_snprintf_or_buf_printf
#undef vsprintf
#define vsprintf(...) tare_banned_vsprintf_use_vsnprintf
#undef gets
#define gets(...) tare_banned_gets

/* Parsing that cannot fail or depends on the locale. */
#undef atoi
#define atoi(...) tare_banned_atoi_use_strtoll
#undef atol
#define atol(...) tare_banned_atol_use_strtoll
#undef atoll
#define atoll(...) tare_banned_atoll_use_strtoll
#undef atof
#define atof(...) tare_banned_atof_use_strtod
#undef sscanf
#define sscanf(...) tare_banned_sscanf

/* Hidden state shared by threads. */
#undef strtok
#define strtok(...) tare_banned_strtok_use_strtok_r
#undef localtime
#define localtime(...) tare_banned_localtime_use_localtime_r
#undef gmtime
#define gmtime(...) tare_banned_gmtime_use_gmtime_r
#undef ctime
#define ctime(...) tare_banned_ctime_use_strftime
#undef asctime
#define asctime(...) tare_banned_asctime_use_strftime
#undef rand
#define rand(...) tare_banned_rand_use_rng_next
#undef srand
#define srand(...) tare_banned_srand_use_rng_seed
#undef random
#define random(...) tare_banned_random_use_rng_next
#undef tmpnam
#define tmpnam(...) tare_banned_tmpnam_use_file_write_atomic
#undef mktemp
#define mktemp(...) tare_banned_mktemp_use_mkstemp

/* What a program with raised privileges must not obey. */
#undef getenv
#define getenv(...) tare_banned_getenv_use_secure_getenv

/* Clocks that step. */
#undef gettimeofday
#define gettimeofday(...) tare_banned_gettimeofday_use_instant_now
#undef clock
#define clock(...) tare_banned_clock_use_instant_now

/* Allocation outside the gate. */
#undef malloc
#define malloc(...) tare_banned_malloc_use_mem_new
#undef calloc
#define calloc(...) tare_banned_calloc_use_mem_new
#undef realloc
#define realloc(...) tare_banned_realloc_use_mem_resize
#undef free
#define free(...) tare_banned_free_use_mem_free
#undef strdup
#define strdup(...) tare_banned_strdup_use_mem_strdup
#undef strndup
#define strndup(...) tare_banned_strndup_use_mem_strndup
#undef asprintf
#define asprintf(...) tare_banned_asprintf_use_buf_printf
#undef vasprintf
#define vasprintf(...) tare_banned_vasprintf_use_buf_printf
#undef alloca
#define alloca(...) tare_banned_alloca

#endif
