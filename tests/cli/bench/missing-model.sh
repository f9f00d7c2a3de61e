tare bench no-such.onnx
