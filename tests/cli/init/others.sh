# what other services read: the words of the command stay what they are
tare init ci --for gitlab -o - models/m.onnx
tare init ci --for jenkins -o - --build 'make all' -- ./app "it's" 'a\b'
