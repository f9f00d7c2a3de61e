# nothing is measured for a page that could not be written
tare compare --ab --html missing/out.html -- touch ran -- touch ran 2>&1 | head -n 1
echo "exit ${PIPESTATUS[0]}"
ls
