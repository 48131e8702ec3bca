# This project's own tests of the kernel: those of xcp-linux, as `make test` builds them. Sourced.
# shellcheck shell=bash disable=SC2154  # output and status are run's

test_steps() {
    local path count passed failed words
    # In software random packets take ten times as long.
    export XCPNET_CASES_DIVIDED_BY=10
    for path in /tests/*; do
        [ -e "$path" ] || break
        if [ -z "$works" ]; then
            after "tests-${path##*/}" "neither endpoint nor router"
            continue
        fi
        # A test of traffic takes 22 s of the guest's, most of them to load what it tests.
        count=$("$path" --list 2> /dev/null | grep -c ': test$')
        run $((30 * (count + 10))) "$path" --nocapture --test-threads 1
        passed=$(printf '%s\n' "$output" | sed -n 's/^test result: .* \([0-9]*\) passed.*/\1/p')
        failed=$(printf '%s\n' "$output" | sed -n 's/^test result: .* \([0-9]*\) failed.*/\1/p')
        grep -h SKIPPED /run/test/output /run/test/said > /run/test/skipped
        words="passed ${passed:-0} failed ${failed:-?} skipped $(grep -c . /run/test/skipped)$(
            grep -h 'panicked at' /run/test/output /run/test/said | head -n 3 | sed 's/^/; /')"
        # What has ended without a count: how, and in which test.
        [ "$passed" ] || words+="; status $status, $(last_of "$said"), in $(
            last_of "$(sed -n 's/^test \([^ ]*\) \.\.\..*/\1/p' /run/test/output)")"
        say "tests-${path##*/}" "$([ "$status" = 0 ] && echo ok || echo FAILED)" "$words"
    done
}

# The last line of a text that has anything in it.
last_of() { printf '%s\n' "$1" | grep . | tail -n 1; }
