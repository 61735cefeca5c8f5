local pass_while_away = false  -- true: let requests pass while the server is away
core.register_action("limit", { "http-req" }, function(txn)
  local client = core.httpclient()
  local headers = {}
  for name, values in pairs(txn.http:req_get_headers()) do
    headers[name] = {}
    for _, value in pairs(values) do table.insert(headers[name], value) end
  end
  headers["content-length"], headers["transfer-encoding"], headers["connection"] = nil, nil, nil
  headers["x-forwarded-method"] = { txn.f:method() }
  headers["x-forwarded-host"] = headers["host"]
  headers["x-forwarded-uri"] = { txn.f:pathq() }
  headers["x-forwarded-for"] = { txn.f:src() }
  local answer = client:get{ url = "http://sluicegate/check", dst = "abns@sluicegate", headers = headers, timeout = 2000 }
  if answer and answer.status == 200 then return end
  local is_away = not answer or answer.status < 300 or answer.status > 499
  if is_away and pass_while_away then return end
  local reply = txn:reply()
  if is_away then reply:set_status(503) else
    reply:set_status(answer.status)
    for _, name in ipairs({ "location", "retry-after", "ratelimit", "ratelimit-policy", "content-type" }) do
      for _, value in pairs(answer.headers[name] or {}) do reply:add_header(name, value) end
    end
    reply:set_body(answer.body)
  end
  txn:done(reply)
end)
