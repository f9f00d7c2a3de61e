tare bench x.onnx --target "latency.p95<=100mz"; echo $?; tare bench x.onnx --target "speed>=1"; echo $?
