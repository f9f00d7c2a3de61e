# a page that cannot be written is known before anything is measured; the text stays the answer
tare bench --html missing/out.html -- touch ran 2>&1 | head -n 1
echo "exit ${PIPESTATUS[0]}"
tare bench --html - -- touch ran 2>&1 | head -n 1
ls
