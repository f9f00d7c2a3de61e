tare version >&-
