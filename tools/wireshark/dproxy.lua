-- Wireshark dissector of D-Proxy's UDP packets, as hopline sends them: messages about TCP flows,
-- and frames of links whose ends number the packets, bare or with proof and greetings. The first byte tells which.
-- docs/protocols/d-proxy.md has the formats and says how to install this.
--
-- Layout and rules are those of crates/wire/src/dproxy.rs, dproxy/frame.rs, dproxy/tunnel.rs and arq.rs: what the parsers there refuse has a Malformed entry in the
-- expert information here, and nothing else has. crates/wire/tests/tshark/dproxy.rs compares the two.

local common = dofile((__FILE__:match(".*[/\\]") or "") .. "hopline.lua")

local DEFAULT_PORT = 1022
local MESSAGE_VERSION, FRAME_VERSION, TUNNEL_VERSION = 3, 1, 3
local REQUEST, NOT_CACHED, TAIL = 1, 2, 3
local TYPES = { [REQUEST] = "Request", [NOT_CACHED] = "Not cached", [TAIL] = "Tail" }
-- Length of an address by version of IP, and of a message without addresses and tag.
local ADDRESS_LENS = { [4] = 4, [6] = 16 }
local FIXED_LEN, TAG_LEN = 20, 16
local MAGIC, HEADER_LEN, MOST_NUMBERS, PARITY_LEN = 0xd5, 8, 64, 4
local F_DATA, F_REPLAY, F_REQUEST, F_GONE, F_TAIL, F_REPORT, F_PARITY = 0, 1, 2, 3, 4, 5, 6
local KINDS = {
    [F_DATA] = "Data", [F_REPLAY] = "Replay", [F_REQUEST] = "Request", [F_GONE] = "Gone", [F_TAIL] = "Tail",
    [F_REPORT] = "Report", [F_PARITY] = "Parity",
}
local TUNNEL_MAGIC, TUNNEL_HEADER_LEN, GREETED_LEN, GREETING_LEN = 0xd6, 16, 36, 52
local T_FRAME, T_GREETING = 0, 1
local SPEAKS = { [1] = "Messages about TCP", [2] = "Frames, asking", [3] = "Frames, acknowledging" }
local TUNNEL_KINDS = { [T_FRAME] = "Frame", [T_GREETING] = "Greeting" }
local ARQ_MAGIC, ARQ_WORDS = 0xd7, 4
local A_DATA, A_GIVEN_UP, A_ACK = 0, 1, 2
local ARQ_KINDS = { [A_DATA] = "Data", [A_GIVEN_UP] = "Given up", [A_ACK] = "Ack" }

local dproxy = Proto("hopline_dproxy", "D-Proxy")

