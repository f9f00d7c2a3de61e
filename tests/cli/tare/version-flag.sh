tare --version | head -n 1 | sed 's/[0-9][0-9.]*/N/'
tare -V | cmp - <(tare version) && echo same
