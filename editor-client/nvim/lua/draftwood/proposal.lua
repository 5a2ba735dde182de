--- Shows a proposed change as a unified diff and applies it once the user says yes.
local api = vim.api
local M = {}

---@param edit lsp.WorkspaceEdit
---@return table<string, lsp.TextEdit[]> edits by uri
local function edits_of(edit)
  local found = {}
  for uri, edits in pairs(edit.changes or {}) do
    found[uri] = edits
  end
  for _, change in ipairs(edit.documentChanges or {}) do
    if change.textDocument then
      found[change.textDocument.uri] = change.edits
    end
  end
  return found
end

--- The text of a file with edits made, on a scratch buffer: the file itself stays as it is.
---@return string before, string after
local function texts(uri, edits, encoding)
  local lines = {}
  local bufnr = vim.uri_to_bufnr(uri)
  if api.nvim_buf_is_loaded(bufnr) then
    lines = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  elseif vim.uv.fs_stat(vim.uri_to_fname(uri)) then
    lines = vim.fn.readfile(vim.uri_to_fname(uri))
  end
  local scratch = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(scratch, 0, -1, false, lines)
  vim.lsp.util.apply_text_edits(edits, scratch, encoding)
  local after = api.nvim_buf_get_lines(scratch, 0, -1, false)
  api.nvim_buf_delete(scratch, { force = true })
  return table.concat(lines, '\n') .. '\n', table.concat(after, '\n') .. '\n'
end

---@param edit lsp.WorkspaceEdit
---@param encoding string
---@return string[]
local function diff_of(edit, encoding)
  local lines = {}
  for uri, edits in pairs(edits_of(edit)) do
    local before, after = texts(uri, edits, encoding)
    local name = vim.fn.fnamemodify(vim.uri_to_fname(uri), ':~:.')
    vim.list_extend(lines, { '--- ' .. name, '+++ ' .. name })
    local diff = vim.text.diff or vim.diff
    vim.list_extend(lines, vim.split(diff(before, after), '\n', { plain = true, trimempty = true }))
  end
  return lines
end

--- `a` applies, `q` discards. `tick` is the changedtick of the buffer that the change was computed for.
---@param client vim.lsp.Client
---@param edit lsp.WorkspaceEdit
---@param about integer
---@param tick integer
function M.show(client, edit, about, tick)
  local lines = diff_of(edit, client.offset_encoding)
  local bufnr = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].filetype = 'diff'
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.bo[bufnr].modifiable = false
  vim.cmd('botright split')
  api.nvim_win_set_buf(0, bufnr)
  -- Above the text, so that a long change cannot scroll it away.
  vim.wo.winbar = '%#Title#Proposed change%*  a: apply   q: discard'
  api.nvim_win_set_height(0, math.min(#lines + 1, math.floor(vim.o.lines / 2)))
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = bufnr, desc = 'Discard the proposed change' })
  vim.keymap.set('n', 'a', function()
    vim.cmd.close()
    if not api.nvim_buf_is_valid(about) or api.nvim_buf_get_changedtick(about) ~= tick then
      vim.notify('Draftwood: the file has changed since this was proposed. Ask again.', vim.log.levels.WARN)
      return
    end
    vim.lsp.util.apply_workspace_edit(edit, client.offset_encoding)
  end, { buffer = bufnr, desc = 'Apply the proposed change' })
end

return M
