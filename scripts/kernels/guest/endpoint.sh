# The endpoint, and a transfer that two hosts agree to carry by XCP across a router. Sourced.
# shellcheck shell=bash

# Two hosts and what lies between: a device of this namespace, one of the namespace "far".
two_hosts() {
    ip netns add far
    ip link add near type veth peer name far netns far
    ip addr add 10.9.0.1/24 dev near
    ip -n far addr add 10.9.0.2/24 dev far
    ip -n far link set lo up
    ip link set near up
    ip -n far link set far up
}

no_hosts() {
    ip netns del far
    ip link del near 2> /dev/null
}

# A file, to the byte, by an endpoint that has made offers and a router that has seen packets. The
# server begins now: one that listens in another namespace already answers no offers.
transfer() {
    local server status
    dd if=/dev/urandom of=/run/test/file bs=64k count=32 2> /dev/null
    ip netns exec far httpd -f -p 10.9.0.2:80 -h /run/test &
    server=$!
    sleep 1
    xcpnet router add --netns far dev far capacity 50mbit &&
        curl -sS -m 60 -o /run/test/got http://10.9.0.2/file &&
        cmp /run/test/got /run/test/file &&
        xcpnet endpoint show --json &&
        xcpnet router show --netns far --json
    status=$?
    xcpnet router del --netns far dev far || status=1
    kill "$server"
    wait "$server"
    return "$status"
}

endpoint_steps() {
    two_hosts
    if step endpoint-enable 180 xcpnet endpoint enable; then
        export works=yes
        step endpoint-show 60 xcpnet endpoint show
        report endpoint-transfer 120 transfer
        step endpoint-disable 60 xcpnet endpoint disable
    else
        for name in show transfer disable; do after "endpoint-$name" endpoint-enable; done
    fi
    no_hosts
}
