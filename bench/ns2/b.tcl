# B: two bottlenecks in a row (the topology of iXCP's first figure): 155 then 100 Mbit/s, 20 ms each. `n` long flows cross both, one short flow
# only the first. XCP does not fill the first link; the short flow gets less than its max-min share of 55 Mbit/s.
source [file join [file dirname [info script]] lib.tcl]

array set opt {seed 1 n 4 duration 100 from 50 limit 2000}
parse_args
tune_headers
set ns [new Simulator]
seed_random $opt(seed)

set a [$ns node]
set b [$ns node]
set c [$ns node]
make_link $a $b 155e6 20ms XCP $opt(limit)
make_link $b $c 100e6 20ms XCP $opt(limit)
set flows [list [make_flow Agent/TCP/Reno/XCP $a $b]]
for {set i 0} {$i < $opt(n)} {incr i} {
    lappend flows [make_flow Agent/TCP/Reno/XCP $a $c]
}
# Starts are spread over a second: in one node at one instant they would all be in step for ever.
set spread [new RandomVariable/Uniform]
$spread set min_ 0.0
$spread set max_ 1.0
foreach tcp $flows {
    $ns at [$spread value] "[$tcp set ftp_] start"
}
watch first $a $b 155e6 0.01
watch second $b $c 100e6 0.01

# The short flow's share is its rate on the wire (1050 bytes for each 1000 of payload) over what max-min fairness would give it.
proc finish {} {
    global opt
    set rates [goodputs]
    puts [format {{"scenario":"B","seed":%d,"n":%d,"links":{"first":%s,"second":%s},"short_share":%.5f,"jain_long":%.6f}} $opt(seed) $opt(n) \
        [link_json first] [link_json second] [expr {[lindex $rates 0] * 1.05 / 55e6}] [jain [lrange $rates 1 end]]]
    exit 0
}
$ns at $opt(from) mark_begin
$ns at $opt(duration) finish
$ns run
