# A transfer over two wired links, 10 Mb/s 5 ms and 2 Mb/s 1 ms unless said otherwise, with bit errors
# on the second, both ways; prints one line of JSON on stdout.
#
#   ns wired.tcl -transport Sack1 -ber 1.5e-6 -seed 1

array set opt {
    transport Newreno  sink delack  window 32  ber 0.0  bytes 10000000  seed 1  limit 50
    first {10Mb 5ms}  second {2Mb 1ms}  beta 819  trace ""
}
foreach {key value} $argv {
    set name [string range $key 1 end]
    if {![info exists opt($name)]} { puts stderr "unknown option $key"; exit 2 }
    set opt($name) $value
}

set mss 1460
set start 1.0
set give_up 3600.0
set segments [expr {($opt(bytes) + $mss - 1) / $mss}]

set ns [new Simulator]
$defaultRNG seed $opt(seed)
foreach i {0 1 2} { set node($i) [$ns node] }
eval {$ns duplex-link $node(0) $node(1)} $opt(first) DropTail
eval {$ns duplex-link $node(1) $node(2)} $opt(second) DropTail
$ns queue-limit $node(0) $node(1) $opt(limit)
$ns queue-limit $node(1) $node(2) $opt(limit)

if {$opt(ber) > 0} {
    foreach {from to} {1 2 2 1} {
        # "byte": a packet is lost with 1 - (1 - rate_)^bytes. At the far end of the link, so that it has
        # taken its time; "lossmodel" would drop it in front of the link.
        set errors [new ErrorModel]
        $errors unit byte
        $errors set rate_ [expr {1 - pow(1 - $opt(ber), 8)}]
        $errors drop-target [new Agent/Null]
        $ns link-lossmodel $errors $node($from) $node($to)
    }
}

set sink_class Agent/TCPSink
if {$opt(transport) in {Sack1 Cubic}} { append sink_class /Sack1 }
if {$opt(sink) eq "delack"} { append sink_class /DelAck }
set sink [new $sink_class]
set agent [expr {$opt(transport) eq "Cubic" ? "Linux" : $opt(transport)}]
set tcp [new Agent/TCP/$agent]
$tcp set packetSize_ $mss
$tcp set window_ $opt(window)
set header 40
if {$agent eq "Linux"} {
    # It measures delays by timestamps. They take 12 bytes (RFC 7323), not ns-2's 10.
    $tcp set timestamps_ true
    $tcp set ts_option_size_ 12
    $sink set ts_echo_rfc1323_ true
    incr header 12
    # only now, for it takes over what has been set
    $tcp select_ca cubic
    $tcp set_ca_param cubic beta $opt(beta)
}
$ns attach-agent $node(0) $tcp
$ns attach-agent $node(2) $sink
$ns connect $tcp $sink
if {$opt(trace) ne ""} {
    # a line for each change of the window: it begins with the time and ends with the window in segments
    $tcp attach [open $opt(trace) w]
    $tcp trace cwnd_
}
set ftp [new Application/FTP]
$ftp attach-agent $tcp

proc object {args} {
    set parts {}
    foreach {key value} $args { lappend parts "\"$key\":$value" }
    return "\{[join $parts ,]\}"
}

proc report {} {
    global opt ns tcp sink start mss header segments
    # the SYN has no options
    set received [expr {([$sink set bytes_] - 40) / ($mss + $header)}]
    set flow [object id 0 src 0 dst 2 \
        goodput_bps [format %.1f [expr {$received*$mss*8.0/([$ns now] - $start)}]] \
        bytes_received [expr {$received*$mss}] segments_sent [$tcp set ndatapack_] \
        retransmissions [$tcp set nrexmitpack_] timeouts [$tcp set nrexmit_]]
    puts [object flows "\[$flow\]"]
    if {$received != $segments} { puts stderr "only $received of $segments segments" }
    exit 0
}
# called by the agent when the last segment has been acknowledged
$tcp proc done {} { report }

$ns at $start "$ftp produce $segments"
$ns at $give_up report
$ns run
