# Commands of the Python package are not this program's: it says where they are, also when they are misspelt.
tare functions script.py || echo $?
tare functoins || echo $?
tare help nli-batch || echo $?
