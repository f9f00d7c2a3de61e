# tare alone prints its help and exits as an unfinished command
tare
