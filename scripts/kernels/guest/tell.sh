# How a step is run and told. Sourced.
# shellcheck shell=bash

# say NAME STATUS WORDS: the line that is judged, and the same for the reader of the console.
say() {
    local words=${3//[$'\t\n\r']/ }
    printf '%s\t%s\t%s\n' "$1" "$2" "$words" >&9
    printf '=== %s: %s: %s\n' "$1" "$2" "${words:0:200}"
}

# run SECONDS COMMAND...: its output is in $output, and on the console; its status in $status.
# Seconds are the guest's.
run() {
    local seconds=$1 words
    shift
    words=$*
    echo
    echo "--- ${words:0:160} [up $(cut -d' ' -f1 /proc/uptime) s]"
    # A function of ours is run by a shell of its own, so that timeout can end it.
    timeout -k 5 "$seconds" bash -c '"$@"' bash "$@" \
        > /run/test/output 2> /run/test/said < /dev/null
    status=$?
    output=$(cat /run/test/output)
    said=$(tail -c 4000 /run/test/said)
    tail -c 6000 /run/test/output
    printf '%s\n' "$said"
    # Statuses of timeout(1): coreutils', of what had to be killed, and busybox's.
    case $status in 124 | 137 | 143) said="no end after $seconds s" ;; esac
}

# settle NAME WORDS: says how what was just run has ended. xcpnet ends with 2 where it cannot do
# something and has left nothing half-done, and tells why.
settle() {
    case $status in
        0) say "$1" ok "$2" ;;
        2) say "$1" refused "$(last)" ;;
        *) say "$1" FAILED "status $status: $(last)" ;;
    esac
}

# The end of what it said, and where it said nothing of what it printed.
last() { printf '%s\n%s\n' "$output" "$said" | grep . | tail -n 4 | tail -c 600; }

# step NAME SECONDS COMMAND...: told with the last line that it printed.
step() {
    local name=$1
    shift
    run "$@"
    settle "$name" "$(printf '%s\n' "$output" | grep . | tail -n 1)"
    return "$status"
}

# report NAME SECONDS COMMAND...: told with everything it printed, for the host to read.
report() {
    local name=$1
    shift
    run "$@"
    settle "$name" "$output"
    return "$status"
}

# after NAME OTHER: a step that has nothing to work on where another has not been done.
after() { say "$1" "not done" "after $2"; }
