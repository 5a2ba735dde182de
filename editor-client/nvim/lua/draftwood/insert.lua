--- Puts a suggestion, or a part of it, into a buffer. Shared by both kinds of ghost text; knows nothing of how it is shown.
local text = require('draftwood.text')
local api = vim.api
local M = {}

---@class draftwood.Suggestion
---@field text string    what stands from `start` on once accepted; lines are joined by \n
---@field row integer    0-based line
---@field start integer  0-based byte column where the range starts
---@field tail integer   bytes after the cursor that are replaced (closing brackets that the editor typed itself)
---@field command? lsp.Command

---@param client vim.lsp.Client
---@param bufnr integer
---@param item lsp.InlineCompletionItem
---@param cursor integer[] (1, 0)-based, of the request
---@return draftwood.Suggestion
function M.suggestion(client, bufnr, item, cursor)
  local value = type(item.insertText) == 'table' and item.insertText.value or item.insertText
  local suggestion = {
    text = value:gsub('\r\n', '\n'),
    row = cursor[1] - 1,
    start = cursor[2],
    tail = 0,
    command = item.command,
  }
  if item.range then
    local row = item.range.start.line
    local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
    local function byte(position)
      return vim.str_byteindex(line, client.offset_encoding, position.character, false)
    end
    suggestion.row, suggestion.start = row, byte(item.range.start)
    suggestion.tail = math.max(0, byte(item.range['end']) - cursor[2])
  end
  return suggestion
end

--- What of the suggestion follows the cursor of the current window; nil where it no longer fits the text.
---@param bufnr integer
---@param suggestion draftwood.Suggestion
---@return string?
function M.rest(bufnr, suggestion)
  local row, column = unpack(api.nvim_win_get_cursor(0))
  if row - 1 ~= suggestion.row or column < suggestion.start then
    return nil
  end
  local line = api.nvim_buf_get_lines(bufnr, suggestion.row, suggestion.row + 1, false)[1] or ''
  if #line < column + suggestion.tail then
    return nil
  end
  return text.rest(suggestion.text, line:sub(suggestion.start + 1, column))
end

--- One `u` takes back what was accepted and nothing else.
local function new_undo_step()
  vim.cmd('let &g:undolevels = &g:undolevels')
end

--- Puts what `choose` takes of the rest at the cursor, and tells the server once all of it is there.
---@param client vim.lsp.Client
---@param bufnr integer
---@param suggestion draftwood.Suggestion
---@param choose fun(rest: string): string
---@return draftwood.Suggestion? left what is still to come
function M.put(client, bufnr, suggestion, choose)
  local rest = M.rest(bufnr, suggestion)
  if not rest then
    return nil
  end
  local part = choose(rest)
  local row, column = suggestion.row, api.nvim_win_get_cursor(0)[2]
  local tail = api.nvim_buf_get_text(bufnr, row, column, row, column + suggestion.tail, {})[1]
  local replaced = text.replaced(part, rest, tail)
  new_undo_step()
  api.nvim_buf_set_text(bufnr, row, column, row, column + replaced, vim.split(part, '\n', { plain = true }))
  local to_row, to_column = text.after(row, column, part)
  api.nvim_win_set_cursor(0, { to_row + 1, to_column })
  new_undo_step()
  if part == rest then
    if suggestion.command then
      client:exec_cmd(suggestion.command, { bufnr = bufnr })
    end
    return nil
  end
  return {
    text = rest:sub(#part + 1),
    row = to_row,
    start = to_column,
    tail = suggestion.tail - replaced,
    command = suggestion.command,
  }
end

return M
