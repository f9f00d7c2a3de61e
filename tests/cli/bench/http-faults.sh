# a service that is not there, or is none, is told before there is any load; nothing half-written
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
says() { tare bench "$@" --budget 100ms --timeout 5s 2>&1 >/dev/null | sed "s/:$port/:PORT/"; echo "${PIPESTATUS[0]}"; }
says "http://127.0.0.1:$port/x?key=secret"
says http://no.such.name.invalid/ | sed 's/known: .*/known: WHY/'
says unix:/no/such/socket:/x
says "https://127.0.0.1:$port/"
says "http://127.0.0.1:$port/" --header 'X: env:NOT_SET_ANYWHERE'
says "http://127.0.0.1:$port/" --method BREW
says "http://127.0.0.1:$port/" --rate 5,x
ls
