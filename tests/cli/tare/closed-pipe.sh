# a reader that leaves early is no failure, and nobody is told: neither with SIGPIPE as usual nor with it ignored
many() { for i in 1 2 3 4 5; do tare version || echo "exit $?" >&2; done; }
many 2>said | true
echo "pipe: ${PIPESTATUS[0]}"
(trap '' PIPE; many) 2>>said | true
echo "pipe: ${PIPESTATUS[0]}"
cat said
