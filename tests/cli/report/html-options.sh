# options of the text are refused with --html, before any file is opened
for option in --flat "--sort self" "--depth 2" "--thread 7" "--min-share 3"; do
    tare report --html out.html $option missing.tare 2>&1 | head -n 1
done
tare report --html out.html --json missing.tare 2>&1 | head -n 1
ls
