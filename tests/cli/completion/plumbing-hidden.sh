# the commands of scripts are neither in the help nor completed; every other one is both, those of the Python package too
tare help | grep -c __complete
tare __complete bash "" | cut -f 1 | sort >completed
tare help | sed '/^options:/,$d' | sed -n 's/^  \([a-z-]*\) .*/\1/p' | sort >shown
cmp completed shown && echo same
grep -xc doctor shown
grep -xc functions shown
tare __complete zsh doc | cat -t
