--- Ghost text of our own, for a Neovim without `vim.lsp.inline_completion`: asks, shows, accepts.
--- A suggestion is shown only against the text it was computed for, or a text that types it forward.
local config = require('draftwood.config')
local insert = require('draftwood.insert')
local text = require('draftwood.text')
local api = vim.api
local METHOD = 'textDocument/inlineCompletion'
local INVOKED, AUTOMATIC = 1, 2

---@type draftwood.Ghost
local M = {}

---@class draftwood.State
---@field client vim.lsp.Client
---@field group integer
---@field suggestions draftwood.Suggestion[]
---@field index integer
---@field timer? uv.uv_timer_t
---@field request? integer

local namespace = api.nvim_create_namespace('draftwood.ghost')
local states = {} ---@type table<integer, draftwood.State>

---@param bufnr integer
---@param state draftwood.State
local function quiet(bufnr, state)
  if state.timer and not state.timer:is_closing() then
    state.timer:stop()
    state.timer:close()
  end
  state.timer = nil
  if state.request then
    state.client:cancel_request(state.request)
    state.request = nil
  end
  api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
end

--- The suggestion that is on screen and what of it follows the cursor; nil where none fits the text.
---@param bufnr integer
---@return draftwood.Suggestion?, string?
local function current(bufnr)
  local state = states[bufnr]
  local suggestion = state and state.suggestions[state.index]
  if not suggestion or api.nvim_get_current_buf() ~= bufnr then
    return nil
  end
  local rest = insert.rest(bufnr, suggestion)
  return rest and suggestion or nil, rest
end

---@param bufnr integer
local function draw(bufnr)
  api.nvim_buf_clear_namespace(bufnr, namespace, 0, -1)
  local suggestion, rest = current(bufnr)
  if not suggestion or not rest then
    return
  end
  local lines = vim.split(rest, '\n', { plain = true })
  local virtual = vim.tbl_map(function(line)
    return { { line, 'DraftwoodGhost' } }
  end, vim.list_slice(lines, 2))
  local column = api.nvim_win_get_cursor(0)[2]
  api.nvim_buf_set_extmark(bufnr, namespace, suggestion.row, column, {
    virt_text = { { lines[1], 'DraftwoodGhost' } },
    -- What the suggestion replaces lies under it; with nothing to replace the rest of the line moves aside.
    virt_text_pos = suggestion.tail > 0 and 'overlay' or 'inline',
    virt_lines = virtual,
    hl_mode = 'combine',
  })
end

---@param bufnr integer
---@param kind integer
local function ask(bufnr, kind)
  local state = states[bufnr]
  if not state or api.nvim_get_current_buf() ~= bufnr or vim.g.draftwood_paused then
    return
  end
  local client, cursor = state.client, api.nvim_win_get_cursor(0)
  local tick = api.nvim_buf_get_changedtick(bufnr)
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  ---@diagnostic disable-next-line: inject-field
  params.context = { triggerKind = kind }
  -- The buffer's number and not 0: for 0 Neovim 0.11 does not first send the changes that are still pending.
  local sent, request = client:request(METHOD, params, function(err, result)
    if states[bufnr] ~= state then
      return
    end
    state.request = nil
    if err or api.nvim_buf_get_changedtick(bufnr) ~= tick or not api.nvim_get_mode().mode:match('^i') then
      return
    end
    state.suggestions = vim.tbl_map(function(item)
      return insert.suggestion(client, bufnr, item, cursor)
    end, result and (result.items or result) or {})
    state.index = 1
    draw(bufnr)
  end, bufnr)
  state.request = sent and request or nil
end

--- The text or the cursor moved: what still fits stays on screen without flicker, and better is asked for.
---@param bufnr integer
local function moved(bufnr)
  local state = states[bufnr]
  if not state then
    return
  end
  quiet(bufnr, state)
  if current(bufnr) then
    draw(bufnr)
  else
    state.suggestions = {}
  end
  state.timer = vim.defer_fn(function()
    ask(bufnr, AUTOMATIC)
  end, config.options.debounce_ms)
end

---@param client vim.lsp.Client
---@param bufnr integer
function M.attach(client, bufnr)
  M.detach(bufnr)
  local group = api.nvim_create_augroup('draftwood.ghost.' .. bufnr, {})
  states[bufnr] = { client = client, group = group, suggestions = {}, index = 1 }
  api.nvim_create_autocmd({ 'InsertEnter', 'TextChangedI', 'TextChangedP', 'CursorMovedI' }, {
    group = group,
    buffer = bufnr,
    callback = function()
      moved(bufnr)
    end,
  })
  api.nvim_create_autocmd({ 'InsertLeave', 'BufLeave' }, {
    group = group,
    buffer = bufnr,
    callback = function()
      M.dismiss(bufnr)
    end,
  })
end

---@param bufnr integer
function M.detach(bufnr)
  local state = states[bufnr]
  if state then
    quiet(bufnr, state)
    states[bufnr] = nil
    api.nvim_del_augroup_by_id(state.group)
  end
end

function M.accept(bufnr, choose)
  local suggestion, rest = current(bufnr)
  if not suggestion then
    return false
  end
  vim.schedule(function() -- an <expr> mapping may not change the text
    local state = states[bufnr]
    local still, now = current(bufnr)
    if not state or still ~= suggestion or now ~= rest then
      return
    end
    local left = insert.put(state.client, bufnr, suggestion, choose)
    state.suggestions, state.index = { left }, 1
    draw(bufnr)
  end)
  return true
end

function M.turn(bufnr, by)
  local state = states[bufnr]
  if not current(bufnr) or #state.suggestions < 2 then
    return false
  end
  state.index = (state.index - 1 + by) % #state.suggestions + 1
  vim.schedule(function()
    draw(bufnr)
  end)
  return true
end

function M.dismiss(bufnr)
  local state = states[bufnr]
  local shown = current(bufnr) ~= nil
  if state then
    quiet(bufnr, state)
    state.suggestions = {}
  end
  return shown
end

function M.trigger(bufnr)
  if not states[bufnr] then
    return false
  end
  vim.schedule(function()
    ask(bufnr, INVOKED)
  end)
  return true
end

return M
