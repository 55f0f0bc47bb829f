# Starts a simulator and ends it: what is left when there is nothing to simulate.
set ns [new Simulator]
exit 0
