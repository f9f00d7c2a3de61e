# three pairs decide nothing: exit 0, and 3 under --strict; the report says what would
tare compare --ab true true --max-pairs 3 --no-save >out; echo "exit $?"
tare compare --ab true true --max-pairs 3 --no-save --strict >out; echo "exit $?"
grep -c '^verdict: inconclusive' out
grep -q 'pairs would decide it' out && echo told
