# The proxy: as a user's for SOCKS, then on two gateways, with and without --confirm. Sourced.
# shellcheck shell=bash

# pair NS DEVICE ADDRESS NS DEVICE ADDRESS: a cable.
pair() {
    ip -n "$1" link add "$2" type veth peer name "$5" netns "$4"
    ip -n "$1" addr add "$3" dev "$2"
    ip -n "$4" addr add "$6" dev "$5"
    ip -n "$1" link set "$2" up
    ip -n "$4" link set "$5" up
}

# client - near - far - server, and a file at the server.
gateways() {
    local space
    for space in client near far server; do
        ip netns add "$space"
        ip -n "$space" link set lo up
    done
    pair client eth0 10.1.0.2/24 near lan 10.1.0.1/24
    pair near wan 10.2.0.1/24 far wan 10.2.0.2/24
    pair far lan 10.3.0.1/24 server eth0 10.3.0.2/24
    ip -n client route add default via 10.1.0.1
    ip -n server route add default via 10.3.0.1
    ip -n near route add default via 10.2.0.2
    ip -n far route add default via 10.2.0.1
    for space in near far; do
        ip netns exec "$space" sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
    done
    dd if=/dev/urandom of=/run/test/file bs=64k count=64 2> /dev/null
    ip netns exec server httpd -f -p 10.3.0.2:80 -h /run/test &
    server=$!
    # Neighbours are found before anything is measured by them.
    ip netns exec client curl -sS -m 30 --retry 5 --retry-connrefused -o /dev/null \
        http://10.3.0.2/file
}

no_gateways() {
    local space
    kill "$server"
    wait "$server"
    for space in client near far server; do ip netns del "$space"; done
}

# up GATEWAY [--confirm]
up() {
    local space=$1
    shift
    xcpnet pep up --netns "$space" --wan wan --lan lan --rate 20mbit --rtt 20ms "$@"
}

# there_and_back: the file from the server, and to it, to the byte, through both gateways.
there_and_back() {
    local listener
    ip netns exec client curl -sS -m 60 -o /run/test/got http://10.3.0.2/file || return 1
    cmp /run/test/got /run/test/file || return 1
    ip netns exec server nc -l -p 81 > /run/test/back < /dev/null &
    listener=$!
    sleep 1
    ip netns exec client bash -c 'cat /run/test/file > /dev/tcp/10.3.0.2/81' || return 1
    wait "$listener"
    cmp /run/test/back /run/test/file
}

# Where nobody listens the client is to hear just that.
refused() {
    ip netns exec client curl -sS -m 20 http://10.3.0.2:82/
    [ $? = 7 ]
}

proxied() {
    { up near "$@" && up far "$@"; } >&2 || return
    there_and_back || return 1
    [ "$1" != --confirm ] || refused || return 1
    xcpnet pep show --netns near --json && xcpnet pep show --netns far --json
}

take_down() {
    xcpnet pep down --netns near --now && xcpnet pep down --netns far --now
}

socks() {
    local server proxy status
    httpd -f -p 127.0.0.1:8080 -h /run/test &
    server=$!
    # The server is on the gateway itself, which is refused unless it is allowed.
    su -s /bin/sh nobody -c "exec xcpnet pep run --listen 127.0.0.1:1080 \
        --allow-target 127.0.0.0/8 --name socks" &
    proxy=$!
    curl -sS -m 60 --retry 20 --retry-connrefused --retry-delay 1 \
        --socks5-hostname 127.0.0.1:1080 -o /run/test/got http://127.0.0.1:8080/file &&
        cmp /run/test/got /run/test/file
    status=$?
    kill "$proxy" "$server"
    wait
    return "$status"
}

proxy_steps() {
    local before how
    gateways
    step proxy-socks 90 socks
    before=$(snapshot)
    for how in "" --confirm; do
        report "proxy-gateways${how#-}" 200 proxied $how
        run 60 take_down
        left "proxy-gateways${how#-}" "$before"
    done
    no_gateways
}
