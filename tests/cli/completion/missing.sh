tare completion
