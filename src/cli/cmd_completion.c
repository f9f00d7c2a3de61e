/* SPDX-License-Identifier: MIT
 * cmd_completion.c - `tare completion bash|zsh`: a thin script that asks `tare __complete` what may follow,
 * so that it never has to be renewed when options change. */
#include <string.h>

#include "cli/cli.h"
#include "cli/command.h"

static const char bash_script[] =
    "# bash completion for tare. Load it with: source <(tare completion bash)\n"
    "_tare() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} line\n"
    "    [[ $cur == = ]] && cur=\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :files) compopt -o filenames 2>/dev/null\n"
    "            while IFS= read -r line; do COMPREPLY+=(\"$line\"); done < <(compgen -f -- \"$cur\") ;;\n"
    "        :dirs) compopt -o filenames 2>/dev/null\n"
    "            while IFS= read -r line; do COMPREPLY+=(\"$line\"); done < <(compgen -d -- \"$cur\") ;;\n"
    "        *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "        esac\n"
    "    done < <(\"${COMP_WORDS[0]}\" __complete bash \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _tare tare\n";

static const char zsh_script[] =
    "#compdef tare\n"
    "# zsh completion for tare. Load it with: source <(tare completion zsh)\n"
    "_tare() {\n"
    "    local line\n"
    "    local -a found\n"
    "    local -a asked=(\"${(@)words[2,CURRENT]}\")\n"
    "    local program=$words[1]\n"
    "    [[ $PREFIX == --*=* ]] && compset -P '*='\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :files) _files ;;\n"
    "        :dirs) _files -/ ;;\n"
    "        *) found+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
    "        esac\n"
    "    done < <(\"$program\" __complete zsh \"${(@)asked}\" 2>/dev/null)\n"
    "    (( $#found )) && _describe tare found\n"
    "}\n"
    "if [[ $funcstack[1] == _tare ]]; then _tare \"$@\"; else compdef _tare tare; fi\n";

int cmd_completion(struct cli *cli, int argc, char **argv)
{
    static const struct opt_choice shells[] = {{"bash", 0, NULL}, {"zsh", 1, NULL}, {NULL, 0, NULL}};
    static const struct opt_usage usage = {
        .synopsis = "tare completion [options] <shell>",
        .about = "Print a script that completes commands, options, their values and file names. <shell> is "
                 "bash or zsh.",
        .tail = "for this session:       source <(tare completion bash)\n"
                "for every session:      tare completion bash > "
                "~/.local/share/bash-completion/completions/tare\n"
                "zsh, in a folder of     tare completion zsh > _tare\n"
                "$fpath:",
        .min_args = 1,
        .max_args = 1,
        .args = OPT_ARGS_WORDS,
        .words = shells,
    };
    int which = 0;
    const struct opt shell = {.type = OPT_TYPE_ENUM, .name = "shell", .to.choice = &which, .choices = shells};
    int rc = cli_options(cli, &usage, NULL, &argc, &argv);
    if (rc) return rc;
    if (opt_set(&shell, argv[0], &cli->error) < 0) return cli_usage_error(cli, "%s", cli->error.text);
    const char *script = which == 0 ? bash_script : zsh_script;
    cli_write(cli, script, strlen(script));
    return CLI_GOOD;
}
