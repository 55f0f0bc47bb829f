import zenoh

config = zenoh.Config()
config.insert_json5("listen/endpoints", '["tcp/0.0.0.0:7447"]')
with zenoh.open(config) as session, session.declare_subscriber("position") as positions:
    for position in positions:
        print(position.payload.to_string(), flush=True)
        if position.payload.to_string() == "position 40":
            break
