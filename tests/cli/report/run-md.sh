# Markdown for a pull request
tare report --format md "$TARE_SRC/tests/cli/report/sweep.run.json"
