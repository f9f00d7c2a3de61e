/* SPDX-License-Identifier: MIT
 * cmd_completion.c - `tare completion bash|zsh|fish`: a thin script that asks `tare __complete` what may follow,
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

/* fish wants whole words: what stands before the value of --name=value is put back. */
static const char fish_script[] =
    "# fish completion for tare. Load it with: tare completion fish | source\n"
    "function __tare_complete\n"
    "    set -l words (commandline -opc)\n"
    "    set -l typed (commandline -ct)\n"
    "    set -l before (string match -r -- '^--[^=]*=' \"$typed\")\n"
    "    set -l value (string replace -r -- '^--[^=]*=' '' \"$typed\")\n"
    "    for line in ($words[1] __complete fish $words[2..-1] \"$typed\" 2>/dev/null)\n"
    "        switch $line\n"
    "            case ':files'\n"
    "                for name in (__fish_complete_path \"$value\"); echo \"$before$name\"; end\n"
    "            case ':dirs'\n"
    "                for name in (__fish_complete_directories \"$value\"); echo \"$before$name\"; end\n"
    "            case '*'\n"
    "                echo \"$before$line\"\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c tare -f -a '(__tare_complete)'\n";

int cmd_completion(struct cli *cli, int argc, char **argv)
{
    static const struct opt_choice shells[] = {
        {"bash", 0, NULL}, {"zsh", 1, NULL}, {"fish", 2, NULL}, {NULL, 0, NULL}};
    static const char *const scripts[] = {bash_script, zsh_script, fish_script};
    static const struct opt_usage usage = {
        .synopsis = "tare completion [options] <shell>",
        .about = "Print a script that completes commands, options, their values and file names. <shell> is "
                 "bash, zsh or fish.",
        .tail = "for this session:       source <(tare completion bash)\n"
                "for every session:      tare completion bash > "
                "~/.local/share/bash-completion/completions/tare\n"
                "zsh, in a folder of     tare completion zsh > _tare\n"
                "$fpath:\n"
                "fish:                   tare completion fish > ~/.config/fish/completions/tare.fish",
        .min_args = 1,
        .max_args = 1,
        .words = shells,
    };
    int which = 0;
    const struct opt shell = {.type = OPT_TYPE_ENUM, .name = "shell", .to.choice = &which, .choices = shells};
    int rc = cli_options(cli, &usage, NULL, &argc, &argv);
    if (rc) return rc;
    if (opt_set(&shell, argv[0], &cli->error) < 0) return cli_usage_error(cli, "%s", cli->error.text);
    cli_write(cli, scripts[which], strlen(scripts[which]));
    return CLI_GOOD;
}
