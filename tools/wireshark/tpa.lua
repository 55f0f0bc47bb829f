-- Wireshark dissector of TPA, the Transport Protocol for Ad hoc networks, in both forms that hopline sends: over UDP
-- and as an IP protocol of its own. docs/protocols/tpa.md says how to install it.
--
-- Layout and rules are those of crates/wire/src/tpa.rs: what the parser there refuses has a Malformed or Checksum
-- entry in the expert information here, and nothing else has. crates/wire/tests/tshark/tpa.rs compares the two.
--
-- Bits are taken apart with TvbRange:bitfield and arithmetic: Wireshark comes with Lua 5.1 to 5.4, by version and
-- platform, and these share no operators on bits.

local common = dofile((__FILE__:match(".*[/\\]") or "") .. "hopline.lua")

local DEFAULT_PORT = 7172
local PROTOCOL = 253
local VERSION = 2
local POSITIONS = 12
local TAG_LEN = 8
local RECEIPT_LEN = 4
local TOKEN_LEN = 8
local OPENING_LEN = 16

-- The two forms: where the ten bytes begin that both have, and how long the header is.
local OVER_UDP = { common = 0, header_len = 12 }
local NATIVE = { common = 4, header_len = 16 }

-- What RST, SYN and FIN say together, as a number: questions of the path.
local OF_PATH = { [3] = "CHALLENGE", [5] = "ECHO", [6] = "STRAY" }
local CONTRADICTION = 7

local tpa = Proto("tpa", "Transport Protocol for Ad hoc networks")
-- IP's table takes protocols, not functions. The tree and all filters are those of `tpa`.
local tpa_native = Proto("tpa.native", "Transport Protocol for Ad hoc networks, native form")

-- Fields ---------------------------------------------------------------------------------------------------------

local set = { "Set", "Not set" }

local function flag(name, text, mask)
    return ProtoField.bool("tpa.flags." .. name, text, 8, set, mask)
end

local field = {
    src_port = ProtoField.uint16("tpa.srcport", "Source Port", base.DEC),
    dst_port = ProtoField.uint16("tpa.dstport", "Destination Port", base.DEC),
    port = ProtoField.uint16("tpa.port", "Source or Destination Port", base.DEC),
    block = ProtoField.uint16("tpa.block", "BlockSeqNumber", base.DEC),
    block_upper = ProtoField.uint8("tpa.block.upper", "Upper eight bits of BlockSeqNumber", base.DEC),
    ack_block = ProtoField.uint16("tpa.ack_block", "AckBlockSeqNumber", base.DEC),
    ack_block_upper = ProtoField.uint8("tpa.ack_block.upper", "Upper eight bits of AckBlockSeqNumber", base.DEC),
    tx = ProtoField.uint8("tpa.tx", "TxSeqNumber", base.DEC),
    ack_tx = ProtoField.uint8("tpa.ack_tx", "AckTxSeqNumber", base.DEC),
    bitmap_data = ProtoField.uint16("tpa.bitmap_data", "BitmapData", base.HEX, nil, 0xfff0),
    position = ProtoField.uint8("tpa.position", "Position in the block", base.DEC),
    bitmap_ack = ProtoField.uint16("tpa.bitmap_ack", "BitmapAck", base.HEX, nil, 0x0fff),
    ack_position = ProtoField.uint8("tpa.ack_position", "Position acknowledged", base.DEC),
    flags = ProtoField.uint8("tpa.flags", "Flags", base.HEX),
    ack = flag("ack", "ACK", 0x80),
    rst = flag("rst", "RST", 0x40),
    syn = flag("syn", "SYN", 0x20),
    fin = flag("fin", "FIN", 0x10),
    tx_stat = ProtoField.uint8("tpa.txstat", "txStat", base.DEC, { [0] = "Normal", [1] = "Congested" }, 0x08),
    last = flag("last", "Last segment of its block", 0x04),
    has_opening = flag("opening", "Opening parameters follow", 0x02),
    has_tag = flag("tag", "Connection tag follows", 0x01),
    window = ProtoField.uint16("tpa.window", "WinSize (bytes)", base.DEC),
    checksum = ProtoField.uint16("tpa.checksum", "Checksum", base.HEX),
    checksum_status = ProtoField.uint8("tpa.checksum.status", "Checksum Status", base.DEC,
        { [0] = "Bad", [1] = "Good", [2] = "Unverified" }),
    tag = ProtoField.uint64("tpa.tag", "Connection Tag", base.HEX),
    nonce = ProtoField.uint16("tpa.nonce", "Nonce of the data", base.HEX),
    proof = ProtoField.uint16("tpa.proof", "Proof of what is acknowledged", base.HEX),
    of_path = ProtoField.string("tpa.of_path", "Question of the path"),
    token = ProtoField.uint64("tpa.token", "Token", base.HEX),
    opening = ProtoField.none("tpa.opening", "Opening Parameters"),
    opening_tag = ProtoField.uint64("tpa.opening.tag", "Tag to put into every segment to the sender", base.HEX),
    opening_mss = ProtoField.uint16("tpa.opening.mss", "Largest payload (bytes)", base.DEC),
    opening_version = ProtoField.uint8("tpa.opening.version", "Version", base.DEC),
    opening_block = ProtoField.uint8("tpa.opening.block_segments", "Segments in a block at most", base.DEC),
    opening_cwnd = ProtoField.uint8("tpa.opening.cwnd_max", "cwndmax (segments)", base.DEC),
    opening_reserved = ProtoField.bytes("tpa.opening.reserved", "Reserved"),
    len = ProtoField.uint32("tpa.len", "Length of the data", base.DEC),
}

