# nowhere to keep the document: found before anything is measured, exit 2
touch taken
for d in /dev/null/x taken /proc/x; do
  tare bench --output-dir $d -- touch ran; echo $?
done
ls
