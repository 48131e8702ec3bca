# D: flows leave (second figure of the XCP-IR paper): 150 Mbit/s, 80 ms, 10 flows, 100 more at 4 s, which stop at 8 s.
# Prints the utilisation over 8-8.5 s, when the link is back at .95 (the end of the last window of 10 ms below it, 8-10 s), and how much link time
# was lost from 8 s until then.
source [file join [file dirname [info script]] lib.tcl]

array set opt {seed 1 limit 10000}
parse_args
tune_headers
set ns [new Simulator]
seed_random $opt(seed)

# One 40 ms link; the two access links carry no delay worth the name, so the round trip is 80 ms.
set r [$ns node]
set d [$ns node]
set s [$ns node]
set t [$ns node]
make_link $s $r 1e9 1ms XCP $opt(limit)
make_link $r $d 150e6 38ms XCP $opt(limit)
make_link $d $t 1e9 1ms XCP $opt(limit)
set flows {}
for {set i 0} {$i < 110} {incr i} {
    set tcp [make_flow Agent/TCP/Reno/XCP $s $t]
    lappend flows $tcp
    if {$i < 10} {
        $ns at 0.0 "[$tcp set ftp_] start"
    } else {
        $ns at 4.0 "[$tcp set ftp_] start"
        $ns at 8.0 "[$tcp set ftp_] stop"
    }
}
watch bottleneck $r $d 150e6

set samples {}
set last_bytes -1
proc sample_utilisation {} {
    global ns mon samples last_bytes
    set bytes [departed bottleneck]
    if {$last_bytes >= 0} {
        lappend samples [expr {8.0 * ($bytes - $last_bytes) / 0.01 / 150e6}]
    }
    set last_bytes $bytes
    $ns at [expr {[$ns now] + 0.01}] sample_utilisation
}

proc finish {} {
    global opt samples
    set back 8.0
    set lost 0.0
    set index 0
    foreach u $samples {
        incr index
        if {$u < 0.95} {
            set back [expr {8.0 + 0.01 * $index}]
        }
    }
    set index 0
    set half 0.0
    foreach u $samples {
        incr index
        if {8.0 + 0.01 * $index <= $back + 1e-9} {
            set lost [expr {$lost + 0.01 * (1.0 - $u)}]
        }
        if {$index <= 50} {
            set half [expr {$half + $u / 50}]
        }
    }
    puts [format {{"scenario":"D","seed":%d,"links":{"bottleneck":%s},"utilisation_after":%.4f,"back_at":%.2f,"lost_ms":%.0f}} $opt(seed) \
        [link_json bottleneck] $half $back [expr {1000 * $lost}]]
    exit 0
}
$ns at 0.0 mark_begin
$ns at 8.0 sample_utilisation
$ns at 10.005 finish
$ns run
