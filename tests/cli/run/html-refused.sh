# the program is not started when its page could not be written
tare run --html missing/out.html -- touch ran 2>&1 | head -n 1
echo "exit ${PIPESTATUS[0]}"
ls
