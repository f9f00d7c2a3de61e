# -h goes to stdout with exit 0 wherever it stands
tare -h >first && tare --no-color --help >second && cmp first second && tare help >third && cmp first third
