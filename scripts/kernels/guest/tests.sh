# This project's own tests of the kernel: those of xcp-linux, as `make test` builds them. Sourced.
# shellcheck shell=bash disable=SC2154  # output and status are run's

test_steps() {
    local path passed failed
    # In software random packets take ten times as long.
    export XCPNET_CASES_DIVIDED_BY=10
    for path in /tests/*; do
        [ -e "$path" ] || break
        if [ -z "$works" ]; then
            after "tests-${path##*/}" "neither endpoint nor router"
            continue
        fi
        run 900 "$path" --nocapture --test-threads 1
        passed=$(printf '%s\n' "$output" | sed -n 's/^test result: .* \([0-9]*\) passed.*/\1/p')
        failed=$(printf '%s\n' "$output" | sed -n 's/^test result: .* \([0-9]*\) failed.*/\1/p')
        grep -h SKIPPED /run/test/output /run/test/said > /run/test/skipped
        say "tests-${path##*/}" "$([ "$status" = 0 ] && echo ok || echo FAILED)" \
            "passed ${passed:-0} failed ${failed:-?} skipped $(grep -c . /run/test/skipped)$(
                grep -h 'panicked at' /run/test/output /run/test/said | head -n 3 | sed 's/^/; /')"
    done
}
