# Helpers shared by the ns-2 scenarios in this directory: arguments, topology, sampling and one line of JSON.
#
# Written for ns-2.35 (Debian package ns2). Each scenario is run as
#     ns SCENARIO.tcl [name value]...
# and prints exactly one JSON object. Conventions are those of `xcpnet run --json`: rates in bit/s, times in seconds, queues in packets
# without the one in service, utilisation in wire bytes. What ns-2 does differently is listed in docs/reference.md.

# Reads `name value` pairs from the command line into the array `opt`, whose defaults the scenario has set before.
proc parse_args {} {
    global argv opt
    foreach {name value} $argv {
        if {![info exists opt($name)]} {
            puts stderr "unknown argument '$name'; known: [lsort [array names opt]]"
            exit 2
        }
        set opt($name) $value
    }
}

# Drops the packet headers no scenario here uses. ns-2 carries every registered header in every packet, which costs it more than half of its
# speed; must run before the Simulator is made.
proc tune_headers {} {
    remove-all-packet-headers
    add-packet-header IP TCP Flags XCP
}

# A full-duplex link with the same queue discipline both ways. An XCP queue must be told its link's rate, and drops in its inner queues must be
# sent to where a monitor sees them.
proc make_link {a b rate delay kind limit} {
    global ns
    $ns duplex-link $a $b $rate $delay $kind
    $ns queue-limit $a $b $limit
    $ns queue-limit $b $a $limit
    foreach {x y} [list $a $b $b $a] {
        if {$kind eq "XCP"} {
            [[$ns link $x $y] queue] set-link-capacity $rate
        }
    }
}

# An unlimited transfer from `from` to `to`. `agent` is one of ns-2's sender classes; its sink is chosen to match.
proc make_flow {agent from to} {
    global ns
    switch -glob $agent {
        *XCP  { set sink_class Agent/TCPSink/XCPSink }
        *Sack1 { set sink_class Agent/TCPSink/Sack1 }
        default { set sink_class Agent/TCPSink }
    }
    set tcp [new $agent]
    set sink [new $sink_class]
    $ns attach-agent $from $tcp
    $ns attach-agent $to $sink
    $ns connect $tcp $sink
    $tcp set packetSize_ 1000
    $tcp set window_ 100000
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $tcp set ftp_ $ftp
    return $tcp
}

# Watches the queue from `a` to `b`. The monitor and the largest queue seen (polled every `poll` seconds) go under `name`.
proc watch {name a b rate {poll 0.001}} {
    global ns mon
    set mon($name,q) [$ns monitor-queue $a $b ""]
    set mon($name,rate) $rate
    set mon($name,max) 0
    set mon($name,bytes) 0
    set mon($name,last_bytes) 0
    set mon($name,integral) [$mon($name,q) get-pkts-integrator]
    # The inner queues of Queue/XCP have drop targets of their own.
    set link [$ns link $a $b]
    set queue [$link queue]
    if {[$queue info class] eq "Queue/XCP"} {
        foreach i {0 1 2} {
            [$queue set vq_($i)] drop-target [$link set drophead_]
        }
    }
    poll_queue $name $poll
}

proc poll_queue {name poll} {
    global ns mon
    departed $name
    set n [$mon($name,q) set pkts_]
    if {$n > $mon($name,max)} {
        set mon($name,max) $n
    }
    $ns at [expr {[$ns now] + $poll}] "poll_queue $name $poll"
}

# Bytes that have left a watched queue. The monitor's own counter is 32 bits wide, which a gigabit link overruns twice a minute.
proc departed {name} {
    global mon
    set now [expr {int([$mon($name,q) set bdepartures_])}]
    incr mon($name,bytes) [expr {($now - $mon($name,last_bytes)) & 0xffffffff}]
    set mon($name,last_bytes) $now
    return $mon($name,bytes)
}

# Starts the measured period: remembers the counters of every watched link and every flow.
proc mark_begin {} {
    global ns mon flows begin
    set begin(t) [$ns now]
    foreach key [array names mon *,q] {
        set name [string range $key 0 end-2]
        set begin($name,bytes) [departed $name]
        set begin($name,drops) [$mon($key) set pdrops_]
        $mon($name,integral) newpoint [$ns now] [$mon($key) set pkts_]
        set begin($name,integral) [$mon($name,integral) set sum_]
        set mon($name,max) [$mon($key) set pkts_]
    }
    foreach tcp $flows {
        set begin($tcp) [$tcp set ack_]
    }
}

# The summary of one watched link since mark_begin, as JSON.
proc link_json {name} {
    global ns mon begin
    set q $mon($name,q)
    set dt [expr {[$ns now] - $begin(t)}]
    set bytes [expr {[departed $name] - $begin($name,bytes)}]
    $mon($name,integral) newpoint [$ns now] [$q set pkts_]
    set area [expr {[$mon($name,integral) set sum_] - $begin($name,integral)}]
    return [format {{"utilisation":%.6f,"queue_mean":%.3f,"queue_max":%d,"drops":%d}} \
        [expr {8.0 * $bytes / $dt / $mon($name,rate)}] [expr {$area / $dt}] [expr {int($mon($name,max))}] \
        [expr {int([$q set pdrops_] - $begin($name,drops))}]]
}

# Goodput of each flow since mark_begin, bit/s: payload acknowledged.
proc goodputs {} {
    global ns flows begin
    set dt [expr {[$ns now] - $begin(t)}]
    set out {}
    foreach tcp $flows {
        lappend out [expr {8000.0 * ([$tcp set ack_] - $begin($tcp)) / $dt}]
    }
    return $out
}

# Jain's fairness index.
proc jain {rates} {
    set sum 0.0
    set squares 0.0
    foreach x $rates {
        set sum [expr {$sum + $x}]
        set squares [expr {$squares + $x * $x}]
    }
    if {$squares == 0.0} {
        return 1.0
    }
    return [expr {$sum * $sum / ([llength $rates] * $squares)}]
}

# A list of numbers as a JSON array.
proc json_list {numbers {form %.1f}} {
    set out {}
    foreach x $numbers {
        lappend out [format $form $x]
    }
    return "\[[join $out ,]\]"
}

# Seeds the generator that the queues' first timers and the random starts draw from.
proc seed_random {seed} {
    global defaultRNG
    $defaultRNG seed $seed
}
