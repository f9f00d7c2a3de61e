# an answer that could not be written is a failure, not a success
tare version >/dev/full
