-- Common parts of hopline's dissectors: expert information, length checks and the UDP port.
-- Each dissector loads this file from its own folder. Loaded on its own, it does nothing.

local common = {}

-- Returns an entry of the expert information for a broken rule.
function common.malformed(proto, name, text)
    return ProtoExpert.new(proto .. ".malformed." .. name, text, expert.group.MALFORMED, expert.severity.ERROR)
end

-- Returns an entry of the expert information for bytes that were not captured.
function common.cut(proto, thing)
    return ProtoExpert.new(proto .. ".cut", "Not all of the " .. thing .. " was captured", expert.group.UNDECODED,
        expert.severity.NOTE)
end

-- Reports a broken rule at an item of the tree and in the info column.
function common.complain(pinfo, item, info, text)
    item:add_proto_expert_info(info, text)
    pinfo.cols.info:append(" [malformed: " .. text .. "]")
end

-- Returns whether `needed` bytes are there, and reports it if not. Only a packet that was short when it was sent is malformed.
function common.reaches(tvb, pinfo, tree, expert_info, needed)
    local present = tvb:len()
    if present >= needed then
        return true
    end
    local text = string.format("truncated: %d bytes needed, %d present", needed, present)
    if pinfo.in_error_pkt or tvb:reported_len() >= needed then
        tree:add_proto_expert_info(expert_info.cut, text)
        pinfo.cols.info:append(" [not all captured]")
    else
        common.complain(pinfo, tree, expert_info.truncated, text)
    end
    return false
end

-- Registers a dissector for the UDP port of its preference, now and whenever that changes, and for Decode As. `register_more`
-- registers it elsewhere at the same times.
function common.register_udp(proto, default_port, description, register_more)
    proto.prefs.udp_port = Pref.uint("UDP port", default_port, description .. "; 0: none")
    local udp_ports = DissectorTable.get("udp.port")
    local registered_port

    local function register()
        if registered_port then
            udp_ports:remove(registered_port, proto)
        end
        registered_port = proto.prefs.udp_port > 0 and proto.prefs.udp_port or nil
        if registered_port then
            udp_ports:add(registered_port, proto)
        end
        if register_more then
            register_more()
        end
    end

    proto.prefs_changed = register
    -- Known to Decode As, whatever the preferences say.
    udp_ports:add_for_decode_as(proto)
    register()
end

return common
