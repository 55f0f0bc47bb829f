# A download over a wired link, 10 Mb/s 10 ms, and a LAN of two, 2 Mb/s 2 ms, whose frames are lost on their way to the
# mobile host, in front of its link layer; with ns-2's Snoop at the base station or without. Goodput from 5 s on. Prints
# one line of JSON on stdout.
#
#   ns lasthop.tcl -snoop 1 -loss 0.05 -seed 1

array set opt { snoop 0  loss 0.0  transport Newreno  sink delack  window 20  duration 60.0  warmup 5.0  seed 1  limit 50 }
foreach {key value} $argv {
    set name [string range $key 1 end]
    if {![info exists opt($name)]} { puts stderr "unknown option $key"; exit 2 }
    set opt($name) $value
}

set mss 1460
# its ring
Snoop set maxbufs_ 100

set ns [new Simulator]
$defaultRNG seed $opt(seed)
foreach i {0 1 2} { set node($i) [$ns node] }
$ns duplex-link $node(0) $node(1) 10Mb 10ms DropTail
$ns queue-limit $node(0) $node(1) $opt(limit)
set lan [$ns newLan "$node(1) $node(2)" 2Mb 2ms -ifqLen $opt(limit) \
    -llType [expr {$opt(snoop) ? "LL/LLSnoop" : "LL"}]]

if {$opt(loss) > 0} {
    set mobile [$lan set lanIface_($node(2))]
    set errors [new ErrorModel]
    $errors unit pkt
    $errors set rate_ $opt(loss)
    $errors target [$mobile set ll_]
    $errors drop-target [new Agent/Null]
    [$mobile set mac_] up-target $errors
}

set sink_class Agent/TCPSink
if {$opt(transport) eq "Sack1"} { append sink_class /Sack1 }
if {$opt(sink) eq "delack"} { append sink_class /DelAck }
set sink [new $sink_class]
set tcp [new Agent/TCP/$opt(transport)]
$tcp set packetSize_ $mss
$tcp set window_ $opt(window)
$ns attach-agent $node(0) $tcp
$ns attach-agent $node(2) $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp

proc begin {} {
    global sink before
    set before [$sink set bytes_]
}

proc report {} {
    global opt tcp sink before mss
    set received [expr {([$sink set bytes_] - $before) * $mss / ($mss + 40)}]
    set goodput [format %.1f [expr {$received * 8.0 / ($opt(duration) - $opt(warmup))}]]
    puts "{\"flows\":\[{\"id\":0,\"src\":0,\"dst\":2,\"goodput_bps\":$goodput,\"bytes_received\":$received,\"segments_sent\":[$tcp set ndatapack_],\"retransmissions\":[$tcp set nrexmitpack_],\"timeouts\":[$tcp set nrexmit_]}]}"
    exit 0
}

$ns at 0.0 "$ftp start"
$ns at $opt(warmup) begin
$ns at $opt(duration) report
$ns run
