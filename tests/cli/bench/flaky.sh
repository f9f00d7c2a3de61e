# every tenth run fails: it is counted with its share, the others are kept, exit 1; three more failed than served: the case has failed
cat >flaky <<'SH'
#!/bin/sh
n=$(cat count 2>/dev/null || echo 0)
n=$((n + 1))
echo $n >count
[ $((n % 10)) = 7 ] && echo broken >&2 && exit 3
exit 0
SH
chmod +x flaky
echo 6 >count # the very first run fails, too
tare bench --name flaky --warmup 9 --min-runs 80 --max-runs 80 --no-save --json -- ./flaky >out.json 2>err
echo "exit $?, $(cat count) runs"
python3 - <<'PY'
import json
case, = json.load(open("out.json"))["cases"]
print(case["samples"], "samples,", case["failed_runs"], "failed:", case["failure"])
print("p50 known:", case["latency_ns"]["p50"] is not None, "| p95:", case["unknown"]["latency_ns.p95"].split(": ")[1])
print("mean:", case["unknown"]["latency_ns.mean"].split(": ")[1], "| throughput known:", case["throughput"]["value"] > 0)
finding, = [f for f in json.load(open("out.json"))["findings"] if f["id"] == "runs.failed"]
print(finding["title"])
PY
tare bench --no-save -- sh -c 'echo x >>times; exit 4' 2>&1
echo "exit $?, $(wc -l <times) runs"
echo 0 >count # broken after the tenth run: all that were served are not worth the rest
cat >breaks <<'SH'
#!/bin/sh
n=$(($(cat count) + 1))
echo $n >count
[ $n -le 10 ]
SH
chmod +x breaks
tare bench --name breaks --warmup 3 --min-runs 30 --max-runs 30 --no-save -- ./breaks 2>&1
echo "exit $?"
# under a rate they failed, too
echo 0 >count
tare bench --name flaky --rate 20 --warmup 0 --max-runs 60 --budget 60s --no-save --json -- ./flaky >out.json 2>err
echo "exit $?"
python3 -c 'import json; c, = json.load(open("out.json"))["cases"]; print(c["failed_runs"], "|", c["unknown"]["latency_ns.max"].split(": ")[1])'
# what prepares a run fails from the 20th on: that is the end, not a wait for runs that never come
echo 0 >count
tare bench --warmup 3 --min-runs 60 --prepare 'n=$(($(cat count) + 1)); echo $n >count; test $n -lt 20' --no-save -- true 2>&1
echo "exit $?"
