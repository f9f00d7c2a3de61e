tare report --sort totl x.tare
