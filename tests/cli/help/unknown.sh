tare help versoin
