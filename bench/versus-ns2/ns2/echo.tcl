# Which time stamp a sink of ns-2 echoes: one segment per 50 ms into a sink with delayed ACKs, 20 ms of round trip; prints
# the last round trip that the sender has measured by time stamps, in ms. Of the earliest segment that an ACK answers it
# is 70, of the latest 20.
#
#   ns echo.tcl              as ns-default.tcl has it
#   ns echo.tcl false        with ts_echo_bugfix_ set so

set ns [new Simulator]
set from [$ns node]
set to [$ns node]
$ns duplex-link $from $to 10Mb 10ms DropTail
set tcp [new Agent/TCP/Newreno]
set sink [new Agent/TCPSink/DelAck]
$tcp set timestamps_ true
if {[llength $argv] > 0} { $sink set ts_echo_bugfix_ [lindex $argv 0] }
$ns attach-agent $from $tcp
$ns attach-agent $to $sink
$ns connect $tcp $sink
for {set i 0} {$i < 100} {incr i} {
    $ns at [expr 1 + 0.05 * $i] "$tcp advanceby 1"
}
proc report {} {
    global tcp
    puts [format %.0f [expr 1000 * [$tcp set rtt_] * [$tcp set tcpTick_]]]
    exit 0
}
$ns at 7 report
$ns run
