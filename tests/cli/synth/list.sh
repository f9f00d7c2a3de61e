# the architectures, for people and for programs
tare synth --list
tare synth --list --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)), "rows")'
