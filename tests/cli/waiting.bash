# SPDX-License-Identifier: MIT
# waiting.bash - wait for what happened, not for a time that a busy machine does not keep. The runner's own limit ends a
# wait in vain.

lines() { # FILE N: it has that many lines: a command under test writes one at each of its runs
    until [ -e "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]; do sleep 0.05; done
}

cpu() { # PID SECONDS: the process had the processor for so long
    local stat field
    while stat=$(<"/proc/$1/stat"); do
        read -ra field <<<"${stat##*) }"
        ((field[11] + field[12] >= $2 * $(getconf CLK_TCK))) && break
        sleep 0.05
    done
}
