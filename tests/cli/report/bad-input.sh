# each is named, with its cause; nothing is answered
try() { tare report "$@"; echo "exit $?" >&2; }
: >empty.tare; mkdir folder; echo hello >text; head -c 5000 /dev/urandom >random
printf '{"schema": "tare.run/1", "id": "01K", "kind": "bench"}' >run.json
printf '\n {"traceEvents": []}' >chrome.json
printf '{}' >some.json
try missing.tare; try folder; try empty.tare; try text; try random; try run.json; try chrome.json; try some.json
