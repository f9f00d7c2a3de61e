# a saved run again: head, a row per case, findings, what to use, targets
tare report "$TARE_SRC/tests/cli/report/sweep.run.json"
