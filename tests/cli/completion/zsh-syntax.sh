# the zsh script names its command and calls back; zsh itself checks it where it is installed
tare completion zsh >script
head -n 1 script
grep -c '__complete zsh' script
if command -v zsh >/dev/null; then zsh -n script; fi
