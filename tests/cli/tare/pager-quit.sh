# leaving the pager early is quiet and good
export TARE_PAGER="head -n 1 | sed 's/.*subject.*/one line/'"
script -qec "tare report $TARE_SRC/tests/cli/report/sweep.run.json 2>/dev/null; echo exit \$?" /dev/null </dev/null | tr -d '\r' | sed "s/$(printf '\033')\[[0-9]*m//g"
