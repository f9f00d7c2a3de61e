# --fail: an alert that the user asked for is exit 1, but a program's own code stays; those that are always there do not count
high='process.memory.rss>1KB for 0s' never='process.memory.rss>900GB'
tare run -q --no-save --fail --alert "$never" --alert "$high" -- sleep 0.6; echo $?
tare run -q --no-save --fail --alert "$never" -- sleep 0.6; echo $?
tare run -q --no-save --alert "$high" -- sleep 0.6; echo $?
tare run -q --no-save --fail --alert "$high" -- sh -c 'sleep 0.6; exit 7'; echo $?
tare run -q --no-save --fail -- true 2>&1; echo $?
