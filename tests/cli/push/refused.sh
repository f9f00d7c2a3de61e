# what is wrong is told before anything is measured or sent; the token is never shown
try() { echo "\$ $*"; "$@" 2>&1; echo "exit $?"; }
try tare push
try tare push --server example.com
try tare push --server http://me:secret@example.com
export TARE_TOKEN='tare_ingest_3f1c9a0b77d2_0123 4567'
try tare push --server http://127.0.0.1:1 | sed 's/0123/SHOWN/'
export TARE_TOKEN=tare_ingest_3f1c9a0b77d2_0123
try tare push --server http://example.com/ | sed 's/_0123/SHOWN/'
try tare push --server http://127.0.0.1:1 --all
try tare push --server http://127.0.0.1:1 no-such.json
echo '{}' >empty.json
try tare push --server http://127.0.0.1:1 empty.json
try tare push --all empty.json --server http://127.0.0.1:1
try tare push --server http://127.0.0.1:1
try tare bench --push -- true
try tare bench --push --server nowhere -- true
try tare bench --push --no-save --server http://127.0.0.1:1 -- true
try tare bench --history http://127.0.0.1:1 -- true
try tare history list --server http://127.0.0.1:1
try tare history list --server http://127.0.0.1:1 --history x.db
try tare trend --server http://127.0.0.1:1
try tare compare --server http://127.0.0.1:1 @main @latest
try tare history tag --server http://127.0.0.1:1 latest x
ls
