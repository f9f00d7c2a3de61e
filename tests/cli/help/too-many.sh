tare help version doctor
