/* SPDX-License-Identifier: MIT
 * cmd_python.c - commands that the Python package has: `tare functions x.py` is `python -m tare functions x.py`.
 * Which words there are is told by the table in python/tare/__main__.py, of which the Makefile makes a list. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "core/mem.h"

const struct python_word python_words[] = {
#ifdef PYTHON_WORDS
#include PYTHON_WORDS
#endif
    {NULL, NULL},
};

bool is_python_word(const char *name)
{
    for (const struct python_word *w = python_words; w->name; w++)
        if (strcmp(w->name, name) == 0) return true;
    return false;
}

/* As `python -m tare`, except that a Python without the package is told in our words. */
static const char program[] =
    "import importlib.util, runpy, sys\n"
    "if not importlib.util.find_spec('tare'):\n"
    "    sys.stderr.write(f'tare {sys.argv[1]}: {sys.executable} has no package tare. In the folder of tare: '\n"
    "                     f'{sys.executable} -m pip install .  (TARE_PYTHON chooses another Python)\\n')\n"
    "    sys.exit(3)\n"
    "import tare; tare.PROGRAM = 'tare'\n"
    "runpy.run_module('tare', run_name='__main__', alter_sys=True)\n";

int cmd_python(struct cli *cli, int argc, char **argv)
{
    char room[PATH_MAX];
    const char *python = cli_python(room, sizeof room);
    const char **words = mem_new((size_t)argc + 4, sizeof *words);
    if (!words) {
        error_nomem(&cli->error, "%d words", argc);
        return cli_fail(cli);
    }
    words[0] = python;
    words[1] = "-c";
    words[2] = program;
    for (int i = 0; i < argc; i++) words[3 + i] = argv[i];
    execvp(python, (char *const *)(uintptr_t)words);
    error_set(&cli->error, TARE_IO, "%s: %s; it would run `python -m tare %s`", python, strerror(errno),
              argv[0]);
    mem_free(words);
    return cli_fail(cli);
}
