# under a rate a failed run is an outcome, counted; and it took longer than any that was served
tare bench --rate 200/s --arrivals constant --budget 500ms --no-save --json -- sh -c 'n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) >n; [ $((n % 4)) != 3 ]' >out 2>err; echo $?
python3 - <<'P'
import json
c = json.load(open("out"))["cases"][0]
o = c["open_loop"]
print(o["due"], o["offered"], o["failed"] > 0, o["served"] + o["failed"] <= 100, c["failure"].split(": ", 1)[1][:20])
print(c["latency_ns"]["p95"], c["latency_ns"]["at_least"].keys() >= {"mean", "max", "p90", "p95"}, c["unknown"]["latency_ns.p95"][:10])
P
