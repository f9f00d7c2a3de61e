# complete as bash does: the words of a command line, split at its break characters
source <(tare completion bash)
ask() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _tare
    echo "$*: $(printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' ')"
}
touch 'a file' trace.tare && mkdir folder
ask tare ver
ask tare --ver
ask tare doctor --q
ask tare doctor --json --
ask tare completion ""
ask tare completion z
ask tare completion zsh ""
ask tare help comp
ask tare nothing ""
ask tare doctor -- --q
