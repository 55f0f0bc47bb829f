-- Wireshark dissector of handoff messages between base stations, home agents and mobile hosts, as hopline sends them over UDP.
-- docs/protocols/handoff.md has the format and says how to install this.
--
-- Layout and rules are those of crates/wire/src/handoff.rs: what the parser there refuses has a Malformed entry in the expert
-- information here, and nothing else has. crates/wire/tests/tshark/handoff.rs compares the two.

local common = dofile((__FILE__:match(".*[/\\]") or "") .. "hopline.lua")

local DEFAULT_PORT = 1021
local BEACON, FORWARD, BUFFER, STOP, REGISTER, ANSWER, BEHIND = 1, 2, 3, 4, 5, 6, 7
local HEADER_LEN, TAG_LEN, LATEST = 16, 16, 3
local NAMES = {
    [BEACON] = "Beacon", [FORWARD] = "Forward", [BUFFER] = "Buffer", [STOP] = "Stop", [REGISTER] = "Register",
    [ANSWER] = "Answer", [BEHIND] = "Behind",
}
-- Length of what only some types have.
local BODY_LEN = { [FORWARD] = 20, [REGISTER] = 4, [BEHIND] = 8 }

local handoff = Proto("hopline_handoff", "Handoff between base stations")

local field = {
    type = ProtoField.uint8("hopline_handoff.type", "Type", base.DEC, NAMES),
    about = ProtoField.uint8("hopline_handoff.about", "About", base.DEC),
    lifetime = ProtoField.uint16("hopline_handoff.lifetime", "Lifetime (ms)", base.DEC),
    number = ProtoField.uint64("hopline_handoff.number", "Number", base.DEC),
    address = ProtoField.ipv4("hopline_handoff.address", "Station or mobile host"),
    source = ProtoField.ipv4("hopline_handoff.source", "Source of a packet"),
    id = ProtoField.uint16("hopline_handoff.id", "IP identification", base.DEC),
    reserved = ProtoField.uint16("hopline_handoff.reserved", "Reserved", base.HEX),
    asked = ProtoField.uint64("hopline_handoff.asked", "Number of the request", base.DEC),
    care_of = ProtoField.ipv4("hopline_handoff.care_of", "Care-of address"),
    tag = ProtoField.bytes("hopline_handoff.tag", "Tag"),
}

local expert_info = {
    truncated = common.malformed("hopline_handoff", "truncated", "The packet ends before the message does"),
    type = common.malformed("hopline_handoff", "type", "Unknown type"),
    answer = common.malformed("hopline_handoff", "answer", "Answer to nothing that is asked"),
    count = common.malformed("hopline_handoff", "count", "More than three identifications"),
    cut = common.cut("hopline_handoff", "message"),
}

handoff.fields = field
handoff.experts = expert_info

local complain = common.complain

local function reaches(tvb, pinfo, tree, needed)
    return common.reaches(tvb, pinfo, tree, expert_info, needed)
end

-- Shows what all types have, and what the message is in words. Returns nil after a complaint.
local function add_header(tvb, pinfo, tree)
    local kind, about = tvb(0, 1):uint(), tvb(1, 1):uint()
    local type_item = tree:add(field.type, tvb(0, 1))
    local about_item = tree:add(field.about, tvb(1, 1))
    tree:add(field.lifetime, tvb(2, 2))
    tree:add(field.number, tvb(4, 8))
    tree:add(field.address, tvb(12, 4))
    local whose = tostring(tvb(12, 4):ipv4())
    if not NAMES[kind] then
        complain(pinfo, type_item, expert_info.type, string.format("type %d", kind))
        return nil
    end
    if kind == ANSWER and (about < FORWARD or about > REGISTER) then
        complain(pinfo, about_item, expert_info.answer, string.format("answer to %d", about))
        return nil
    end
    if kind == BEACON then
        return "beacon of " .. whose, about_item
    end
    if kind == BEHIND then
        return "request of " .. whose .. " is behind " .. tostring(tvb(4, 8):uint64()), about_item
    end
    local what = kind == ANSWER and "answer to " .. NAMES[about]:lower() or NAMES[kind]:lower()
    return string.format("%s for %s, %d ms", what, whose, tvb(2, 2):uint()), about_item
end

local function add_packets(tvb, tree, count)
    local packets = {}
    for n = 0, count - 1 do
        local source, id = tvb(HEADER_LEN + 6 * n, 4), tvb(HEADER_LEN + 6 * n + 4, 2)
        tree:add(field.source, source)
        tree:add(field.id, id)
        packets[#packets + 1] = string.format("%s/%d", tostring(source:ipv4()), id:uint())
    end
    tree:add(field.reserved, tvb(HEADER_LEN + 18, 2))
    return #packets > 0 and ", has " .. table.concat(packets, " ") or ", has nothing"
end

function handoff.dissector(tvb, pinfo, root)
    pinfo.cols.protocol = "HANDOFF"
    pinfo.cols.info = "HANDOFF"
    local tree = root:add(handoff, tvb())
    if not reaches(tvb, pinfo, tree, HEADER_LEN) then
        return
    end
    local text, about_item = add_header(tvb, pinfo, tree)
    local kind = tvb(0, 1):uint()
    local body_len = BODY_LEN[kind] or 0
    if not text or not reaches(tvb, pinfo, tree, HEADER_LEN + body_len) then
        return
    end
    if kind == FORWARD then
        local count = tvb(1, 1):uint()
        if count > LATEST then
            complain(pinfo, about_item, expert_info.count, string.format("%d identifications", count))
            return
        end
        text = text .. add_packets(tvb, tree, count)
    elseif kind == REGISTER then
        tree:add(field.care_of, tvb(HEADER_LEN, 4))
        text = text .. " at " .. tostring(tvb(HEADER_LEN, 4):ipv4())
        text = text .. (tvb(1, 1):uint() > 0 and "" or ", has received nothing yet")
    end
    if kind == BEHIND then
        tree:add(field.asked, tvb(HEADER_LEN, 8))
        text = text .. ", has number " .. tostring(tvb(HEADER_LEN, 8):uint64())
    end
    if not reaches(tvb, pinfo, tree, HEADER_LEN + body_len + TAG_LEN) then
        return
    end
    tree:add(field.tag, tvb(HEADER_LEN + body_len, TAG_LEN))
    pinfo.cols.info = text
    tree:append_text(", " .. text)
    tree:set_len(HEADER_LEN + body_len + TAG_LEN)
end

common.register_udp(handoff, DEFAULT_PORT, "Port of messages")
