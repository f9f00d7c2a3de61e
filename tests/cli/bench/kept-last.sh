# where the document went is said after the answer, also in one file with it
tare bench --max-runs 2 --warmup 1 -- true >all 2>&1
tail -n 1 all | sed 's/[0-9-]*\.json/STAMP.json/'
grep -c '^case ' all
