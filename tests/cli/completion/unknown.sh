tare completion fish
