# the bash side: what tare answers becomes candidates, file and folder names are added by the shell
source <(tare completion bash)
cat >stub <<'STUB'
#!/bin/sh
case $* in
'__complete bash open '*) echo :files ;;
'__complete bash into '*) echo :dirs ;;
*) printf '%s\n' "$*" ;;
esac
STUB
chmod +x stub
touch 'a file' another && mkdir 'a folder' src
ask() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _tare
    printf '%s: ' "$*"
    printf '<%s>\n' "${COMPREPLY[@]}" | sort | tr -d '\n'
    echo
}
ask ./stub open a
ask ./stub into ""
ask ./stub open nothing-like-it
ask ./stub export --format = ch
complete -p tare
