# two traces without sampled stacks, and words that do not go with --stacks
tare run --trace none.tare -- true >/dev/null 2>&1
tare compare --stacks none.tare none.tare; echo "exit $?"
tare compare --stacks gone.tare none.tare; echo "exit $?"
tare compare --stacks none.tare; echo "exit $?"
tare compare --memory --stacks none.tare none.tare; echo "exit $?"
tare compare --gpu --time cpu none.tare none.tare; echo "exit $?"
