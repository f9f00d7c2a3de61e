# each with its cause and exit 2
try() { tare token "$@" 2>&1 | head -n 1; echo "exit ${PIPESTATUS[0]}"; }
try
try make
try new
try new --scope write
try new --scope read,
try new --scope read --project 'a b'
try new --scope read again
try revoke
try list extra
try revoke 0123456789ab
try list
tare token new --scope read >/dev/null 2>&1
try revoke 0123456789ab
