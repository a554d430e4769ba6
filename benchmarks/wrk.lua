-- The load of benchmarks/service.py for wrk: forecasts, and outcomes so many forecasts later.
-- wrk ... -s wrk.lua URL -- SIZE BEHIND RUN: events in a request, how many forecasts later
-- outcomes are told, and a name that no earlier run had.
local threads, made = 0, {}
local forecast = '{"id": "%s %d %d", "raw": 0.%02d}'
local outcome = '{"id": "%s %d %d", "outcome": %d}'

function setup(thread)
   thread:set("number", threads)
   threads = threads + 1
   table.insert(made, thread)
end

function init(args)
   size, behind, run = tonumber(args[1]), tonumber(args[2]), args[3]
   wrk.method = "POST"
   k, due, wrong = 0, false, 0
end

local function rows(first, form)
   local told = {}
   for n = first, first + size - 1 do
      table.insert(told, string.format(form, run, number, n, form == forecast and n * 37 % 100 or n % 2))
   end
   return size == 1 and told[1] or "[" .. table.concat(told, ",") .. "]"
end

function request()
   if due then
      due = false
      return wrk.format(nil, "/v1/streams/s/outcomes", nil, rows(k - size - behind, outcome))
   end
   local body = rows(k, forecast)
   k = k + size
   -- The first request is made to see what requests look like, and never sent.
   due = k - size - behind >= size
   return wrk.format(nil, "/v1/streams/s/forecasts", nil, body)
end

function response(status, headers, body)
   -- In a list problems are told one by one.
   if status ~= 200 or body:find('"urn:', 1, true) then
      wrong = wrong + 1
   end
end

function done(summary, latency)
   local bad = 0
   for _, thread in ipairs(made) do
      bad = bad + thread:get("wrong")
   end
   local errors = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
   io.write(string.format("told %d %d %d %d %d\n", summary.requests, summary.duration,
                          latency:percentile(99.0), bad + errors, latency:percentile(50.0)))
end
