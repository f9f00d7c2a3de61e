# Markdown, JUnit, annotations; a file instead of stdout; a kept comparison shown again
. "$TARE_SRC/tests/cli/compare/saved.bash"
saved_runs
hide() { sed -E 's/20[0-9-]{8}T[0-9:.]+Z?/TIME/; s/tare [0-9][^<]*/tare VERSION/'; }
three="--base a1.json --base a2.json --base a3.json --new b1.json --new b2.json --new b3.json"
tare compare $three --format md | hide
tare compare $three --format junit | hide
tare compare $three --format github
tare compare a1.json b1.json --format github
tare compare a1.json b1.json --format md -o out.md; echo "exit $?"; head -n 2 out.md
tare compare a1.json b1.json --json >kept.json
tare compare kept.json --format github; echo "exit $?"
tare compare a1.json b1.json | cmp - <(tare compare kept.json) && echo same
tare compare a1.json b1.json --format md -o /no/such/folder/x.md 2>&1; echo "exit $?"
tare compare kept.json >by-compare.txt; tare report kept.json | diff - by-compare.txt && echo "report shows the same"
tare report kept.json --format csv; echo "exit $?"
