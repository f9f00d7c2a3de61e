# a folder in which no trace can be written
mkdir gone && cd gone && rmdir ../gone
tare doctor --quick | grep -A 2 'trace files  '
