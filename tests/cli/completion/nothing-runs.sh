# completing must never run a command, nor fail
tare __complete bash doctor --quick ""
tare __complete bash version --json ""
tare __complete bash __complete bash ""
tare __complete bash nonsense ""
tare __complete bash
tare __complete
echo "said nothing"
