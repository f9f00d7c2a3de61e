# made, listed without its secret, revoked; the folder is its owner's alone
tare token new --scope read,ingest --project nlp --name 'the CI' --expires 30d >token 2>said
sed 's/_[0-9a-f]\{12\}_[0-9a-f]\{64\}$/_ID_SECRET/' token
cat said
stat -c '%a %n' tare-server tare-server/history.db
id=$(cut -d_ -f3 token)
tare token new --scope admin 2>&1 >/dev/null
tare token list | sed "s/$id/the-id-of-it/; s/^[0-9a-f]\{12\} /another-one- /; s/20..-..-.. ..:../YYYY-MM-DD HH:MM/g"
tare token revoke "$id" 2>&1 | sed "s/$id/ID/"
tare token list --json | sed "s/$id/the-id-of-it/; s/\"[0-9a-f]\{12\}\"/\"another-one-\"/; s/20..-..-..T..:..:..\....Z/TIME/"
tare token revoke "$id" 2>&1 | sed "s/$id/ID/"
