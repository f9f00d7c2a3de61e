tare version now
