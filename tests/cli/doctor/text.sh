export XDG_CACHE_HOME=$PWD # nothing kept from another day
tare doctor --quick
