# A: four XCP flows on 10 Mbit/s with a round trip of 500 ms, 1 ms access on each side; limit 1190 packets (2 BDP).
# Prints the summary over `from`..`duration`, the utilisation of the whole run, the largest queue of the start, and the last moment at which
# any window was more than 5 % away from the fair share of the bandwidth-delay product.
source [file join [file dirname [info script]] lib.tcl]

array set opt {seed 1 flows 4 rate 10e6 duration 100 from 50 limit 1190}
parse_args
tune_headers
set ns [new Simulator]
seed_random $opt(seed)

set r [$ns node]
set d [$ns node]
make_link $r $d $opt(rate) 248ms XCP $opt(limit)
set flows {}
for {set i 0} {$i < $opt(flows)} {incr i} {
    set s [$ns node]
    set t [$ns node]
    make_link $s $r 100e6 1ms XCP $opt(limit)
    make_link $d $t 100e6 1ms XCP $opt(limit)
    lappend flows [make_flow Agent/TCP/Reno/XCP $s $t]
    $ns at 0.0 "[[lindex $flows end] set ftp_] start"
}
watch bottleneck $r $d $opt(rate)

set fair [expr {$opt(rate) * 0.5 / 8 / 1050 / $opt(flows)}]
set last_outside 0.0
proc sample_windows {} {
    global ns flows fair last_outside
    foreach tcp $flows {
        if {abs([$tcp set cwnd_] - $fair) > 0.05 * $fair} {
            set last_outside [$ns now]
        }
    }
    $ns at [expr {[$ns now] + 0.1}] sample_windows
}

proc finish {} {
    global mon opt start_max last_outside
    set whole [expr {8.0 * [departed bottleneck] / $opt(duration) / $opt(rate)}]
    set rates [goodputs]
    puts [format {{"scenario":"A","seed":%d,"links":{"bottleneck":%s},"whole_utilisation":%.6f,"start_queue_max":%d,"settled_at":%.1f,"goodput":%s,"jain":%.7f}} \
        $opt(seed) [link_json bottleneck] $whole $start_max $last_outside [json_list $rates] [jain $rates]]
    exit 0
}
$ns at 0.05 sample_windows
$ns at $opt(from) {
    set start_max [expr {int($mon(bottleneck,max))}]
    mark_begin
}
$ns at $opt(duration) finish
$ns run
