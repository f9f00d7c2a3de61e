# two traces without records of memory, and words that do not go with --memory
tare run --trace none.tare -- true >/dev/null 2>&1
tare compare --memory none.tare none.tare; echo "exit $?"
tare compare --memory gone.tare none.tare; echo "exit $?"
tare compare --memory none.tare; echo "exit $?"
tare compare none.tare none.tare; echo "exit $?"
tare compare --memory none.tare none.tare --fail-on 'latency>5%'; echo "exit $?"
tare compare --memory --gpu none.tare none.tare; echo "exit $?"
tare compare --gpu --by line none.tare none.tare; echo "exit $?"
