# fish completes what it asks tare for: commands, options, values behind `=`, files
tare completion fish >script.fish
head -n 1 script.fish
touch trace.tare && mkdir folder
if ! command -v fish >/dev/null; then exit 77; fi
export HOME=$PWD XDG_CONFIG_HOME=$PWD XDG_DATA_HOME=$PWD
ask() { fish --no-config -c 'source script.fish; complete -C $argv[1]' "$1" | cut -f 1 | sort | tr '\n' ' '; echo; }
ask 'tare ver'
ask 'tare doctor --q'
ask 'tare completion '
ask 'tare export --format=ch'
ask 'tare report trace.t'
ask 'tare nothing '
