# a progress bar with the time left on a terminal, on stderr; nothing in a pipe
export TARE_PAGER=cat
script -qec "tare doctor >/dev/null" /dev/null </dev/null | grep -ao 'measuring noise.*ETA [0-9]*s' | tail -n 1 |
    grep -ac 'measuring noise'
tare doctor --quick 2>&1 >/dev/null | wc -c
