-- Wireshark dissector of NCN, the congestion notices of Neighborhood RED, as hopline sends them over UDP.
-- docs/protocols/neighborhood-red.md has the format and says how to install this.
--
-- Layout and rules are those of crates/wire/src/ncn.rs: what the parser there refuses has a Malformed entry in the expert
-- information here, and nothing else has. crates/wire/tests/tshark/ncn.rs compares the two.

local common = dofile((__FILE__:match(".*[/\\]") or "") .. "hopline.lua")

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
    truncated = common.malformed("ncn", "truncated", "The packet ends before the notice does"),
    type = common.malformed("ncn", "type", "Unknown packetType"),
    cut = common.cut("ncn", "notice"),
}

ncn.fields = field
ncn.experts = expert_info

local complain = common.complain

local function reaches(tvb, pinfo, tree, needed)
    return common.reaches(tvb, pinfo, tree, expert_info, needed)
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

common.register_udp(ncn, DEFAULT_PORT, "Port of notices")
