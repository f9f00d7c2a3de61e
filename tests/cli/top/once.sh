# one moment as text: every pane is there, and what is absent says why
tare top --once --interval 200ms >answer
grep -c '^CPU   \[' answer
grep -c '^Mem   \[' answer
for title in Wait Disk Net GPU Heat; do grep -q "^$title " answer && echo "$title"; done
grep -E '^ +PID USER +CPU% +RSS +THR READ/s WRIT/s COMMAND' answer | grep -c .
awk 'length > 110 { print "too wide: " $0 }' answer
if [ -e /dev/nvidia0 ]; then echo "GPU   none: W"; else grep '^GPU' answer | sed 's/none: .*/none: W/'; fi
