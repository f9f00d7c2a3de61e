# the commands of scripts are neither in the help nor completed; every other one is both
tare help | grep -c __complete
tare __complete bash "" | cut -f 1 >completed
tare help | sed -n '/^commands:/,/^$/p' | sed -n 's/^  \([a-z]*\) .*/\1/p' >shown
cmp completed shown && echo same
grep -xc doctor shown
tare __complete zsh doc | cat -t
