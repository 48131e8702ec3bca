# Speed: a dumbbell of three links, 10G, 1G (the bottleneck), 10G, round trip 40 ms, XCP everywhere, no tracing, no monitor.
# `tuned 1` leaves out the packet headers nothing here uses; `tuned 0` is ns-2 as it comes. `scheduler` is one of its event schedulers: Calendar is
# its default, Splay the fastest here (by some 15 %), Map and Heap are slower. Prints the data packets delivered over the wall time of the run itself, the
# building of the topology left out.
source [file join [file dirname [info script]] lib.tcl]

array set opt {seed 1 flows 100 duration 10 tuned 1 scheduler Calendar limit 10000}
parse_args
if {$opt(tuned)} {
    tune_headers
}
set ns [new Simulator]
$ns use-scheduler $opt(scheduler)
seed_random $opt(seed)

foreach name {s r d t} {
    set $name [$ns node]
}
make_link $s $r 10e9 1ms XCP $opt(limit)
make_link $r $d 1e9 18ms XCP $opt(limit)
make_link $d $t 10e9 1ms XCP $opt(limit)
set flows {}
set spread [new RandomVariable/Uniform]
$spread set min_ 0.0
$spread set max_ 0.1
for {set i 0} {$i < $opt(flows)} {incr i} {
    lappend flows [make_flow Agent/TCP/Reno/XCP $s $t]
    $ns at [$spread value] "[[lindex $flows end] set ftp_] start"
}

proc finish {} {
    global opt flows started
    set wall [expr {([clock clicks -milliseconds] - $started) / 1000.0}]
    set packets 0
    foreach tcp $flows {
        incr packets [expr {int([$tcp set ack_]) + 1}]
    }
    puts [format {{"scenario":"speed","flows":%d,"tuned":%d,"data_packets":%d,"wall_s":%.3f,"packets_per_s":%.0f,"utilisation":%.4f}} $opt(flows) $opt(tuned) \
        $packets $wall [expr {$packets / $wall}] [expr {8400.0 * $packets / $opt(duration) / 1e9}]]
    exit 0
}
$ns at $opt(duration) finish
set started [clock clicks -milliseconds]
$ns run
