# flag > TARE_<COMMAND>_<OPTION> > TARE_<OPTION> > default
kind() { tare version "$@" | head -c 1; echo; }
kind
TARE_JSON=1 kind
TARE_VERSION_JSON=yes kind
TARE_JSON=1 TARE_VERSION_JSON=no kind
TARE_JSON=1 kind --no-json
TARE_JSON=0 kind --json
TARE_JSON= kind