local field = {
    version = ProtoField.uint8("hopline_dproxy.version", "Version", base.DEC),
    ip_version = ProtoField.uint8("hopline_dproxy.ip_version", "IP version", base.DEC, nil, 0xf0),
    type = ProtoField.uint8("hopline_dproxy.type", "Type", base.DEC, TYPES, 0x0f),
    len = ProtoField.uint16("hopline_dproxy.len", "Length of the range", base.DEC),
    src = ProtoField.ipv4("hopline_dproxy.src", "Data from"),
    dst = ProtoField.ipv4("hopline_dproxy.dst", "Data to"),
    src_v6 = ProtoField.ipv6("hopline_dproxy.src_v6", "Data from"),
    dst_v6 = ProtoField.ipv6("hopline_dproxy.dst_v6", "Data to"),
    src_port = ProtoField.uint16("hopline_dproxy.src_port", "From port", base.DEC),
    dst_port = ProtoField.uint16("hopline_dproxy.dst_port", "To port", base.DEC),
    seq = ProtoField.uint32("hopline_dproxy.seq", "Sequence number", base.DEC),
    number = ProtoField.uint64("hopline_dproxy.number", "Message number", base.DEC),
    tag = ProtoField.bytes("hopline_dproxy.tag", "Tag"),
    magic = ProtoField.uint8("hopline_dproxy.magic", "Magic number", base.HEX),
    frame_version = ProtoField.uint8("hopline_dproxy.frame_version", "Version", base.DEC, nil, 0xf0),
    kind = ProtoField.uint8("hopline_dproxy.kind", "Kind", base.DEC, KINDS, 0x0f),
    epoch = ProtoField.uint16("hopline_dproxy.epoch", "Epoch", base.DEC),
    packet = ProtoField.uint32("hopline_dproxy.packet", "Packet", base.DEC),
    count = ProtoField.uint16("hopline_dproxy.count", "Packets", base.DEC),
    lengths = ProtoField.uint16("hopline_dproxy.lengths", "Lengths, exclusive-or", base.HEX),
    bytes = ProtoField.bytes("hopline_dproxy.bytes", "Bytes, exclusive-or"),
    tunnel_kind = ProtoField.uint8("hopline_dproxy.tunnel_kind", "Kind", base.DEC, TUNNEL_KINDS, 0x0f),
    datagram = ProtoField.uint64("hopline_dproxy.datagram", "Datagram", base.DEC),
    wants = ProtoField.uint8("hopline_dproxy.wants", "Wants an answer", base.DEC, { [0] = "No", [1] = "Yes" }),
    speaks = ProtoField.uint8("hopline_dproxy.speaks", "Speaks", base.DEC, SPEAKS),
    life = ProtoField.uint64("hopline_dproxy.life", "Life", base.HEX),
    challenge = ProtoField.uint64("hopline_dproxy.challenge", "Challenge", base.HEX),
    met = ProtoField.uint64("hopline_dproxy.met", "Challenge met", base.HEX),
    knows = ProtoField.uint64("hopline_dproxy.knows", "Life known", base.HEX),
    arq_kind = ProtoField.uint8("hopline_dproxy.arq_kind", "Kind", base.DEC, ARQ_KINDS, 0x0f),
    arq_first = ProtoField.uint16("hopline_dproxy.arq_first", "First", base.DEC),
    arq_number = ProtoField.uint16("hopline_dproxy.arq_number", "Number", base.DEC),
    beyond = ProtoField.uint64("hopline_dproxy.beyond", "Arrived beyond", base.HEX),
}

local function malformed(name, text)
    return common.malformed("hopline_dproxy", name, text)
end

local expert_info = {
    truncated = malformed("truncated", "The packet ends before the message does"),
    version = malformed("version", "Unknown version"),
    type = malformed("type", "Unknown type"),
    longer = malformed("longer", "Bytes where there are to be none"),
    range = malformed("range", "Empty range"),
    numbers = malformed("numbers", "No whole number of numbers, or too many"),
    parity = malformed("parity", "Parity of nothing"),
    cut = common.cut("hopline_dproxy", "message"),
}

dproxy.fields = field
dproxy.experts = expert_info

local ip_dissector, ipv6_dissector = Dissector.get("ip"), Dissector.get("ipv6")

local complain = common.complain

local function reaches(tvb, pinfo, tree, needed)
    return common.reaches(tvb, pinfo, tree, expert_info, needed)
end

