# on a terminal: colour, the pager that was asked for, none of both when refused
on_tty() { script -qec "$1" /dev/null </dev/null | tr -d '\r'; }
esc=$(printf '\033')
export TARE_PAGER="sed 's/^/paged: /'"
on_tty "tare help version" | head -n 1
on_tty "tare version" | head -n 1 | sed 's/[0-9][0-9.]*/N/'   # short: never paged
on_tty "tare bench --no-save --max-runs 5 -- true 2>/dev/null && echo next" | grep -c -e paged -e next   # measures: never paged, the next command comes
TARE_PAGER= on_tty "tare help version" | head -n 1
unset TARE_PAGER
PAGER="sed 's/^/common: /'" on_tty "tare help version" | head -n 1
on_tty "tare nonsense" | grep -q "$esc" && echo colour
NO_COLOR=1 on_tty "tare nonsense" | grep -q "$esc" || echo "no colour: NO_COLOR"
TERM=dumb on_tty "tare nonsense" | grep -q "$esc" || echo "no colour: dumb"
export TARE_PAGER=cat
on_tty "tare doctor --quick 2>/dev/null" | grep -q "$esc" && echo "colour in the answer"
on_tty "tare doctor --quick --no-color 2>/dev/null" | grep -q "$esc" || echo "no colour: --no-color"
TARE_NO_COLOR=1 on_tty "tare doctor --quick 2>/dev/null" | grep -q "$esc" || echo "no colour: TARE_NO_COLOR"
tare doctor --quick --color=always 2>/dev/null | grep -q "$esc" && echo "colour in a pipe: --color=always"
FORCE_COLOR=1 tare doctor --quick 2>/dev/null | grep -q "$esc" && echo "colour in a pipe: FORCE_COLOR"
FORCE_COLOR=1 tare doctor --quick --json 2>/dev/null | grep -q "$esc" || echo "no colour in JSON"
