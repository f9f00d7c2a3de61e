# --strict: a target that stays open is exit 3, one that passes 0, one that is missed 1; and it goes with something to be strict about
go() { tare bench --no-save --budget 50ms --max-runs 8 "$@" -- sleep 0.01 >/dev/null 2>&1; echo "exit $?"; }
go --target 'latency.p99<=1s'
go --strict --target 'latency.p99<=1s'
go --strict --target 'latency.p50<=10s'
go --strict --target 'latency.p50<=1ns'
tare bench --strict -- true
