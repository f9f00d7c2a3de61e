tare --versoin