local function add_message(tvb, pinfo, tree)
    if not reaches(tvb, pinfo, tree, 2) then
        return
    end
    local version_item = tree:add(field.version, tvb(0, 1))
    if tvb(0, 1):uint() ~= MESSAGE_VERSION then
        complain(pinfo, version_item, expert_info.version, string.format("version %d", tvb(0, 1):uint()))
        return
    end
    local ip_version, kind = bit.rshift(tvb(1, 1):uint(), 4), bit.band(tvb(1, 1):uint(), 0xf)
    local family_item = tree:add(field.ip_version, tvb(1, 1))
    local type_item = tree:add(field.type, tvb(1, 1))
    local address_len = ADDRESS_LENS[ip_version]
    if not address_len then
        complain(pinfo, family_item, expert_info.type, string.format("IP version %d", ip_version))
        return
    end
    if not TYPES[kind] then
        complain(pinfo, type_item, expert_info.type, string.format("type %d", kind))
        return
    end
    local message_len = FIXED_LEN + 2 * address_len
    if not reaches(tvb, pinfo, tree, message_len + TAG_LEN) then
        return
    end
    local len_item = tree:add(field.len, tvb(2, 2))
    local src, dst = tvb(4, address_len), tvb(4 + address_len, address_len)
    tree:add(ip_version == 6 and field.src_v6 or field.src, src)
    tree:add(ip_version == 6 and field.dst_v6 or field.dst, dst)
    local at = 4 + 2 * address_len
    tree:add(field.src_port, tvb(at, 2))
    tree:add(field.dst_port, tvb(at + 2, 2))
    tree:add(field.seq, tvb(at + 4, 4))
    tree:add(field.number, tvb(at + 8, 8))
    tree:add(field.tag, tvb(message_len, TAG_LEN))
    if tvb:reported_len() > message_len + TAG_LEN then
        complain(pinfo, tree, expert_info.longer, string.format("%d bytes", tvb:reported_len()))
        return
    end
    if tvb(2, 2):uint() == 0 then
        complain(pinfo, len_item, expert_info.range, "empty range")
        return
    end
    local function shown(address)
        return ip_version == 6 and "[" .. tostring(address:ipv6()) .. "]" or tostring(address:ipv4())
    end
    local text = string.format("%s %s:%d > %s:%d, %d from %d", TYPES[kind]:lower(), shown(src),
        tvb(at, 2):uint(), shown(dst), tvb(at + 2, 2):uint(), tvb(2, 2):uint(), tvb(at + 4, 4):uint())
    pinfo.cols.info = text
    tree:append_text(", " .. text)
end

-- The packet within a frame, if its version of IP is known.
local function add_packet(tvb, pinfo, root)
    if tvb:len() == 0 then
        return
    end
    local version = bit.rshift(tvb(0, 1):uint(), 4)
    if version == 4 then
        ip_dissector:call(tvb, pinfo, root)
    elseif version == 6 then
        ipv6_dissector:call(tvb, pinfo, root)
    end
end

