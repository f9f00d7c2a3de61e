# a page that cannot be written is known before anything is read
mkdir folder
for path in "" folder missing/out.html; do
    tare report --html "$path" missing.json 2>&1 | head -n 1
    echo "exit ${PIPESTATUS[0]}"
done
ls
