# One 802.11 scenario in ns-2.35; prints one line of JSON on stdout.
#
#   ns wireless.tcl -topology chain -hops 4 -window 2 -sink delack -routing frozen -seed 1
#
# Options and defaults are in `opt` below. With `-routing frozen` DSDV converges first, then its
# period is set beyond the end of the run, so that no routing packet and no route change happens
# while the flows run (README.md says how this was checked). Nothing is traced unless -trace FILE.

array set opt {
    topology chain  hops 4  spacing 200  lanes 400  range ""  sense ""  basic 1  queue 49
    window 32  sink delack  transport Newreno  routing frozen
    seed 1  duration 120  start -1  trace ""
    nodes ""  flows ""  movement ""  headers once  mss 1460
}
foreach {key value} $argv {
    set name [string range $key 1 end]
    if {![info exists opt($name)]} { puts stderr "unknown option $key"; exit 2 }
    set opt($name) $value
}

# ---- topology: positions of nodes, and flows {source destination start-offset} ------------------

set places {}
set flows {}
set stretch {}    ;# {time x-factor y-factor}: the plane while routes are found
set traffic {}    ;# {source destination start} of 512-byte packets at 4 per second

proc place {x y} { global places; lappend places [list $x $y] }
proc flow {from to {offset 0}} { global flows; lappend flows [list $from $to $offset] }

# A CSV file with a header, as a list of {key value key value ...}.
proc read_csv {name} {
    set in [open $name]
    set keys [split [gets $in] ,]
    set rows {}
    while {[gets $in line] >= 0} {
        set row {}
        foreach key $keys value [split $line ,] { lappend row $key $value }
        lappend rows $row
    }
    close $in
    return $rows
}

# a movement file places its nodes itself
proc count_nodes {name} {
    set in [open $name]
    while {[gets $in line] >= 0} {
        if {[regexp {^\$node_\(\d+\) set X_ } $line]} { place 0 0 }
    }
    close $in
}

set d $opt(spacing)
switch $opt(topology) {
    chain {
        for {set i 0} {$i <= $opt(hops)} {incr i} { place [expr {$i*$d}] 0 }
        flow 0 $opt(hops)
    }
    cross {
        # 0..4 from left to right; 5,6 below and 7,8 above the shared middle node 2
        for {set i 0} {$i < 5} {incr i} { place [expr {$i*$d}] [expr {2*$d}] }
        foreach i {0 1 3 4} { place [expr {2*$d}] [expr {$i*$d}] }
        flow 0 4
        flow 5 8
    }
    parallel {
        foreach y [list 0 $opt(lanes)] {
            for {set i 0} {$i < 5} {incr i} { place [expr {$i*$d}] $y }
        }
        flow 0 4
        flow 5 9
    }
    grid {
        # node 5*row+column
        for {set r 0} {$r < 5} {incr r} {
            for {set c 0} {$c < 5} {incr c} { place [expr {$c*$d}] [expr {$r*$d}] }
        }
        foreach r {0 2 4} { flow [expr {5*$r}] [expr {5*$r + 4}] }
        foreach c {0 2 4} { flow $c [expr {20 + $c}] }
        # Only here is there more than one path between two nodes, and DSDV believes a newer sequence
        # number even from a detour. So it first sees the rows alone and then the columns alone.
        if {$opt(routing) eq "frozen"} { set stretch {0.0 1 50  40.0 50 1  89.0 1 1} }
    }
    three-parallel {
        for {set i 0} {$i < 3} {incr i} {
            place 0 [expr {$i*$opt(lanes)}]
            place $d [expr {$i*$opt(lanes)}]
            flow [expr {2*$i}] [expr {2*$i + 1}]
        }
        # Lanes in range of each other offer detours: apart, as in the grid, while routes are found.
        if {$opt(routing) eq "frozen" && $opt(range) ne "" && $opt(lanes) <= $opt(range)} {
            set stretch {0.0 1 50  89.0 1 1}
        }
    }
    hidden - exposed - exposed-outward {
        for {set i 0} {$i < 4} {incr i} { place [expr {$i*$d}] 0 }
        switch $opt(topology) {
            hidden          { flow 0 1; flow 3 2 }
            exposed         { flow 0 1; flow 2 3 }
            exposed-outward { flow 1 0; flow 2 3 }
        }
    }
    files {
        if {$opt(movement) ne ""} { count_nodes $opt(movement) }
        if {$opt(nodes) ne ""} {
            foreach row [read_csv $opt(nodes)] {
                array set node $row
                place $node(x_m) $node(y_m)
            }
        }
        foreach row [read_csv $opt(flows)] {
            array set entry [concat {kind bulk start_s 0} $row]
            # a node is called n and its number
            set ends [list [string range $entry(src) 1 end] [string range $entry(dst) 1 end]]
            if {$entry(kind) eq "cbr"} {
                lappend traffic [concat $ends $entry(start_s)]
            } else {
                eval flow $ends $entry(start_s)
            }
        }
    }
    default { puts stderr "unknown topology $opt(topology)"; exit 2 }
}
set count [llength $places]
if {$opt(start) < 0} {
    # frozen: DSDV needs time to converge
    set opt(start) [expr {$opt(routing) eq "frozen" ? 120.0 : 1.0}]
}
set stop [expr {$opt(start) + $opt(duration)}]

