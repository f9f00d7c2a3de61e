# nowhere to keep the document: said, exit 3, and the folder is as it was
tare bench --budget 150ms --output-dir /dev/null/x -- true >out; echo $?
