# values that are words, in all spellings, and files where an option or an argument is one
source <(tare completion bash)
ask() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _tare
    echo "$*: $(printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' ')"
}
touch app.tare && mkdir apps
ask tare export --format sp
ask tare export --format = sp
ask tare export --format =
ask tare export -f ch
ask tare export --form
ask tare export ap
ask tare export app.tare -o ap
ask tare export --format = folded ap
ask tare export --output = ap
tare __complete zsh export --format=sp | cut -f 1
