# the ranks of a job on one timeline, though one clock is 5 ms ahead; what is no timeline is refused
for rank in 0 1; do
    { printf '{"baseTimeNanoseconds": 1790857026000000000, "distributedInfo": {"rank": %s, "world_size": 2}, "traceEvents": [' $rank
      for i in $(seq 0 19); do
          n=$((30 - 20 * rank)); at=$((5000 * rank + 100 * i + 50 - n))
          [ $i = 0 ] || printf ','
          printf '{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":7,"ts":%s,"dur":%s,"args":{"device":0,"stream":7}}' $at $n
      done; printf ']}'; } >r$rank.json
    tare import --torch-profile r$rank.json -o r$rank.tare >/dev/null || exit
done
tare export -f chrome r0.tare r1.tare -o - | tr -d '\n' | sed 's/},{/},\n{/g' | grep -c 'waiting for rank 1'
tare export -f chrome r0.tare r1.tare -o - | grep -o '"name":"rank[^"]*'
tare export -f perfetto r0.tare r1.tare -o x.pftrace | sed 's/: [0-9.]* KiB/: N KiB/'
tare export -f folded r0.tare r1.tare; echo $?
tare report r0.tare r1.tare --html p.html 2>/dev/null; grep -c 'waiting for rank 1' p.html
