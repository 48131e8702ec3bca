# The same path under XCP and under cubic, on this kernel's TCP. Sourced.
# shellcheck shell=bash

lab() { xcpnet run /steps/lab.toml --on linux --json --variant "$1"; }

lab_steps() {
    report lab-xcp 400 lab XCP
    report lab-cubic 400 lab cubic
}
