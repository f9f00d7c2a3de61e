# the help is the page's first block
tare inspect -h
