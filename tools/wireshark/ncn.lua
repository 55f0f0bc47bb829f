-- Wireshark dissector of NCN, the congestion notices of Neighborhood RED, as hopline sends them over UDP.
-- docs/protocols/neighborhood-red.md has the format and says how to install this.
--
-- Layout and rules are those of crates/wire/src/ncn.rs: what the parser there refuses has a Malformed entry in the expert
-- information here, and nothing else has. crates/wire/tests/tshark/ncn.rs compares the two.

local DEFAULT_PORT = 1022
local NOTICE, RELAYED = 1, 2
local NOTICE_LEN, RELAYED_LEN = 8, 12
local WHOLE = 4294967295

local ncn = Proto("ncn", "Neighborhood RED congestion notice")

local field = {
    type = ProtoField.uint8("ncn.type", "packetType", base.DEC, { [NOTICE] = "Notice", [RELAYED] = "Passed on" }),
    reserved = ProtoField.uint8("ncn.reserved", "Reserved", base.HEX),
    lifetime = ProtoField.uint16("ncn.lifetime", "lifeTime (ms)", base.DEC),
    normalized_pb = ProtoField.uint32("ncn.normalized_pb", "normalizedPb, in units of 1/(2^32 - 1)", base.DEC),
    share = ProtoField.double("ncn.share", "normalizedPb"),
    sufferer = ProtoField.ipv4("ncn.sufferer", "Node that suffers"),
}

local expert_info = {
    truncated = ProtoExpert.new("ncn.malformed.truncated", "The packet ends before the notice does",
        expert.group.MALFORMED, expert.severity.ERROR),
    type = ProtoExpert.new("ncn.malformed.type", "Unknown packetType", expert.group.MALFORMED, expert.severity.ERROR),
    cut = ProtoExpert.new("ncn.cut", "Not all of the notice was captured", expert.group.UNDECODED,
        expert.severity.NOTE),
}

ncn.fields = field
ncn.experts = expert_info

-- Notes a rule that the notice breaks, at the item it is about, and in the info column.
local function complain(pinfo, item, info, text)
    item:add_proto_expert_info(info, text)
    pinfo.cols.info:append(" [malformed: " .. text .. "]")
end

-- Whether `needed` bytes are there; if not, says why. Only a packet that was short when it was sent is malformed.
local function reaches(tvb, pinfo, tree, needed)
    local present = tvb:len()
    if present >= needed then
        return true
    end
    local text = string.format("truncated: %d bytes needed, %d present", needed, present)
    if pinfo.in_error_pkt or tvb:reported_len() >= needed then
        tree:add_proto_expert_info(expert_info.cut, text)
        pinfo.cols.info:append(" [not all captured]")
    else
        complain(pinfo, tree, expert_info.truncated, text)
    end
    return false
end

local function add_notice(tvb, tree)
    tree:add(field.reserved, tvb(1, 1))
    tree:add(field.lifetime, tvb(2, 2))
    local share = tvb(4, 4):uint() / WHOLE
    tree:add(field.normalized_pb, tvb(4, 4)):add(field.share, tvb(4, 4), share):set_generated()
    return string.format("drop %.6f for %d ms", share, tvb(2, 2):uint())
end

function ncn.dissector(tvb, pinfo, root)
    pinfo.cols.protocol = "NCN"
    pinfo.cols.info = "NCN"
    local tree = root:add(ncn, tvb())
    if not reaches(tvb, pinfo, tree, NOTICE_LEN) then
        return
    end
    local kind = tvb(0, 1):uint()
    local type_item = tree:add(field.type, tvb(0, 1))
    if kind ~= NOTICE and kind ~= RELAYED then
        complain(pinfo, type_item, expert_info.type, string.format("packetType %d", kind))
        return
    end
    if kind == RELAYED and not reaches(tvb, pinfo, tree, RELAYED_LEN) then
        return
    end
    local text = add_notice(tvb, tree)
    if kind == RELAYED then
        tree:add(field.sufferer, tvb(8, 4))
        text = text .. " of " .. tostring(tvb(8, 4):ipv4())
    end
    pinfo.cols.info = text
    tree:append_text(", " .. text)
    tree:set_len(kind == RELAYED and RELAYED_LEN or NOTICE_LEN)
end

ncn.prefs.udp_port = Pref.uint("UDP port", DEFAULT_PORT, "Port of notices; 0: none")

local udp_ports = DissectorTable.get("udp.port")
local registered_port

local function register()
    if registered_port then
        udp_ports:remove(registered_port, ncn)
    end
    registered_port = ncn.prefs.udp_port > 0 and ncn.prefs.udp_port or nil
    if registered_port then
        udp_ports:add(registered_port, ncn)
    end
end

ncn.prefs_changed = register
-- Known to Decode As, whatever the preferences say.
udp_ports:add_for_decode_as(ncn)
register()
