# what is refused before anything starts
for a in "" "--interval 0 -- true" "--probe nothing -- true" "--probe , -- true" "-o x.tare -- true" "-o x --trace x -- true" "--output= -- true" "--country XX -- true" "--grid 100 --country FR -- true" "--grid -5 -- true"; do
    tare run $a; echo $?
done
for url in "" host/path ftp://host/x "http://" "https://a b/" "file:///etc/passwd"; do
    tare run --webhook "$url" -- echo started; echo $?
done
for rule in "cpu" "cpu>" "cpu>=80%" "cpu>80% fro 10s" "cpuu>80%" "cpu>80% for" "cpu>80% for 10" "memory>4GB" "disk.busy[sda>80%" \
    "cpu>80% clear 90%" "cpu>80% for 1s for 2s" "gpu<70% while process.waitin>50%" "net>fast"; do
    tare run --alert "$rule" -- true; echo $?
done
