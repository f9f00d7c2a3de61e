# long options are never abbreviated
tare version --js
