tare docter --json
