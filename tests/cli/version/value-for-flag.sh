tare version --json=yes
