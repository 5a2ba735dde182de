--- What the servers last said of themselves, and the words for a status line.
local M = {}

---@class draftwood.Status
---@field state 'starting'|'downloading'|'loading'|'ready'|'busy'|'paused'|'error'
---@field progress? number
---@field model? string
---@field message? string

local states = {} ---@type table<integer, draftwood.Status>
local deaths = {} ---@type integer[] seconds
local CRASHES, WITHIN_SECONDS = 4, 180

--- A notification `draftwood/status` of a client.
---@param client_id integer
---@param status draftwood.Status
function M.received(client_id, status)
  local before = states[client_id]
  states[client_id] = status
  if status.state == 'error' and (not before or before.state ~= 'error') and status.message then
    vim.notify('Draftwood: ' .. status.message, vim.log.levels.ERROR)
  end
  vim.cmd.redrawstatus({ bang = true })
end

--- A server ended: one that died is started again, one that dies again and again is not.
---@param client_id integer
---@param died boolean not because it was asked to
function M.exited(client_id, died)
  states[client_id] = nil
  vim.cmd.redrawstatus({ bang = true })
  if not died or vim.v.exiting ~= vim.NIL then
    return
  end
  local now = os.time()
  table.insert(deaths, now)
  deaths = vim.tbl_filter(function(at)
    return now - at < WITHIN_SECONDS
  end, deaths)
  if #deaths < CRASHES then
    require('draftwood.command').start()
  else
    local message = 'Draftwood: the server does not stay up. `:Draftwood log` says why, `:Draftwood restart` tries again.'
    vim.notify(message, vim.log.levels.ERROR)
  end
end

--- Forgets earlier deaths: the user asked for another try.
function M.forgive()
  deaths = {}
end

---@param bufnr integer
---@return draftwood.Status?
function M.of(bufnr)
  local client = vim.lsp.get_clients({ name = 'draftwood', bufnr = bufnr })[1]
  return client and (states[client.id] or { state = 'starting' })
end

---@param bufnr integer
---@return string
function M.line(bufnr)
  local status = M.of(bufnr)
  if not status then
    return ''
  end
  local working = status.state == 'ready' or status.state == 'busy'
  local state = working and vim.g.draftwood_paused and 'paused' or status.state
  if type(status.progress) == 'number' and not working then
    state = ('%s %d%%'):format(state, math.floor(status.progress * 100))
  end
  return state == 'ready' and 'Draftwood' or 'Draftwood: ' .. state
end

return M
