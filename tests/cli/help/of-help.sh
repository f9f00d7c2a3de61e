tare help help