local function malformed(name, text)
    return common.malformed("tpa", name, text)
end

local expert_info = {
    truncated = malformed("truncated", "The packet ends before the header does"),
    position = malformed("position", "A segment has one position, or none and is not the last"),
    control = malformed("control", "SYN, FIN and RST are not set all three"),
    of_path = malformed("of_path", "A question of the path has a tag and no position, ACK or opening parameters"),
    control_position = malformed("control_position", "SYN and RST have no position"),
    fin = malformed("fin", "FIN without position"),
    data = malformed("data", "Data without position"),
    tag = malformed("tag", "A connection tag is not zero"),
    version = malformed("version", "Unknown version"),
    block_segments = malformed("block_segments", "A block has 1 to 12 segments"),
    cwnd_max = malformed("cwnd_max", "cwndmax is not zero"),
    checksum = ProtoExpert.new("tpa.checksum.bad", "Bad checksum", expert.group.CHECKSUM, expert.severity.ERROR),
    cut = common.cut("tpa", "header"),
}

tpa.fields = field
tpa.experts = expert_info

-- Addresses of the IP header, for the pseudo header. Pinfo has them too, but does not let scripts at the bytes.
local ip_src = Field.new("ip.src")
local ip_dst = Field.new("ip.dst")

-- Bits and numbers -----------------------------------------------------------------------------------------------

