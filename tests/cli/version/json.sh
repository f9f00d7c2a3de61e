tare version --json
