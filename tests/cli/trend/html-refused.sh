# the history is not even opened
tare trend --html missing/out.html --history none.db 2>&1 | head -n 1
echo "exit ${PIPESTATUS[0]}"
ls
