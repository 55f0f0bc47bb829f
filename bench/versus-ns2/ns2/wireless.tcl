# One 802.11 scenario in ns-2.35; prints one line of JSON on stdout.
#
#   ns wireless.tcl -topology chain -hops 4 -window 2 -sink delack -routing frozen -seed 1
#
# Options and defaults are in `opt` below. With `-routing frozen` DSDV converges first, then its
# period is set beyond the end of the run, so that no routing packet and no route change happens
# while the flows run (README.md says how this was checked). Nothing is traced unless -trace FILE.

array set opt {
    topology chain  hops 4  spacing 200  lanes 400
    window 32  sink delack  transport Newreno  routing frozen
    seed 1  duration 120  start -1  trace ""  csv ""  movement ""  stamp 0
}
foreach {key value} $argv {
    set name [string range $key 1 end]
    if {![info exists opt($name)]} { puts stderr "unknown option $key"; exit 2 }
    set opt($name) $value
}

# ---- topology: positions of nodes, and flows {source destination start-offset} ------------------

set places {}
set flows {}
set traffic {}    ;# {source destination start} of 512-byte packets at 4 per second

proc place {x y} { global places; lappend places [list $x $y] }
proc flow {from to {offset 0}} { global flows; lappend flows [list $from $to $offset] }

proc read_csv {name} {
    set in [open $name]
    while {[gets $in line] >= 0} {
        set part [split $line ,]
        switch [lindex $part 0] {
            node { place [lindex $part 2] [lindex $part 3] }
            flow { flow [lindex $part 2] [lindex $part 3] [lindex $part 4] }
            cbr  { lappend ::traffic [lrange $part 2 4] }
        }
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
    }
    three-parallel {
        for {set i 0} {$i < 3} {incr i} {
            place 0 [expr {$i*$opt(lanes)}]
            place $d [expr {$i*$opt(lanes)}]
            flow [expr {2*$i}] [expr {2*$i + 1}]
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
    csv { read_csv $opt(csv) }
    default { puts stderr "unknown topology $opt(topology)"; exit 2 }
}
set count [llength $places]
if {$opt(start) < 0} {
    # frozen: DSDV needs time to converge
    set opt(start) [expr {$opt(routing) eq "frozen" ? 100.0 : 1.0}]
}
set stop [expr {$opt(start) + $opt(duration)}]

# ---- radio and MAC ------------------------------------------------------------------------------

Mac/802_11 set dataRate_ 2Mb
Mac/802_11 set basicRate_ 1Mb
Mac/802_11 set RTSThreshold_ 0
Phy/WirelessPhy set freq_ 914e6
Phy/WirelessPhy set CPThresh_ 10.0
Phy/WirelessPhy set RXThresh_ 3.652e-10
Phy/WirelessPhy set CSThresh_ 1.559e-11
Phy/WirelessPhy set Pt_ 0.28183815

if {$opt(routing) eq "frozen"} {
    Agent/DSDV set use_mac_ 0
    Agent/DSDV set perup_ 5
    Agent/DSDV set min_update_periods_ 1000000
}
set agent [expr {$opt(routing) eq "frozen" ? "DSDV" : "AODV"}]

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
if {$opt(movement) ne ""} { set width 1001 }
set topo [new Topography]
$topo load_flatgrid $width $width
set god_ [create-god $count]

$ns_ node-config -adhocRouting $agent -llType LL -macType Mac/802_11 \
    -ifqType Queue/DropTail/PriQueue -ifqLen 50 -antType Antenna/OmniAntenna \
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

# ---- flows --------------------------------------------------------------------------------------

switch $opt(transport)-$opt(sink) {
    Sack1-delack { set sink_class TCPSink/Sack1/DelAck }
    Sack1-plain  { set sink_class TCPSink/Sack1 }
    default      { set sink_class [expr {$opt(sink) eq "delack" ? "TCPSink/DelAck" : "TCPSink"}] }
}
set prefix [expr {$opt(transport) eq "Tahoe" ? "TCP" : "TCP/$opt(transport)"}]

set i 0
foreach f $flows {
    foreach {from to offset} $f break
    set tcp($i) [new Agent/$prefix]
    set sink($i) [new Agent/$sink_class]
    $tcp($i) set packetSize_ 1460
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
        $ns_ at 60.0 "[$node_($node) set ragent_] set perup_ 1e9"
    }
    set at 70.0
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

proc report {} {
    global opt flows tcp sink traffic monitor
    # sinks count packets as they arrive: 1460 + 40 by TCP + 20 by the routing agent
    set wire 1520.0
    set rows {}
    set i 0
    foreach f $flows {
        set segments [expr {round([$sink($i) set bytes_] / $wire)}]
        set lag [expr {$segments - ([$tcp($i) set ack_] + 1)}]
        if {$segments * $wire != [$sink($i) set bytes_] || $lag < 0 || $lag > $opt(window)} {
            puts stderr "flow $i: sink and sender disagree ($segments segments, lag $lag)"
            exit 1
        }
        set span [expr {$opt(duration) - [lindex $f 2]}]
        lappend rows [format {{"id":%d,"src":%d,"dst":%d,"goodput_bps":%.1f,"bytes_received":%d,"segments_sent":%d,"retransmissions":%d,"timeouts":%d}} \
            $i [lindex $f 0] [lindex $f 1] [expr {$segments*1460*8/$span}] [expr {$segments*1460}] \
            [$tcp($i) set ndatapack_] [$tcp($i) set nrexmitpack_] [$tcp($i) set nrexmit_]]
        incr i
    }
    set other {}
    for {set i 0} {$i < [llength $traffic]} {incr i} {
        set c [lindex $traffic $i]
        lappend other [format {{"src":%d,"dst":%d,"packets_received":%d}} \
            [lindex $c 0] [lindex $c 1] [$monitor($i) set npkts_]]
    }
    puts [format {{"topology":"%s","hops":%d,"window":%d,"sink":"%s","transport":"%s","routing":"%s","seed":%d,"duration_s":%g,"flows":[%s],"cbr":[%s]}} \
        $opt(topology) $opt(hops) $opt(window) $opt(sink) $opt(transport) $opt(routing) \
        $opt(seed) $opt(duration) [join $rows ,] [join $other ,]]
    exit 0
}

$ns_ at $stop report
$ns_ run
