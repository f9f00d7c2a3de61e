# bench and compare in one step: unverified against a single run, refused before measuring when it cannot be read
try() { tare bench --max-runs 20 --warmup 1 --output-dir r --no-history "$@" -- true >out.txt 2>err.txt; echo "exit $?"; }
try; base=$(ls r/bench_*.json)
try --baseline "$base"; grep -e '^verdict' out.txt
try --baseline "$base" --strict
try --baseline "$base" --json; grep -o '"schema": "tare[^"]*"' out.txt
try --baseline "$base" --md s.md --junit j.xml; head -n 1 s.md; grep -c '<testcase' j.xml
try --baseline missing.json; cat err.txt
try --baseline "$base" --fail-on nonsense; head -n 1 err.txt
try --fail-on 'latency.p95>5%'; head -n 1 err.txt
sed 's/"model": "[^"]*"/"model": "Another"/; s/"fingerprint": "[^"]*"/"fingerprint": "h1-0000000000000000"/' "$base" >other.json
try --baseline other.json; grep -o 'not comparable' err.txt
try --baseline other.json --force; grep -e '^verdict' out.txt
