# C: one flow with a round trip of 220 ms among nine with 20 ms on 1 Gbit/s (Andrew, Low & Wydrowski, "An example of instability in XCP").
# Prints flow 1's mean rate on the wire and the coefficient of variation of that rate over windows of 100 ms.
source [file join [file dirname [info script]] lib.tcl]

array set opt {seed 1 duration 60 from 20 limit 20000}
parse_args
tune_headers
set ns [new Simulator]
seed_random $opt(seed)

set a [$ns node]
set b [$ns node]
set c [$ns node]
make_link $a $b 1e9 10ms XCP $opt(limit)
make_link $b $c 2e9 100ms XCP $opt(limit)
set flows [list [make_flow Agent/TCP/Reno/XCP $a $c]]
for {set i 0} {$i < 9} {incr i} {
    lappend flows [make_flow Agent/TCP/Reno/XCP $a $b]
}
set spread [new RandomVariable/Uniform]
$spread set min_ 0.0
$spread set max_ 0.1
foreach tcp $flows {
    $ns at [$spread value] "[$tcp set ftp_] start"
}
watch bottleneck $a $b 1e9

set samples {}
set last_ack -1
proc sample_rate {} {
    global ns flows samples last_ack
    set ack [[lindex $flows 0] set ack_]
    if {$last_ack >= 0} {
        lappend samples [expr {8400.0 * ($ack - $last_ack) / 0.1}]
    }
    set last_ack $ack
    $ns at [expr {[$ns now] + 0.1}] sample_rate
}

proc finish {} {
    global opt samples
    set n [llength $samples]
    set sum 0.0
    foreach x $samples {
        set sum [expr {$sum + $x}]
    }
    set mean [expr {$sum / $n}]
    set squares 0.0
    foreach x $samples {
        set squares [expr {$squares + ($x - $mean) * ($x - $mean)}]
    }
    puts [format {{"scenario":"C","seed":%d,"links":{"bottleneck":%s},"flow_1_rate":%.0f,"flow_1_cov":%.4f}} $opt(seed) [link_json bottleneck] \
        $mean [expr {sqrt($squares / $n) / $mean}]]
    exit 0
}
$ns at $opt(from) {
    mark_begin
    sample_rate
}
$ns at $opt(duration) finish
$ns run