-- The numbers behind the first one. Returns them all as text, nil after a complaint.
local function add_numbers(tvb, pinfo, tree)
    local rest = tvb:reported_len() - HEADER_LEN
    if rest % 4 ~= 0 or rest / 4 >= MOST_NUMBERS then
        complain(pinfo, tree, expert_info.numbers, string.format("%d bytes of numbers", rest))
        return nil
    end
    local numbers = { tostring(tvb(4, 4):uint()) }
    for at = HEADER_LEN, tvb:len() - 4, 4 do
        tree:add(field.packet, tvb(at, 4))
        numbers[#numbers + 1] = tostring(tvb(at, 4):uint())
    end
    return table.concat(numbers, " ")
end

-- What is in a frame behind its header, in words. Returns nil after a complaint.
local function add_body(tvb, pinfo, tree, kind)
    local number = tvb(4, 4):uint()
    if kind == F_REQUEST or kind == F_GONE then
        return add_numbers(tvb, pinfo, tree)
    end
    if kind == F_TAIL or kind == F_REPORT then
        if tvb:reported_len() > HEADER_LEN then
            complain(pinfo, tree, expert_info.longer, string.format("%d bytes", tvb:reported_len()))
            return nil
        end
        return tostring(number)
    end
    if kind == F_PARITY then
        if not reaches(tvb, pinfo, tree, HEADER_LEN + PARITY_LEN) then
            return nil
        end
        local count = tvb(HEADER_LEN, 2):uint()
        local count_item = tree:add(field.count, tvb(HEADER_LEN, 2))
        tree:add(field.lengths, tvb(HEADER_LEN + 2, 2))
        if count == 0 then
            complain(pinfo, count_item, expert_info.parity, "parity of nothing")
            return nil
        end
        if tvb:len() > HEADER_LEN + PARITY_LEN then
            tree:add(field.bytes, tvb(HEADER_LEN + PARITY_LEN))
        end
        return string.format("%d packets from %d", count, number)
    end
    return string.format("%d, %d bytes", number, tvb:reported_len() - HEADER_LEN)
end

local function add_frame(tvb, pinfo, tree, root)
    if not reaches(tvb, pinfo, tree, HEADER_LEN) then
        return
    end
    local kind = bit.band(tvb(1, 1):uint(), 0xf)
    tree:add(field.magic, tvb(0, 1))
    local version_item = tree:add(field.frame_version, tvb(1, 1))
    local kind_item = tree:add(field.kind, tvb(1, 1))
    tree:add(field.epoch, tvb(2, 2))
    tree:add(field.packet, tvb(4, 4))
    if bit.rshift(tvb(1, 1):uint(), 4) ~= FRAME_VERSION then
        complain(pinfo, version_item, expert_info.version, "version of frames")
        return
    end
    if not KINDS[kind] then
        complain(pinfo, kind_item, expert_info.type, string.format("kind %d", kind))
        return
    end
    local text = add_body(tvb, pinfo, tree, kind)
    if not text then
        return
    end
    text = string.format("%s %s, epoch %d", KINDS[kind]:lower(), text, tvb(2, 2):uint())
    pinfo.cols.info = text
    tree:append_text(", " .. text)
    if kind == F_DATA or kind == F_REPLAY then
        tree:set_len(HEADER_LEN)
        if tvb:len() > HEADER_LEN then
            -- The packet is what is of interest; its own dissector says so in the columns.
            add_packet(tvb(HEADER_LEN):tvb(), pinfo, root)
        end
    end
end

-- What has arrived beyond the first that is missing, of an acknowledgment. Returns nil after a complaint.
local function add_words(tvb, pinfo, tree)
    local rest = tvb:reported_len() - HEADER_LEN
    local words = math.floor(rest / 8)
    if rest % 8 ~= 0 or words > ARQ_WORDS then
        complain(pinfo, tree, expert_info.numbers, string.format("%d bytes of words", rest))
        return nil
    end
    for at = HEADER_LEN, tvb:len() - 8, 8 do
        tree:add(field.beyond, tvb(at, 8))
    end
    if words > 0 and tvb:len() >= HEADER_LEN + rest and tvb(HEADER_LEN + rest - 8, 8):uint64() == UInt64(0) then
        complain(pinfo, tree, expert_info.numbers, "a last word of nothing")
        return nil
    end
    return string.format("before %d, %d words", tvb(4, 2):uint(), words)
end

-- What is in a frame that is acknowledged, in words. Returns nil after a complaint.
local function add_arq_body(tvb, pinfo, tree, kind)
    local rest = tvb:reported_len() - HEADER_LEN
    if kind == A_ACK then
        if tvb(6, 2):uint() ~= 0 then
            complain(pinfo, tree, expert_info.longer, "a second number")
            return nil
        end
        return add_words(tvb, pinfo, tree)
    end
    if kind == A_GIVEN_UP and rest > 0 then
        complain(pinfo, tree, expert_info.longer, string.format("%d bytes", tvb:reported_len()))
        return nil
    end
    return string.format("%d of %d on, %d bytes", tvb(6, 2):uint(), tvb(4, 2):uint(), rest)
end

local function add_arq(tvb, pinfo, tree, root)
    if not reaches(tvb, pinfo, tree, HEADER_LEN) then
        return
    end
    local kind = bit.band(tvb(1, 1):uint(), 0xf)
    local magic_item = tree:add(field.magic, tvb(0, 1))
    local version_item = tree:add(field.frame_version, tvb(1, 1))
    local kind_item = tree:add(field.arq_kind, tvb(1, 1))
    tree:add(field.epoch, tvb(2, 2))
    tree:add(field.arq_first, tvb(4, 2))
    tree:add(field.arq_number, tvb(6, 2))
    if tvb(0, 1):uint() ~= ARQ_MAGIC then
        complain(pinfo, magic_item, expert_info.version, "magic number of frames")
        return
    end
    if bit.rshift(tvb(1, 1):uint(), 4) ~= FRAME_VERSION then
        complain(pinfo, version_item, expert_info.version, "version of frames")
        return
    end
    if not ARQ_KINDS[kind] then
        complain(pinfo, kind_item, expert_info.type, string.format("kind %d", kind))
        return
    end
    local text = add_arq_body(tvb, pinfo, tree, kind)
    if not text then
        return
    end
    text = string.format("%s %s, epoch %d", ARQ_KINDS[kind]:lower(), text, tvb(2, 2):uint())
    pinfo.cols.info = text
    tree:append_text(", " .. text)
    if kind == A_DATA and tvb:len() > HEADER_LEN then
        tree:set_len(HEADER_LEN)
        add_packet(tvb(HEADER_LEN):tvb(), pinfo, root)
    end
end

local function add_greeting(tvb, pinfo, tree)
    if not reaches(tvb, pinfo, tree, GREETING_LEN) then
        return
    end
    if tvb:reported_len() > GREETING_LEN then
        complain(pinfo, tree, expert_info.longer, string.format("%d bytes", tvb:reported_len()))
        return
    end
    local wants_item = tree:add(field.wants, tvb(2, 1))
    tree:add(field.speaks, tvb(3, 1))
    tree:add(field.life, tvb(4, 8))
    tree:add(field.challenge, tvb(12, 8))
    tree:add(field.met, tvb(20, 8))
    tree:add(field.knows, tvb(28, 8))
    tree:add(field.tag, tvb(GREETED_LEN, GREETING_LEN - GREETED_LEN))
    if tvb(2, 1):uint() > 1 or not SPEAKS[tvb(3, 1):uint()] then
        complain(pinfo, wants_item, expert_info.type, "unknown flags")
        return
    end
    local text = string.format("greeting of life %s, knows %s", tostring(tvb(4, 8):bytes()), tostring(tvb(28, 8):bytes()))
    if tvb(2, 1):uint() == 1 then
        text = text .. ", wants an answer"
    end
    pinfo.cols.info = text
    tree:append_text(", " .. text)
end

-- A frame with its proof.
local function add_sealed(tvb, pinfo, tree, root)
    if not reaches(tvb, pinfo, tree, TUNNEL_HEADER_LEN) then
        return
    end
    tree:add(field.datagram, tvb(2, 6), tvb(2, 6):uint64())
    tree:add(field.tag, tvb(8, 8))
    if tvb:len() == TUNNEL_HEADER_LEN then
        if tvb:reported_len() == TUNNEL_HEADER_LEN then
            complain(pinfo, tree, expert_info.truncated, "truncated: no frame")
        end
        return
    end
    tree:set_len(TUNNEL_HEADER_LEN)
    local frame = tvb(TUNNEL_HEADER_LEN):tvb()
    local inner = root:add(dproxy, frame())
    if frame(0, 1):uint() == MAGIC then
        add_frame(frame, pinfo, inner, root)
    else
        add_arq(frame, pinfo, inner, root)
    end
end

local function add_datagram(tvb, pinfo, tree, root)
    if not reaches(tvb, pinfo, tree, 2) then
        return
    end
    local kind = bit.band(tvb(1, 1):uint(), 0xf)
    tree:add(field.magic, tvb(0, 1))
    local version_item = tree:add(field.frame_version, tvb(1, 1))
    local kind_item = tree:add(field.tunnel_kind, tvb(1, 1))
    if bit.rshift(tvb(1, 1):uint(), 4) ~= TUNNEL_VERSION then
        complain(pinfo, version_item, expert_info.version, "version of datagrams")
    elseif kind == T_FRAME then
        add_sealed(tvb, pinfo, tree, root)
    elseif kind == T_GREETING then
        add_greeting(tvb, pinfo, tree)
    else
        complain(pinfo, kind_item, expert_info.type, string.format("kind %d", kind))
    end
end

function dproxy.dissector(tvb, pinfo, root)
    pinfo.cols.protocol = "D-PROXY"
    pinfo.cols.info = "D-PROXY"
    local tree = root:add(dproxy, tvb())
    local first = tvb:len() > 0 and tvb(0, 1):uint()
    if first == MAGIC then
        add_frame(tvb, pinfo, tree, root)
    elseif first == TUNNEL_MAGIC then
        add_datagram(tvb, pinfo, tree, root)
    else
        add_message(tvb, pinfo, tree)
    end
end

common.register_udp(dproxy, DEFAULT_PORT, "Port of messages and frames")
