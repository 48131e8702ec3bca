# What is on the machine, and whether it is as before. Sourced.
# shellcheck shell=bash

# Everything that xcpnet puts anywhere, a line for each thing.
snapshot() {
    local space sysctl
    bpf-objects | sort | sed 's/^/bpf: /'
    find /sys/fs/bpf -mindepth 1 | sed 's/^/kept: /' | sort
    find /sys/fs/cgroup -mindepth 1 -type d | sed 's/^/control group: /' | sort
    find /run/xcpnet /tmp /dev/shm -mindepth 1 2> /dev/null | sed 's/^/file: /' | sort
    sed 's/^/congestion controls: /' /proc/sys/net/ipv4/tcp_available_congestion_control
    sed 's/^/congestion control: /' /proc/sys/net/ipv4/tcp_congestion_control
    pidof xcpnet | sed 's/^/processes: /'
    cut -d' ' -f1,2,3 /proc/mounts | sed 's/^/mount: /'
    ip netns list | sed 's/^/namespace: /'
    for space in "" $(ip netns list | cut -d' ' -f1); do
        # shellcheck disable=SC2016  # the inner shell's
        within "$space" bash -c '
            ip -o link show | cut -d" " -f2 | sed "s/^/device: /"
            tc qdisc show | sed "s/^/queue: /"
            for way in ingress egress; do
                for device in $(ls /sys/class/net); do
                    tc filter show dev "$device" "$way" 2> /dev/null | sed "s/^/filter: $device /"
                done
            done
            ip rule show | sed "s/^/rule: /"
            ip -6 rule show | sed "s/^/rule: /"
            # Without those that the kernel makes of its own accord when an address has settled.
            ip route show table all | sed "/fe80::/d; s/^/route: /"
            nft list ruleset 2> /dev/null | sed "s/^/packet filter: /"
        ' | sed "s/^/${space:+$space: }/"
        for sysctl in ipv4/tcp_fastopen ipv4/tcp_tw_reuse core/somaxconn ipv4/tcp_retries2; do
            within "$space" sed "s,^,${space:+$space: }net/$sysctl: ," "/proc/sys/net/$sysctl"
        done
    done
}

# within NAMESPACE COMMAND...: in the guest's own where it has no name.
within() {
    local space=$1
    shift
    if [ -n "$space" ]; then ip netns exec "$space" "$@"; else "$@"; fi
}

# left WHAT [BEFORE]: says whether everything is as it was before. The kernel frees programs in
# its own time, after a grace period or when a socket's last memory goes.
left() {
    local now more i
    for i in 0 1 3 7 15 30; do
        now=$(snapshot)
        [ "$now" = "${2:-$before}" ] && break
        sleep $((i + 1))
    done
    if [ "$now" = "${2:-$before}" ]; then
        say "left-$1" ok "as before, after $i s"
    else
        more=$(diff <(printf '%s\n' "${2:-$before}") <(printf '%s\n' "$now") | grep '^[+-][^+-]')
        echo "$more"
        say "left-$1" FAILED "$(printf '%s\n' "$more" | head -n 8)"
    fi
}

# Whether the kernel has complained of anything.
kernel_log() {
    local found
    found=$(dmesg | grep -E 'WARNING:|BUG:|Oops|protection fault|Call Trace|stall' | head -n 4)
    if [ -z "$found" ]; then
        say kernel-log ok "no warning"
    else
        dmesg | tail -n 60
        say kernel-log FAILED "$found"
    fi
}
