# Commands of the Python package are run by the Python that there is; also when they are misspelt it is said which they are.
cat >python <<'END'
#!/bin/sh
[ "$1" = -c ] && shift 2
echo "python was asked:" "$@"
exit 7
END
chmod +x python
TARE_PYTHON=./python tare functions script.py --rows 3 -- x; echo $?
TARE_PYTHON=./python tare nli-batch -h; echo $?
TARE_PYTHON=./missing tare lines x.py; echo $?
tare functoins; echo $?
# a Python without the package is told how to get it
PYTHONPATH='' TARE_PYTHON="$(command -v python3)" tare profile 2>&1 | sed 's,/[^ ]*/python3[0-9.]*,PYTHON,g'; echo "${PIPESTATUS[0]}"
