# a signal that reaches tare alone, as from a CI runner, ends the launch under way too
cat >go.py <<'PY'
import os, signal, subprocess, time

for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    p = subprocess.Popen(["tare", "bench", "--repeat", "3", "--no-save", "--no-history", "--", "sh", "-c",
                          "echo $$ >pid; exec sleep 321"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    while not os.path.exists("pid") or not open("pid").read().strip(): time.sleep(0.01)
    p.send_signal(which)
    last = p.communicate(timeout=30)[0].decode().splitlines()[-1]
    os.remove("pid")
    print(which.name, p.returncode, last)
PY
python3 go.py
