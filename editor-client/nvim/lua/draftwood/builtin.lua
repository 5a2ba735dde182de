--- Ghost text by `vim.lsp.inline_completion` (Neovim 0.12): the editor asks and shows, we accept.
local insert = require('draftwood.insert')
local inline = vim.lsp.inline_completion

---@type draftwood.Ghost
local M = {}

---@param bufnr integer
function M.attach(_, bufnr)
  inline.enable(not vim.g.draftwood_paused, { bufnr = bufnr })
end

---@param bufnr integer
function M.detach(bufnr)
  inline.enable(false, { bufnr = bufnr })
end

function M.accept(bufnr, choose)
  return inline.get({
    bufnr = bufnr,
    -- Not the editor's own acceptance: that one inserts a suggestion into a text that has gone another way since.
    on_accept = function(item)
      local client = vim.lsp.get_client_by_id(item.client_id)
      if client then
        local cursor = vim.api.nvim_win_get_cursor(0)
        local encoding = client.offset_encoding
        local raw = {
          insertText = item.insert_text,
          range = item.range and item.range:to_lsp(encoding),
          command = item.command,
        }
        insert.put(client, bufnr, insert.suggestion(client, bufnr, raw, cursor), choose)
      end
    end,
  })
end

---@return boolean whether a suggestion is on screen
local function shown(bufnr)
  local namespace = vim.api.nvim_get_namespaces()['nvim.lsp.inline_completion']
  return namespace ~= nil and #vim.api.nvim_buf_get_extmarks(bufnr, namespace, 0, -1, { limit = 1 }) > 0
end

function M.turn(bufnr, by)
  if not shown(bufnr) then
    return false
  end
  inline.select({ bufnr = bufnr, count = by })
  return true
end

function M.dismiss(bufnr)
  local was_shown = shown(bufnr)
  -- Off and on again is the one public way to drop what is shown.
  inline.enable(false, { bufnr = bufnr })
  inline.enable(not vim.g.draftwood_paused, { bufnr = bufnr })
  return was_shown
end

function M.trigger(bufnr)
  vim.schedule(function()
    vim.api.nvim_exec_autocmds('CursorMovedI', { buffer = bufnr, modeline = false })
  end)
  return true
end

return M
