# --fail: an alert that the user asked for is exit 1, but a program's own code stays; those that are always there do not count
high='process.memory.rss>1KB for 0s' never='process.memory.rss>900GB'
tare run -q --no-save --fail --alert "$never" --alert "$high" -- sleep 0.6; echo $?
tare run -q --no-save --fail --alert "$never" -- sleep 0.6; echo $?
tare run -q --no-save --alert "$high" -- sleep 0.6; echo $?
tare run -q --no-save --fail --alert "$high" -- sh -c 'sleep 0.6; exit 7'; echo $?
tare run -q --no-save --fail -- true 2>&1; echo $?
# --strict: what could not be judged is exit 3, after what was told and the program's own code
blind='gpu>1% while process.memory.rss>1KB' # the process probe alone sees no card
tare run -q --no-save -p process --fail --alert "$blind" -- sleep 0.6; echo $?
tare run -q --no-save -p process --fail --strict --alert "$never" --alert "$blind" -- sleep 0.6 2>&1; echo $?
tare run -q --no-save -p process --fail --strict --alert "$never" -- sleep 0.6; echo $?
tare run -q --no-save -p process --fail --strict --alert "$high" --alert "$blind" -- sleep 0.6; echo $?
tare run -q --no-save -p process --fail --strict --alert "$blind" -- sh -c 'exit 7'; echo $?
tare run -q --no-save --strict --alert "$never" -- true 2>&1; echo $?
