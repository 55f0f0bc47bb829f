import sys, time, zenoh

config = zenoh.Config()
config.insert_json5("connect/endpoints", f'["tcp/{sys.argv[1]}:7447"]')
with zenoh.open(config) as session:
    keep = zenoh.CongestionControl.BLOCK  # by default messages are dropped while the radio is away
    publisher = session.declare_publisher("position", congestion_control=keep)
    while not publisher.matching_status.matching:  # until the subscriber is known
        time.sleep(0.1)
    for n in range(1, 41):
        publisher.put(f"position {n}")
        time.sleep(0.1)
    time.sleep(30)  # until it is stopped: what is on its way arrives
