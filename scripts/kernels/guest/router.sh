# A router by every hook and shaper, and with a queue for the others: added, shown, removed. Sourced.
# shellcheck shell=bash

router() {
    xcpnet router add dev near capacity 10mbit hook "$1" shaper "$2" "${@:3}" || return
    local status=0 shown
    shown=$(xcpnet router show dev near) || status=$?
    tc qdisc show dev near
    ip -d link show dev near | head -n 1
    xcpnet router del dev near || status=$?
    # A shaper that stays would show here.
    tc qdisc show dev near | grep -E 'htb|tbf|clsact' && status=1
    printf '%s\n' "$shown"
    # It says what it has, and that is what it was told to take.
    shown=${shown%%$'\n'*}
    [[ $shown == *"$1" ]] || status=1
    [ "$2" = none ] || [[ $shown == *" $2,"* ]] || status=1
    [ $# -eq 2 ] || [[ $shown == *"others $4,"* ]] || status=1
    echo "$shown"
    return "$status"
}

router_steps() {
    local hook shaper
    two_hosts
    for hook in tcx clsact; do
        for shaper in htb tbf none; do
            step "router-$hook-$shaper" 120 router "$hook" "$shaper" && export works=yes
        done
        step "router-$hook-others" 120 router "$hook" htb others fair
    done
    no_hosts
}
