# The steps that each kernel is put through, one after another; which of them it must be able to
# do is not known here. Sourced by init.
# shellcheck shell=bash

# Every function is exported, so that a shell of its own can run it against the clock.
set -a
for part in tell left endpoint router lab proxy tests; do
    # shellcheck source=/dev/null
    . "/steps/$part.sh"
done

doctor() {
    # It ends with 1 where something is missing, and has told then, too.
    xcpnet doctor "$@" || [ $? = 1 ]
}
set +a

# Comes with a kernel as a module, and what is there is compared before and after.
modprobe tcp_bbr 2> /dev/null
# shellcheck disable=SC2034  # left reads it
before=$(snapshot)
# Set by the steps of endpoint and router.
export works=

step doctor-table 120 doctor
report doctor 120 doctor --json
left doctor

endpoint_steps
left endpoint
router_steps
left router
lab_steps
left lab
proxy_steps
left proxy
test_steps
left tests
kernel_log
