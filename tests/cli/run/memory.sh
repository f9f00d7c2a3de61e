# Samples of all processes that lie below the peak of one say nothing: 7.75 MiB "all together" beside 7.88 MiB in one.
tare run -q -- sh -c 'sleep 0.3'
for together in 8126464 16777216; do
    python3 - "$together" tare-results/run_*.json <<'END'
import json, sys
run = json.load(open(sys.argv[2]))
case = run["cases"][0]
case["memory"]["rss_peak"] = 8257536
case["watch"].update(tree_rss_peak=int(sys.argv[1]), rss_peak_at_s=0.1)
json.dump(run, open("run.json", "w"))
END
    tare report run.json | grep '^memory *peak'
done
