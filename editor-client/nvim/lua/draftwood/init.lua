--- Draftwood for Neovim: joins the editor to the server. All logic about code lives in the server.
local config = require('draftwood.config')
local M = {}

--- Options of the plugin (optional); see |draftwood-options|. Starts nothing: that is `vim.lsp.enable('draftwood')`.
---@param options? draftwood.Options
function M.setup(options)
  config.set(options)
end

--- Which ghost text serves: the editor's own where it has one (Neovim 0.12), ours elsewhere.
---@return draftwood.Ghost?
function M.ghost()
  local choice = config.options.ghost_text
  if not choice then
    return nil
  end
  local builtin = choice == 'builtin' or (choice == 'auto' and vim.lsp.inline_completion ~= nil)
  return require(builtin and 'draftwood.builtin' or 'draftwood.ghost')
end

---@param client vim.lsp.Client
---@param bufnr integer
function M.attach(client, bufnr)
  require('draftwood.rest').attach(client, bufnr)
  local ghost = M.ghost()
  if ghost and client:supports_method('textDocument/inlineCompletion') then
    ghost.attach(client, bufnr)
    require('draftwood.keys').map(bufnr)
  end
end

--- A restarted server may be attached before the one that died is told to be gone; then there is nothing to undo.
---@param client vim.lsp.Client
---@param bufnr integer
function M.detach(client, bufnr)
  for _, other in ipairs(vim.lsp.get_clients({ name = 'draftwood', bufnr = bufnr })) do
    if other.id ~= client.id then
      return
    end
  end
  require('draftwood.rest').detach(bufnr)
  local ghost = M.ghost()
  if ghost and vim.api.nvim_buf_is_valid(bufnr) then
    ghost.detach(bufnr)
    require('draftwood.keys').unmap(bufnr)
  end
end

--- One word or two for a status line, '' where Draftwood does not serve this buffer.
---@param bufnr? integer
---@return string
function M.status(bufnr)
  return require('draftwood.status').line(bufnr or 0)
end

--- Changes settings of the running servers; they need no restart for it. See |draftwood-settings|.
---@param settings table<string, any>
function M.configure(settings)
  vim.lsp.config('draftwood', { settings = { draftwood = settings } })
  for _, client in ipairs(vim.lsp.get_clients({ name = 'draftwood' })) do
    client.settings = vim.tbl_deep_extend('force', client.settings or {}, { draftwood = settings })
    client:notify('workspace/didChangeConfiguration', { settings = client.settings })
  end
end

--- Pauses suggestions in this Neovim, or resumes them.
function M.toggle()
  vim.g.draftwood_paused = not vim.g.draftwood_paused
  local ghost = M.ghost()
  if ghost then
    ghost.dismiss(vim.api.nvim_get_current_buf())
  end
  vim.cmd.redrawstatus()
end

for name, act in pairs(require('draftwood.actions')) do
  --- Usable in a mapping of one's own: returns whether there was anything to do it to.
  ---@return boolean
  M[name] = function()
    local ghost = M.ghost()
    return ghost ~= nil and act(ghost, vim.api.nvim_get_current_buf())
  end
end

return M
