# Two scripts of one program are two subjects, in the history as in the trend; --name chooses another; a build elsewhere is the same one.
echo 'exit 0' >a.sh; cp a.sh b.sh; mkdir bin; cp "$(command -v sh)" bin/sh
for words in "sh a.sh" "sh b.sh --n 5" "bin/sh a.sh"; do tare bench --max-runs 3 --budget 10ms -- $words >/dev/null 2>&1; done
tare bench --max-runs 3 --budget 10ms --name 'my service' -- sh a.sh 2>/dev/null | head -1
tare run --name nightly -- sh a.sh 2>&1 | grep '^subject'
tare run -q -- sh -c 'exit 0  # a comment'
tare history list --json | grep '"subject"' | sort
tare trend --subject sh 2>&1
tare trend --subject 'sh a.sh' --json | grep -c '{"run": "'
ls tare-results | sed 's/_[0-9]*-.*//' | sort -u
tare bench --name "$(printf 'a\tb')" -- true
