# two traces of GPUs by their steps: which kernel is slower, which is new; the same program twice is the same; few steps cannot tell
made() { # NAME STEPS FACTOR EXTRA SHIFT: a file of torch.profiler with steps of five kernels, the second FACTOR as long, as a trace
    awk -v STEPS=$2 -v FACTOR=$3 -v EXTRA=$4 -v SHIFT=$5 '
        function noise() { return 1 + ((++draws * 7919 + SHIFT) % 101 - 50) / 1000 }
        function event(cat, name, ts, dur, pid, args) {
            printf "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":7,\"ts\":%.3f,\"dur\":%.3f,\"args\":{%s}}",
                   sep, cat, name, pid, ts, dur, args
            sep = ",\n"
        }
        BEGIN {
            print "{\"traceEvents\": ["; t = 1000; split("gemm relu norm softmax adam extra", names)
            for (s = 0; s < STEPS; s++) {
                begin = t
                for (k = 1; k <= 5 + EXTRA; k++) {
                    d = 20 * k * noise() * (k == 2 ? FACTOR : 1)
                    id++
                    event("cuda_runtime", "cudaLaunchKernel", t, 4, 100, "\"correlation\":" id)
                    event("kernel", names[k], t + 6, d, 0, "\"device\":0,\"stream\":7,\"correlation\":" id)
                    t += d + 10 * noise()
                }
                event("user_annotation", "ProfilerStep#" s, begin - 1, t - begin, 100, "")
                t += 5
            }
            print "]}"
        }' >$1.json
    tare import $1.json -o $1.tare >/dev/null || exit
}
made base 60 1 0 0; made same 60 1 0 37; made slow 60 1.1 1 11; made few 6 1 0 5
tare compare --gpu base.tare same.tare; echo "exit $?"
tare compare --gpu base.tare slow.tare; echo "exit $?"
tare compare --gpu base.tare slow.tare --fail-on 'kernel.time>15%' | grep ^verdict; tare compare --gpu base.tare few.tare --strict | tail -4; echo "exit $?"
tare compare --gpu base.tare slow.tare --json >x.json; tare compare x.json | grep -c kernel.time; tare compare --gpu base.tare slow.tare -f md | head -4
# several a side: what whole runs differ by judges, also what the host has a part in; two a side are judged by all their steps
made base2 60 1.01 0 3; made base3 60 0.99 0 91; made slow2 60 1.11 1 17; made slow3 60 1.09 1 71
tare compare --gpu --base base.tare --base base2.tare --base base3.tare --new slow.tare --new slow2.tare --new slow3.tare; echo "exit $?"
tare compare --gpu --base base.tare --base base2.tare --base base3.tare --new same.tare | grep -e ^step -e ^verdict; echo "exit $?"
tare compare --gpu --base base.tare --base base2.tare --new slow.tare --new slow2.tare | grep -e ^method -e ^step -e relu -e ^info
tare compare --gpu --base base.tare; echo "exit $?"
tare compare --gpu --base base.tare --new slow.tare --new gone.tare; echo "exit $?"
# what is no such trace
echo '{}' >run.json; tare compare --gpu base.tare run.json; echo "exit $?"
tare compare base.tare slow.tare; echo "exit $?"
tare compare --gpu base.tare; echo "exit $?"
tare compare --gpu base.tare slow.tare --fail-on 'latency>5%'; echo "exit $?"
tare compare --gpu --ab base.tare slow.tare; echo "exit $?"