# ---- radio and MAC ------------------------------------------------------------------------------

Mac/802_11 set dataRate_ 2Mb
Mac/802_11 set basicRate_ ${opt(basic)}Mb
Mac/802_11 set RTSThreshold_ 0
Phy/WirelessPhy set freq_ 914e6
Phy/WirelessPhy set CPThresh_ 10.0
Phy/WirelessPhy set RXThresh_ 3.652e-10
Phy/WirelessPhy set CSThresh_ 1.559e-11
Phy/WirelessPhy set Pt_ 0.28183815
# What arrives over two-ray ground beyond the crossover (86 m) from antennas 1.5 m high.
proc power_at {metres} { return [expr {0.28183815 * pow(1.5, 4) / pow($metres, 4)}] }
if {$opt(range) ne ""} { Phy/WirelessPhy set RXThresh_ [power_at $opt(range)] }
if {$opt(sense) ne ""} { Phy/WirelessPhy set CSThresh_ [power_at $opt(sense)] }

if {$opt(routing) eq "frozen"} {
    Agent/DSDV set use_mac_ 0
    Agent/DSDV set perup_ 5
    Agent/DSDV set wst0_ 0
    Agent/DSDV set min_update_periods_ 1000000
    if {$opt(headers) eq "once"} {
        # DSDV of ns-2 adds 20 bytes for IP although TCP already counted them; its AODV does not.
        # Count TCP's header only, so that a full segment is 1500 bytes above the MAC and an ACK 40.
        Agent/TCP set tcpip_base_hdr_size_ 20
        Agent/TCPSink set packetSize_ 20
    }
}
array set agents {frozen DSDV  aodv AODV  dsr DSR}
set agent $agents($opt(routing))
# ns-2's DSR takes packets back out of the queue, and needs one that lets it
set queue [expr {$agent eq "DSR" ? "CMUPriQueue" : "Queue/DropTail/PriQueue"}]

set ns_ [new Simulator]
$defaultRNG seed $opt(seed)
# the agents of ns-2 schedule nothing before this point, so the seed governs the whole run

if {$opt(trace) ne ""} {
    set tracing ON
    $ns_ trace-all [open $opt(trace) w]
} else {
    # Nodes insist on a trace object for dropped packets: give them the agent that only frees them.
    set tracing OFF
    proc cmu-trace {kind layer node} { return [[Simulator instance] set nullAgent_] }
    Node/MobileNode instproc mobility-trace {kind layer} {
        return [[Simulator instance] set nullAgent_]
    }
}

set width 1.0
foreach p $places {
    foreach v $p { if {$v + 1 > $width} { set width [expr {$v + 1.0}] } }
}
if {$opt(movement) ne ""} { set width 1001.0 }
if {$stretch ne ""} { set width [expr {50*$width}] }
set topo [new Topography]
$topo load_flatgrid $width $width
set god_ [create-god $count]

$ns_ node-config -adhocRouting $agent -llType LL -macType Mac/802_11 \
    -ifqType $queue -ifqLen [expr {$opt(queue) + 1}] -antType Antenna/OmniAntenna \
    -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $topo \
    -agentTrace $tracing -routerTrace $tracing -macTrace $tracing -movementTrace OFF

for {set i 0} {$i < $count} {incr i} {
    set node_($i) [$ns_ node]
    $node_($i) random-motion 0
    $node_($i) set X_ [lindex $places $i 0]
    $node_($i) set Y_ [lindex $places $i 1]
    $node_($i) set Z_ 0.0
}
if {$opt(movement) ne ""} { source $opt(movement) }

proc lay_out {x_factor y_factor} {
    global places node_
    for {set i 0} {$i < [llength $places]} {incr i} {
        $node_($i) set X_ [expr {[lindex $places $i 0]*$x_factor}]
        $node_($i) set Y_ [expr {[lindex $places $i 1]*$y_factor}]
    }
}
foreach {at x_factor y_factor} $stretch { $ns_ at $at "lay_out $x_factor $y_factor" }

