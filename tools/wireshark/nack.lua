-- Wireshark dissector of the TCP option by which a base station reports missing data to a mobile host, as hopline writes it.
-- docs/protocols/snoop.md says when it is sent, and how to install this.
--
-- Layout: a TCP option of kind 253 (RFC 4727) with experiment identifier 0x4e4b (RFC 6994), then ranges of eight bytes as those of
-- SACK: the first sequence number and that after the last. Without ranges it is the announcement of a host that keeps what it sends. Of
-- another length it is neither, as in crates/wire/src/tcp/options.rs.
-- crates/wire/tests/tshark/nack.rs compares the two.

local EXID = 0x4e4b
local RANGE_LEN = 8

local nack = Proto("hopline_nack", "What a base station has not got")

local field = {
    left = ProtoField.uint32("hopline_nack.left", "Missing from", base.DEC),
    right = ProtoField.uint32("hopline_nack.right", "Missing up to, not including", base.DEC),
}
nack.fields = field

local exids = Field.new("tcp.options.experimental.exid")
local datas = Field.new("tcp.options.experimental.data")

function nack.dissector(_, pinfo, tree)
    local identifiers, contents = { exids() }, { datas() }
    for i, identifier in ipairs(identifiers) do
        local data = contents[i] and contents[i].range
        if identifier.value == EXID and (not data or data:len() == 0) then
            tree:add(nack, identifier.range)
            pinfo.cols.info:append(" [keeps what it sends]")
        elseif identifier.value == EXID and data:len() % RANGE_LEN == 0 then
            local subtree = tree:add(nack, data)
            for at = 0, data:len() - 1, RANGE_LEN do
                subtree:add(field.left, data(at, 4))
                subtree:add(field.right, data(at + 4, 4))
            end
            pinfo.cols.info:append(" [missing: " .. data:len() / RANGE_LEN .. "]")
        end
    end
end

register_postdissector(nack)
