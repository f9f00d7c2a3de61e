tare doctor --quik