# ---- flows --------------------------------------------------------------------------------------

set sink_class Agent/TCPSink
if {$opt(transport) eq "Sack1"} { append sink_class /Sack1 }
if {$opt(sink) eq "delack"} { append sink_class /DelAck }

set i 0
foreach f $flows {
    foreach {from to offset} $f break
    set tcp($i) [new Agent/TCP/$opt(transport)]
    set sink($i) [new $sink_class]
    $tcp($i) set packetSize_ $opt(mss)
    $tcp($i) set window_ $opt(window)
    $tcp($i) set fid_ $i
    $ns_ attach-agent $node_($from) $tcp($i)
    $ns_ attach-agent $node_($to) $sink($i)
    $ns_ connect $tcp($i) $sink($i)
    set ftp($i) [new Application/FTP]
    $ftp($i) attach-agent $tcp($i)
    $ns_ at [expr {$opt(start) + $offset}] "$ftp($i) start"
    incr i
}

# Frozen routes: one small datagram each way along every path, long before the flows start and one
# after the other, so that every ARP table is filled.
proc probe {from to at} {
    global ns_ node_
    set udp [new Agent/UDP]
    set null [new Agent/Null]
    $ns_ attach-agent $node_($from) $udp
    $ns_ attach-agent $node_($to) $null
    $ns_ connect $udp $null
    $ns_ at $at "$udp send 40"
}
if {$opt(routing) eq "frozen"} {
    foreach node [array names node_] {
        $ns_ at 80.0 "[$node_($node) set ragent_] set perup_ 1e9"
    }
    set at 90.0
    foreach f $flows {
        foreach pair [list [lrange $f 0 1] [list [lindex $f 1] [lindex $f 0]]] {
            foreach {from to} $pair break
            probe $from $to $at
            probe $from $to [expr {$at + 1.0}]
            set at [expr {$at + 2.0}]
        }
    }
}

set i 0
foreach c $traffic {
    foreach {from to at} $c break
    set udp($i) [new Agent/UDP]
    set monitor($i) [new Agent/LossMonitor]
    $ns_ attach-agent $node_($from) $udp($i)
    $ns_ attach-agent $node_($to) $monitor($i)
    $ns_ connect $udp($i) $monitor($i)
    set cbr($i) [new Application/Traffic/CBR]
    $cbr($i) set packetSize_ 512
    $cbr($i) set interval_ 0.25
    $cbr($i) set random_ 0
    $cbr($i) attach-agent $udp($i)
    $ns_ at $at "$cbr($i) start"
    incr i
}

# ---- the end ------------------------------------------------------------------------------------

proc object {args} {
    set parts {}
    foreach {key value} $args { lappend parts "\"$key\":$value" }
    return "\{[join $parts ,]\}"
}

proc report {} {
    global opt flows tcp sink traffic monitor
    # Sinks count whole packets as they arrive: the SYN (headers only), then full segments.
    set head [expr {$opt(headers) eq "once" ? 40 : 60}]
    set wire [expr {$opt(mss) + $head}]
    set rows {}
    set i 0
    foreach f $flows {
        set bytes [$sink($i) set bytes_]
        set segments [expr {$bytes > 0 ? ($bytes - $head) / $wire : 0}]
        # ack_ is the number of the last packet acknowledged; the SYN is number 0
        set lag [expr {$segments - [$tcp($i) set ack_]}]
        # DSR gives a packet that it sent twice back with a few bytes too many
        set exact [expr {$opt(routing) eq "dsr" || $bytes == 0 || $bytes == $head + $segments*$wire}]
        if {!$exact || $lag < 0 || $lag > $opt(window)} {
            puts stderr "flow $i: sink ($bytes bytes) and sender (ack [$tcp($i) set ack_]) disagree"
            exit 1
        }
        set span [expr {$opt(duration) - [lindex $f 2]}]
        lappend rows [object id $i src [lindex $f 0] dst [lindex $f 1] \
            goodput_bps [format %.1f [expr {$segments*$opt(mss)*8.0/$span}]] \
            bytes_received [expr {$segments*$opt(mss)}] segments_sent [$tcp($i) set ndatapack_] \
            retransmissions [$tcp($i) set nrexmitpack_] timeouts [$tcp($i) set nrexmit_]]
        incr i
    }
    set other {}
    for {set i 0} {$i < [llength $traffic]} {incr i} {
        set c [lindex $traffic $i]
        lappend other [object src [lindex $c 0] dst [lindex $c 1] \
            packets_received [$monitor($i) set npkts_]]
    }
    puts [object flows "\[[join $rows ,]\]" cbr "\[[join $other ,]\]"]
    exit 0
}

$ns_ at $stop report
$ns_ run
