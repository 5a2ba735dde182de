--- Answers: asks for one, streams its Markdown into a window, offers the change that it proposes.
local config = require('draftwood.config')
local api = vim.api
local M = {}

---@class draftwood.Running
---@field client vim.lsp.Client
---@field request? integer
---@field bufnr integer
---@field streamed string
---@field line integer where the text begins, 0-based

local running = {} ---@type table<string, draftwood.Running>
local serial = 0

---@param answer draftwood.Running
local function draw(answer, footer)
  if not api.nvim_buf_is_valid(answer.bufnr) then
    return
  end
  local lines = vim.split(answer.streamed, '\n', { plain = true })
  if footer then
    vim.list_extend(lines, { '', footer })
  end
  vim.bo[answer.bufnr].modifiable = true
  api.nvim_buf_set_lines(answer.bufnr, answer.line, -1, false, lines)
  vim.bo[answer.bufnr].modifiable = false
end

--- A piece of a running answer. Returns false where the progress is of something else.
---@param progress { token: string, value: any }
---@return boolean
function M.chunk(progress)
  local answer = running[progress.token]
  if not answer then
    return false
  end
  answer.streamed = answer.streamed .. (progress.value.text or '')
  draw(answer)
  return true
end

---@param title string
---@return integer bufnr
local function open(title)
  local bufnr = api.nvim_create_buf(false, true)
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.bo[bufnr].filetype = 'markdown'
  local from = api.nvim_get_current_win()
  if config.options.answer.open == 'float' then
    local width, height = math.floor(vim.o.columns * 0.7), math.floor(vim.o.lines * 0.6)
    api.nvim_open_win(bufnr, true, {
      relative = 'editor',
      width = width,
      height = height,
      row = math.floor((vim.o.lines - height) / 2),
      col = math.floor((vim.o.columns - width) / 2),
      border = 'rounded',
      title = ' ' .. title .. ' ',
    })
  else
    vim.cmd(config.options.answer.open == 'split' and 'botright split' or 'botright vsplit')
    api.nvim_win_set_buf(0, bufnr)
  end
  vim.wo.wrap = true
  vim.wo.linebreak = true
  vim.wo.number = false
  vim.wo.relativenumber = false
  vim.wo.conceallevel = 2
  api.nvim_buf_set_lines(bufnr, 0, -1, false, { '# ' .. title, '' })
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = bufnr, desc = 'Close the answer' })
  vim.keymap.set('n', '<C-c>', M.stop, { buffer = bufnr, desc = 'Stop the answer' })
  if config.options.answer.open ~= 'float' then
    api.nvim_set_current_win(from)
  end
  return bufnr
end

--- Neovim does not tell when a request was cancelled, so its end is drawn here.
---@param token string
local function cancel(token)
  local answer = running[token]
  running[token] = nil
  if answer and answer.request then
    answer.client:cancel_request(answer.request)
    draw(answer, '*Stopped.*')
  end
end

--- Stops every answer that is being written.
function M.stop()
  for _, token in ipairs(vim.tbl_keys(running)) do
    cancel(token)
  end
end

---@param client vim.lsp.Client
---@param name string
---@param target { textDocument: lsp.TextDocumentIdentifier, range: lsp.Range, arguments: table }
---@param bufnr integer the buffer that the answer is about
function M.ask(client, name, target, bufnr)
  M.stop()
  serial = serial + 1
  local token = ('draftwood-%d-%d'):format(vim.fn.getpid(), serial)
  local file = vim.fn.fnamemodify(api.nvim_buf_get_name(bufnr), ':t')
  local first, last = target.range.start.line + 1, target.range['end'].line + 1
  local place = first == last and tostring(first) or ('%d–%d'):format(first, last)
  local title = ('%s · %s:%s'):format(name, file, place)
  local answer = { client = client, bufnr = open(title), streamed = '', line = 2 }
  running[token] = answer
  local tick = api.nvim_buf_get_changedtick(bufnr)
  local params = vim.tbl_extend('error', target, { command = 'draftwood.' .. name, token = token })
  local sent, request = client:request('draftwood/answer', params, function(err, result)
    running[token] = nil
    if err then
      draw(answer, ('*Failed: %s*'):format(err.message))
      return
    end
    answer.streamed = result.text or answer.streamed
    draw(answer)
    if result.edit and result.edit ~= vim.NIL then
      require('draftwood.proposal').show(client, result.edit, bufnr, tick)
    end
  end, bufnr)
  answer.request = sent and request or nil
  api.nvim_create_autocmd('BufWipeout', {
    buffer = answer.bufnr,
    once = true,
    callback = function()
      cancel(token)
    end,
  })
end

return M
