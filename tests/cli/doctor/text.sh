tare doctor --quick
