# a signal while a revision is being built: the build ends with all it started, and no folder stays
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
git init -q -b main repo && cd repo
printf '#!/bin/sh\n' >prog; chmod +x prog; git add prog; git commit -qm one
cat >../go.py <<'PY'
import os, signal, subprocess, sys, time

for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    # what is under way is known by a file, not by waiting
    line = "echo $$ >../../../pid; sh -c 'sleep 321; true'; true"
    p = subprocess.Popen(["tare", "compare", "--ab-rev", "HEAD..HEAD", "--build", line, "--", "./prog"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    while not os.path.exists("pid") or not open("pid").read().strip(): time.sleep(0.01)
    group = int(open("pid").read())
    os.remove("pid")
    p.send_signal(which)
    last = p.communicate(timeout=60)[0].decode().splitlines()[-1]
    alive = "the build goes on"
    for _ in range(500): # the last of it may still be waited for by init
        try:
            os.killpg(group, 0)
            time.sleep(0.01)
        except ProcessLookupError:
            alive = "nothing goes on"
            break
    print(which.name, p.returncode, last, "-", alive)
PY
python3 ../go.py
git worktree list | wc -l
ls tare-results | wc -l