-- The positions in a bitmap, in rising order. Bit 0, the least significant, is position 0.
local function positions(bitmap)
    local found = {}
    for position = 0, POSITIONS - 1 do
        if math.floor(bitmap / 2 ^ position) % 2 == 1 then
            found[#found + 1] = position
        end
    end
    return found
end

-- Positions as people write them: [0-2,5].
local function ranges(found)
    local parts, first = {}, 1
    for i = 1, #found do
        if found[i + 1] ~= found[i] + 1 then
            parts[#parts + 1] = first == i and found[i] or found[first] .. "-" .. found[i]
            first = i + 1
        end
    end
    return "[" .. table.concat(parts, ",") .. "]"
end

-- One's complement sum of big-endian words, not folded; an odd last byte is the upper half of a word (RFC 1071).
local function words(bytes)
    local sum = 0
    for at = 1, #bytes, 2 do
        local upper, lower = string.byte(bytes, at, at + 1)
        sum = sum + upper * 256 + (lower or 0)
    end
    return sum
end

local function fold(sum)
    while sum > 0xffff do
        sum = sum % 0x10000 + math.floor(sum / 0x10000)
    end
    return sum
end

-- What is wrong with a segment -----------------------------------------------------------------------------------

-- Notes a rule that the segment breaks, at the item it is about.
local function complain(segment, item, info, text)
    item:add_proto_expert_info(info, text)
    table.insert(segment.complaints, text)
end

-- Whether `needed` bytes are there; if not, says why. Only a packet that was short when it was sent is malformed:
-- captures and the quotations in ICMP errors stop where they like.
local function reaches(segment, needed)
    local present = segment.tvb:len()
    if present >= needed then
        return true
    end
    local text = string.format("truncated: %d bytes needed, %d present", needed, present)
    if segment.quoted or segment.tvb:reported_len() >= needed then
        segment.tree:add_proto_expert_info(expert_info.cut, text)
        segment.cut = true
    else
        complain(segment, segment.tree, expert_info.truncated, text)
    end
    return false
end

-- Data belong to a position; only a FIN may have a position and no data.
local function check_position(segment)
    if segment.position_refused or segment.control_refused then
        return
    end
    local item = segment.bitmap_item
    if segment.of_path then
        if not segment.has_tag or segment.position or segment.has_ack or segment.has_opening then
            complain(segment, item, expert_info.of_path, "question of the path with more than its tag")
            return
        elseif segment.of_path == "CHALLENGE" then
            return
        end
    end
    if segment.position then
        if segment.syn or segment.rst then
            complain(segment, item, expert_info.control_position, "position of SYN or RST")
        end
    elseif segment.fin then
        complain(segment, item, expert_info.fin, "FIN without position")
    elseif segment.len and segment.len > 0 then
        complain(segment, item, expert_info.data, "data without position")
    end
end

-- Parts of a segment ---------------------------------------------------------------------------------------------

local function add_ports(segment)
    local tvb, tree, pinfo = segment.tvb, segment.tree, segment.pinfo
    tree:add(field.src_port, tvb(0, 2))
    tree:add(field.dst_port, tvb(2, 2))
    -- As with tcp.port: one filter for both ends.
    tree:add(field.port, tvb(0, 2)):set_hidden()
    tree:add(field.port, tvb(2, 2)):set_hidden()
    pinfo.src_port, pinfo.dst_port = tvb(0, 2):uint(), tvb(2, 2):uint()
end

-- A block number: the lower eight bits are at `at`, the upper eight, of the form over UDP only, at `upper`.
local function add_block(segment, number, number_upper, at, upper)
    local tvb, tree = segment.tvb, segment.tree
    local value = tvb(at, 1):uint()
    if segment.form == OVER_UDP then
        value = value + 256 * tvb(upper, 1):uint()
    end
    local item = tree:add(number, tvb(at, 1), value)
    if segment.form == OVER_UDP then
        item:add(number_upper, tvb(upper, 1))
    end
    return value
end

local function add_bitmap_data(segment, at)
    local range = segment.tvb(at, 2)
    local found = positions(range:bitfield(0, 12))
    segment.bitmap_item = segment.tree:add(field.bitmap_data, range)
    segment.position_refused = #found > 1 or (#found == 0 and segment.last)
    if segment.position_refused then
        local text = #found > 1 and "several positions " .. ranges(found) or "last of its block without position"
        complain(segment, segment.bitmap_item, expert_info.position, text)
    elseif #found == 1 then
        segment.position = found[1]
        segment.bitmap_item:add(field.position, range, found[1]):set_generated()
    end
end

-- Without the ACK flag these bytes mean nothing; left out, `tpa.ack_block == 7` finds acknowledgments only.
local function add_ack(segment, at)
    local tvb, tree = segment.tvb, segment.tree
    local ack = { block = add_block(segment, field.ack_block, field.ack_block_upper, at + 1, at + 11) }
    local range = tvb(at + 5, 2)
    local found = positions(range:bitfield(4, 12))
    ack.received, ack.tx = ranges(found), tvb(at + 3, 1):uint()
    local item = tree:add(field.bitmap_ack, range):append_text(" " .. ack.received)
    for _, position in ipairs(found) do
        item:add(field.ack_position, range, position):set_generated()
    end
    tree:add(field.ack_tx, tvb(at + 3, 1))
    segment.ack = ack
end

local function read_flags(segment, range)
    local bit = function(number)
        return range:bitfield(7 - number, 1) == 1
    end
    segment.has_ack, segment.rst, segment.syn, segment.fin = bit(7), bit(6), bit(5), bit(4)
    segment.congested, segment.last, segment.has_opening, segment.has_tag = bit(3), bit(2), bit(1), bit(0)
    segment.of_path = OF_PATH[range:bitfield(1, 3)]
    if segment.of_path then
        segment.rst, segment.syn, segment.fin = false, false, false
    end
end

local function add_flags(segment, range)
    local item = segment.tree:add(field.flags, range)
    for _, name in ipairs({ "ack", "rst", "syn", "fin", "tx_stat", "last", "has_opening", "has_tag" }) do
        item:add(field[name], range)
    end
    if segment.of_path then
        item:add(field.of_path, range, segment.of_path):set_generated()
    end
    segment.control_refused = range:bitfield(1, 3) == CONTRADICTION
    if segment.control_refused then
        complain(segment, item, expert_info.control, "SYN, FIN and RST at once")
    end
end

local function add_common(segment)
    local tvb, tree, at = segment.tvb, segment.tree, segment.form.common
    read_flags(segment, tvb(at + 7, 1))
    segment.block = add_block(segment, field.block, field.block_upper, at, at + 10)
    add_bitmap_data(segment, at + 4)
    segment.tx = tvb(at + 2, 1):uint()
    tree:add(field.tx, tvb(at + 2, 1))
    if segment.has_ack then
        add_ack(segment, at)
    end
    add_flags(segment, tvb(at + 7, 1))
    segment.window = tvb(at + 8, 2):uint()
    tree:add(field.window, tvb(at + 8, 2))
end

-- The sum over pseudo header, header and data; nil if not all of that is at hand.
local function checksum_sum(segment)
    local tvb = segment.tvb
    -- The last address pair is that of the innermost IPv4 header, the one before TPA unless IPv6 is in between.
    local src, dst = { ip_src() }, { ip_dst() }
    src, dst = src[#src], dst[#dst]
    local whole = tvb:len() == tvb:reported_len() and not segment.quoted
    if not whole or not src or tostring(src.value) ~= tostring(segment.pinfo.net_src) then
        return nil
    end
    return words(src.range:raw()) + words(dst.range:raw()) + PROTOCOL + tvb:len() + words(tvb:raw())
end

local function add_checksum(segment)
    local range = segment.tvb(14, 2)
    local item = segment.tree:add(field.checksum, range)
    local sum = checksum_sum(segment)
    local good = sum and fold(sum) == 0xffff
    local status = item:add(field.checksum_status, range, not sum and 2 or good and 1 or 0)
    status:set_generated()
    if not sum then
        item:append_text(" [unverified]")
    elseif good then
        item:append_text(" [correct]")
    else
        local right = 0xffff - fold(sum - range:uint())
        item:append_text(string.format(" incorrect, should be 0x%04x", right))
        complain(segment, item, expert_info.checksum, "bad checksum")
    end
end

local function add_tag(segment, at)
    local range = segment.tvb(at, TAG_LEN)
    local item = segment.tree:add(field.tag, range)
    if range:uint64() == UInt64(0) then
        complain(segment, item, expert_info.tag, "tag of zero")
    end
    segment.tree:add(field.nonce, segment.tvb(at + TAG_LEN, 2))
    segment.tree:add(field.proof, segment.tvb(at + TAG_LEN + 2, 2))
end

local function add_opening(segment, at)
    local tvb = segment.tvb
    local tree = segment.tree:add(field.opening, tvb(at, OPENING_LEN))
    local checked = function(name, range, smallest, largest, info, what)
        local item, value = tree:add(field[name], range), range:uint()
        if value < smallest or value > largest then
            complain(segment, item, info, string.format("%s of %d", what, value))
        end
        return value
    end
    local tag = tree:add(field.opening_tag, tvb(at, TAG_LEN))
    if tvb(at, TAG_LEN):uint64() == UInt64(0) then
        tag:append_text(" (none)")
    end
    tree:add(field.opening_mss, tvb(at + 8, 2))
    checked("opening_version", tvb(at + 10, 1), VERSION, VERSION, expert_info.version, "version")
    local block = checked("opening_block", tvb(at + 11, 1), 1, POSITIONS, expert_info.block_segments, "block size")
    local cwnd = checked("opening_cwnd", tvb(at + 12, 1), 1, 255, expert_info.cwnd_max, "cwndmax")
    tree:add(field.opening_reserved, tvb(at + 13, 3))
    local mss = tvb(at + 8, 2):uint()
    segment.opening = string.format("mss %d block %d cwndmax %d", mss, block, cwnd)
end

-- What may stand between header and data. Gives where the data begin; nil if the packet ends before.
local function add_extensions(segment)
    local at = segment.form.header_len
    if segment.has_tag then
        if not reaches(segment, at + TAG_LEN + RECEIPT_LEN) then
            return nil
        end
        add_tag(segment, at)
        at = at + TAG_LEN + RECEIPT_LEN
    end
    if segment.of_path == "CHALLENGE" or segment.of_path == "ECHO" then
        if not reaches(segment, at + TOKEN_LEN) then
            return nil
        end
        segment.tree:add(field.token, segment.tvb(at, TOKEN_LEN))
        at = at + TOKEN_LEN
    end
    if segment.has_opening then
        if not reaches(segment, at + OPENING_LEN) then
            return nil
        end
        add_opening(segment, at)
        at = at + OPENING_LEN
    end
    return at
end

local function add_data(segment, at)
    local tvb = segment.tvb
    -- Of a packet that was cut by the capture, what it had on the wire counts.
    segment.len = tvb:reported_len() - at
    segment.tree:add(field.len, segment.len):set_generated()
    segment.tree:set_len(at)
    if tvb:len() > at then
        Dissector.get("data"):call(tvb(at):tvb(), segment.pinfo, segment.root)
    end
end

-- The info column ------------------------------------------------------------------------------------------------

-- What the segment brings: DATA 131:9 tx 12.
local function what_it_brings(segment)
    local names = { segment.of_path }
    for _, name in ipairs({ "rst", "syn", "fin" }) do
        if segment[name] then
            names[#names + 1] = string.upper(name)
        end
    end
    if segment.position and #names == 0 then
        names[1] = "DATA"
    end
    local name = table.concat(names, " ")
    if segment.position then
        local last = segment.last and " last" or ""
        return string.format("%s %d:%d%s tx %d", name, segment.block, segment.position, last, segment.tx)
    end
    return name
end

local function info(segment)
    local ack = segment.ack
    local parts = {}
    local say = function(text)
        if text and text ~= "" then
            parts[#parts + 1] = text
        end
    end
    say(what_it_brings(segment))
    say(segment.opening)
    say(ack and string.format("ACK %d %s tx %d", ack.block, ack.received, ack.tx))
    say(segment.congested and "congested")
    say(string.format("win %d", segment.window))
    say(segment.len and segment.len > 0 and string.format("len %d", segment.len))
    return table.concat(parts, " | ")
end

local function add_info(segment, text)
    local parts = { text }
    if segment.cut then
        parts[#parts + 1] = "[not all captured]"
    end
    if #segment.complaints > 0 then
        parts[#parts + 1] = "[malformed: " .. table.concat(segment.complaints, "; ") .. "]"
    end
    segment.pinfo.cols.info = table.concat(parts, " ")
    if text then
        segment.tree:append_text(", " .. text)
    end
end

-- Dissectors -----------------------------------------------------------------------------------------------------

local function dissect(form, tvb, pinfo, root)
    pinfo.cols.protocol = "TPA"
    local segment = { form = form, tvb = tvb, pinfo = pinfo, root = root, complaints = {} }
    segment.tree = tvb:len() > 0 and root:add(tpa, tvb()) or root:add(tpa)
    segment.quoted = pinfo.in_error_pkt
    if not reaches(segment, form.header_len) then
        add_info(segment, nil)
        return
    end
    if form == NATIVE then
        add_ports(segment)
    end
    add_common(segment)
    if form == NATIVE then
        add_checksum(segment)
    end
    local data_at = add_extensions(segment)
    if data_at then
        add_data(segment, data_at)
        check_position(segment)
    end
    add_info(segment, info(segment))
end

function tpa.dissector(tvb, pinfo, root)
    dissect(OVER_UDP, tvb, pinfo, root)
end

function tpa_native.dissector(tvb, pinfo, root)
    dissect(NATIVE, tvb, pinfo, root)
end

-- Whether a datagram can only be a SYN of TPA. No other segment has enough fixed bytes to be told from another
-- protocol's: here the length, the flags, the version, and zeros where senders write zeros.
local function opens_connection(tvb)
    local len = tvb:len()
    if len ~= tvb:reported_len() or len < OVER_UDP.header_len + OPENING_LEN then
        return false
    end
    local flags, last = tvb(7, 1), len - OPENING_LEN
    local has_ack, has_tag = flags:bitfield(0, 1) == 1, flags:bitfield(7, 1) == 1
    local syn_with_opening = flags:bitfield(1, 3) == 2 and flags:bitfield(5, 2) == 1
    local right_len = last == OVER_UDP.header_len + (has_tag and TAG_LEN + RECEIPT_LEN or 0)
    local no_position = tvb(4, 2):bitfield(0, 12) == 0
    local no_ack = tvb(1, 1):uint() + tvb(3, 1):uint() + tvb(4, 3):uint() + tvb(11, 1):uint() == 0
    local version, block, cwnd = tvb(last + 10, 1):uint(), tvb(last + 11, 1):uint(), tvb(last + 12, 1):uint()
    local parameters = version == VERSION and block >= 1 and block <= POSITIONS and cwnd >= 1
    local reserved = tvb(last + 13, 3):uint() == 0
    return syn_with_opening and right_len and no_position and (has_ack or no_ack) and parameters and reserved
end

-- On any port: a connection whose SYN was captured is known from there on.
local function heuristic(tvb, pinfo, root)
    if not opens_connection(tvb) then
        return false
    end
    pinfo.conversation = tpa
    dissect(OVER_UDP, tvb, pinfo, root)
    return true
end

-- Preferences and registration -----------------------------------------------------------------------------------

tpa.prefs.native = Pref.bool("Native form", true, "Take IP protocol " .. PROTOCOL .. ", for experiments, for TPA")

local ip_protocols = DissectorTable.get("ip.proto")

local function register_native()
    ip_protocols:remove(PROTOCOL, tpa_native)
    if tpa.prefs.native then
        ip_protocols:add(PROTOCOL, tpa_native)
    end
end

tpa:register_heuristic("udp", heuristic)
common.register_udp(tpa, DEFAULT_PORT, "Port of TPA servers over UDP", register_native)
