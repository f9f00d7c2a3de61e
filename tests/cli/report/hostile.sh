# a unit that would steer a terminal, one that a spreadsheet would compute: shown, not obeyed
python3 - "$TARE_SRC/tests/cli/report/sweep.run.json" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
for c in d["cases"]:
    c["throughput"]["unit"] = "x\x1b]0;PWNED\x07\n\u202e\ufeff"
    c["unit"] = "=1+1"
json.dump(d, open("hostile.json", "w"))
END
for format in text md csv json junit; do
    tare report -f $format hostile.json >out 2>err
    echo "$format: exit $?, $(LC_ALL=C grep -c $'[\x01-\x08\x0b-\x1f\x7f]' out) raw lines," \
        "$(LC_ALL=C grep -c $'\xe2\x80\xae\|\xef\xbb\xbf' out) with marks"
done
tare report hostile.json | grep -o 'x.x1b[^ ]*' | head -n 1
tare report -o out.txt hostile.json && grep -c 'x.x1b.0;PWNED' out.txt
tare report -f csv hostile.json | sed -n 2p | grep -o "'=1+1"
