# what tokens were made and revoked is listed, chained, and a change is named by its place
hide() { sed 's/[0-9a-f]\{64\}/HASH/g; s/\b[0-9a-f]\{12\}\b/TOKEN-ID----/g; s/20..-..-..[ T]..:..\(:......Z\)\?/YYYY-MM-DD HH:MM/g; s/user [0-9]*/user N/g'; }
tare token new --scope read --project nlp 2>/dev/null | cut -d_ -f3 >id
tare token revoke "$(cat id)" 2>/dev/null
tare audit list | hide | tr -s ' '
tare audit list --limit 1 --json | hide
tare audit verify | hide
head=$(tare audit verify --json | sed -n 's/.*"head": "\(.*\)".*/\1/p')
tare token new --scope read >/dev/null 2>&1
tare audit verify --head "$head" | hide
python3 -c 'import sqlite3; d = sqlite3.connect("tare-server/history.db"); d.execute("update audit set who = null where seq = 2"); d.commit()'
tare audit verify 2>&1; echo "exit $?"
try() { tare audit "$@" 2>&1 | head -n 1; echo "exit ${PIPESTATUS[0]}"; }
try
try show
try verify --head 12
try list --data nowhere
