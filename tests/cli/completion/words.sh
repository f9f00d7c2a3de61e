# the words of a command come first, and once; what follows are files where it takes some
tare __complete bash history "" | cut -f1 | tr '\n' ' '
echo
tare __complete bash history import ""
tare __complete bash token new ""
tare __complete bash tok "" | wc -l
# a command of the Python package: a script may follow
tare __complete bash functions ""
