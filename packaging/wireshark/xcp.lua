-- XCP's TCP options (docs/wire-format.md) for Wireshark and tshark, both formats.
--
-- Copy it to a directory of Lua plugins: ~/.local/lib/wireshark/plugins, or the one that "About
-- Wireshark, Folders" names. Fields can be filtered by: xcp.feedback < 0, xcp.marked == 1.

local xcp = Proto("xcp", "eXplicit Control Protocol")

local EXPERIMENT_KIND, EXPERIMENT_ID = 254, 0x5843
local CLASSIC_FORWARD, CLASSIC_RETURN = 14, 15
local FORWARD, RETURN, IDS = 0x20, 0x10, 0x08

-- What the codes of a wait stand for.
local waits = { [0] = "none" }
for code = 1, 15 do
    local half = code % 2 == 1 and 2 or 3
    waits[code] = string.format("at least %.1f ms", half * 2 ^ (21 + math.floor((code - 1) / 2)) / 1e6)
end

local fields = {
    version = ProtoField.uint8("xcp.version", "Version", base.DEC, nil, 0xC0),
    forward = ProtoField.bool("xcp.forward", "Forward header", 8, nil, FORWARD),
    returned_header = ProtoField.bool("xcp.return", "Return header", 8, nil, RETURN),
    ids = ProtoField.bool("xcp.ids", "Bottleneck ids", 8, nil, IDS),
    marked = ProtoField.bool("xcp.marked", "Marked by a router", 8, nil, 0x04),
    echoed = ProtoField.bool("xcp.echoed", "Mark echoed (with a forward header alone: sent at once)", 8, nil, 0x02),
    keeps = ProtoField.bool("xcp.keeps", "Sender keeps its rate (in an acknowledgement: that came so)", 8, nil, 0x01),
    wait = ProtoField.uint8("xcp.wait", "Wait behind TCP", base.DEC, waits, 0xF0),
    return_wait = ProtoField.uint8("xcp.return_wait", "Wait behind TCP, echoed", base.DEC, waits, 0x0F),
    rtt = ProtoField.double("xcp.rtt", "Round-trip time (s)"),
    window = ProtoField.double("xcp.window", "Window (packets)"),
    feedback = ProtoField.double("xcp.feedback", "Feedback (bytes/s)"),
    returned = ProtoField.double("xcp.returned", "Returned (bytes/s)"),
    bottleneck = ProtoField.uint32("xcp.bottleneck", "Bottleneck id", base.HEX),
    next_bottleneck = ProtoField.uint32("xcp.next_bottleneck", "Next bottleneck id", base.HEX),
    returned_id = ProtoField.uint32("xcp.returned_id", "Returned next id", base.HEX),
    classic_feedback = ProtoField.double("xcp.classic.feedback", "Feedback (packets of window)"),
    classic_returned = ProtoField.double("xcp.classic.returned", "Returned (packets of window)"),
}
for _, field in pairs(fields) do
    xcp.fields[#xcp.fields + 1] = field
end

local tcp_options = Field.new("tcp.options")

local function has(value, bit)
    return math.floor(value / bit) % 2 == 1
end

-- A word with an exponent above `mantissa` bits, in units of the format.
local function word(value, mantissa)
    local exponent, m = math.floor(value / 2 ^ mantissa), value % 2 ^ mantissa
    if exponent == 0 then
        return m
    end
    return (2 ^ mantissa + m) * 2.0 ^ (exponent - 1)
end

local function rate(value)
    local sign = has(value, 0x8000) and -1 or 1
    return sign * word(value % 0x8000, 9) * 2.0 ^ -20
end

-- The change of window of the 2005 format: a 13-bit two's complement times 16^(e - 3).
local function classic(value)
    local mantissa, exponent = math.floor(value / 8), value % 8
    if mantissa >= 4096 then
        mantissa = mantissa - 8192
    end
    return mantissa * 16.0 ^ (exponent - 3)
end

-- What the flags say that an option of ours is long; nil for another version.
local function implied(flags)
    if math.floor(flags / 64) ~= 1 then
        return nil
    end
    local length, ids = 6, has(flags, IDS)
    if has(flags, FORWARD) then
        length = length + 6 + (ids and 8 or 0)
    end
    if has(flags, RETURN) then
        length = length + 2 + (ids and 4 or 0)
    end
    return length
end

local function extended(option, tree)
    local flags = option(4, 1):uint()
    if implied(flags) ~= option:len() then
        return false
    end
    local item = tree:add(xcp, option, "eXplicit Control Protocol, extended format")
    for _, name in ipairs({ "version", "forward", "returned_header", "ids", "marked", "echoed", "keeps" }) do
        item:add(fields[name], option(4, 1))
    end
    item:add(fields.wait, option(5, 1))
    item:add(fields.return_wait, option(5, 1))
    local at = 6
    local function take(field, length, read)
        local range = option(at, length)
        at = at + length
        if read then
            item:add(field, range, read(range:uint()))
        else
            item:add(field, range)
        end
    end
    if has(flags, FORWARD) then
        take(fields.rtt, 2, function(v) return word(v, 11) * 1e-9 end)
        take(fields.window, 2, function(v) return word(v, 10) * 2.0 ^ -20 end)
        take(fields.feedback, 2, rate)
    end
    if has(flags, RETURN) then
        take(fields.returned, 2, rate)
    end
    if has(flags, IDS) and has(flags, FORWARD) then
        take(fields.bottleneck, 4)
        take(fields.next_bottleneck, 4)
    end
    if has(flags, IDS) and has(flags, RETURN) then
        take(fields.returned_id, 4)
    end
    return true
end

local function read(option, tree)
    local kind, length = option(0, 1):uint(), option:len()
    if kind == EXPERIMENT_KIND and length >= 6 and option(2, 2):uint() == EXPERIMENT_ID then
        return extended(option, tree)
    elseif kind == CLASSIC_FORWARD and length == 8 then
        local item = tree:add(xcp, option, "eXplicit Control Protocol, format of 2005")
        item:add(fields.classic_feedback, option(2, 2), classic(option(2, 2):uint()))
        item:add(fields.rtt, option(4, 2), option(4, 2):uint() / 1000)
        item:add(fields.window, option(6, 2), option(6, 2):uint())
        return true
    elseif kind == CLASSIC_RETURN and length == 4 then
        local item = tree:add(xcp, option, "eXplicit Control Protocol, format of 2005")
        item:add(fields.classic_returned, option(2, 2), classic(option(2, 2):uint()))
        return true
    end
    return false
end

function xcp.dissector(_, packet, tree)
    for _, options in ipairs({ tcp_options() }) do
        local bytes, at = options.range, 0
        while at < bytes:len() do
            local kind = bytes(at, 1):uint()
            if kind == 0 then
                break
            elseif kind == 1 then
                at = at + 1
            else
                local length = at + 1 < bytes:len() and bytes(at + 1, 1):uint() or 0
                if length < 2 or at + length > bytes:len() then
                    break
                end
                if read(bytes(at, length):range(), tree) then
                    packet.cols.info:append(" [XCP]")
                end
                at = at + length
            end
        end
    end
end

register_postdissector(xcp)
