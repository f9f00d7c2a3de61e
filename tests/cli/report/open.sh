# --open: the page is written and given to a browser; where there is none, the user is told which file to open
printf '#!/bin/sh\necho "$1" >opened\n' >browser; chmod +x browser
tare bench --max-runs 3 --budget 10ms -- true >/dev/null 2>&1
BROWSER=./browser tare report --open 2>&1; echo "exit $?"; cat opened; head -c 15 tare-results/report.html; echo
BROWSER=./browser tare report --open --html own.html 2>&1; cat opened
BROWSER=./nosuch tare report --open 2>&1; echo "exit $?"
