tare version
