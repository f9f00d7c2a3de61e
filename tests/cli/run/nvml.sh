# the program starts before NVML does, however long that takes: here it waits for what the program makes
cc -std=gnu11 -D_GNU_SOURCE -O1 -fPIC -fvisibility=hidden -shared "$TARE_SRC"/tests/fake_nvml/fake_nvml.c -o libnvidia-ml.so.1 || exit
LD_LIBRARY_PATH=. FAKE_NVML_WAITS_FOR=$PWD/made tare run -q -o x.json -- touch made
echo "exit $?"; ls made*; grep -c Made-up x.json
