# a file of 1.20, whose names break JSON: layers, bodies, groups; nothing is kept
tare import --ort-profile "$TARE_SRC/fuzz/corpus/ort_profile/quotes-1.20.json" --no-save --skip 0 || exit
ls
