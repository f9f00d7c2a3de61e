tare help >/dev/full
