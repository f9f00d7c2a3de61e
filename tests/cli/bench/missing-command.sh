tare bench --no-save -- ./no-such-program
