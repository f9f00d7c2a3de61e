tare bench --budget 300ms --no-save -- true
