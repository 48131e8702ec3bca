# TCP at the bottleneck of scenario A: 10 Mbit/s, round trip 500 ms, four flows, buffer 2 BDP (1190 packets), under FIFO or RED.
# RED as the 2005 Linux study set it: thresholds at 1/3 and 2/3 of the buffer, drop probability .1 at the upper one.
#
# Timers are RFC 6298's, with timestamps and a clock of 1 ms. By default ns-2 times one segment a round trip with a clock of 10 ms and waits at least .2 s:
# here, where the round trip triples while slow start fills the buffer, its timer fires on packets that are only queued, and slow start ends by that.
# Starts are spread over 5 s: windows that double in step make all runs one and the same.
source [file join [file dirname [info script]] lib.tcl]

array set opt {seed 1 queue DropTail agent Agent/TCP/Newreno duration 100 from 20 limit 1190 flows 4 gentle true spread 5.0}
parse_args
tune_headers
set ns [new Simulator]
seed_random $opt(seed)
Agent/TCP set timestamps_ true
Agent/TCP set tcpTick_ 0.001
Agent/TCP set minrto_ 1.0
Agent/TCPSink set ts_echo_rfc1323_ true
Queue/RED set thresh_ [expr {$opt(limit) / 3.0}]
Queue/RED set maxthresh_ [expr {$opt(limit) * 2.0 / 3.0}]
Queue/RED set linterm_ 10
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set gentle_ $opt(gentle)

set r [$ns node]
set d [$ns node]
make_link $r $d 10e6 248ms $opt(queue) $opt(limit)
set flows {}
set spread [new RandomVariable/Uniform]
$spread set min_ 0.0
$spread set max_ $opt(spread)
for {set i 0} {$i < $opt(flows)} {incr i} {
    set s [$ns node]
    set t [$ns node]
    make_link $s $r 100e6 1ms DropTail 10000
    make_link $d $t 100e6 1ms DropTail 10000
    lappend flows [make_flow $opt(agent) $s $t]
    $ns at [$spread value] "[[lindex $flows end] set ftp_] start"
}
watch bottleneck $r $d 10e6

proc finish {} {
    global opt mon start_drops start_max
    set rates [goodputs]
    puts [format {{"scenario":"tcp","seed":%d,"queue":"%s","agent":"%s","links":{"bottleneck":%s},"start_drops":%d,"start_queue_max":%d,"goodput":%s,"jain":%.5f}} \
        $opt(seed) $opt(queue) $opt(agent) [link_json bottleneck] $start_drops $start_max [json_list $rates] [jain $rates]]
    exit 0
}
$ns at $opt(from) {
    set start_drops [expr {int([$mon(bottleneck,q) set pdrops_])}]
    set start_max [expr {int($mon(bottleneck,max))}]
    mark_begin
}
$ns at $opt(duration) finish
$ns run
