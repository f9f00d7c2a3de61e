# two revisions of a program, built apart, compared, cleaned up; the working tree is not touched
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
git init -q -b main repo && cd repo
loop() { printf '#!/bin/sh\ni=0; while [ $i -lt %s ]; do i=$((i+1)); done\n' "$1" >prog.in; git add prog.in; git commit -qm "$1"; }
loop 3000; loop 9000
echo mine >>prog.in
tare compare --ab-rev HEAD~1..HEAD --build 'cp prog.in prog; chmod +x prog' --budget 20s --json -- ./prog >../out.json 2>../err
echo "exit $?"
git worktree list | wc -l
ls tare-results | grep -vc json
tail -n 1 prog.in
python3 - <<'PY'
import json
d = json.load(open("../out.json"))
assert d["verdict"] == "regressed" and d["config"]["revisions"] == "HEAD~1..HEAD"
assert (d["base"]["name"], d["new"]["name"]) == ("HEAD~1", "HEAD")
print("good")
PY
tare compare --ab-rev HEAD~1..nowhere -- ./prog 2>&1 | tail -n 1; echo "exit ${PIPESTATUS[0]}"
tare compare --ab-rev HEAD~1..HEAD --build false -- ./prog 2>&1 | tail -n 1; echo "exit ${PIPESTATUS[0]}"
git worktree list | wc -l
