# a command that fails: which run, how, and what it said
tare bench --budget 300ms --no-save -- sh -c "echo it broke >&2; exit 7"
