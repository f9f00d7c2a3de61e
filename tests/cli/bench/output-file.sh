# the output folder is a file: exit 3, and yet what was measured is shown
touch taken
tare bench --max-runs 3 --warmup 1 --output-dir taken -- true >out; echo $?
grep -c '^default ' out
