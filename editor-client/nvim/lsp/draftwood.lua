--- What code actions and code lenses run: asked by ourselves, so that the answer streams into its window.
---@return table<string, fun(command: lsp.Command, context: table)>
local function commands()
  local found = {}
  for name in pairs(require('draftwood.command').answering) do
    found['draftwood.' .. name] = function(command, context)
      require('draftwood.command').run_lsp(name, command, context)
    end
  end
  return found
end

--- The client's configuration for `vim.lsp.enable('draftwood')`; `vim.lsp.config('draftwood', {...})` changes any part of it.
---@type vim.lsp.Config
return {
  cmd = { 'draftwood', 'serve' },
  filetypes = { 'python' },
  root_markers = { 'pyproject.toml', 'setup.py', 'setup.cfg', '.git' },
  -- The server takes these at the start, and again whenever they change; |draftwood-settings|.
  settings = { draftwood = {} },
  -- Neovim 0.11 announces none, but the plugin shows it: without this the server offers completion items instead.
  capabilities = { textDocument = { inlineCompletion = { dynamicRegistration = false } } },
  before_init = function(params, config)
    if not require('draftwood').ghost() then
      params.capabilities.textDocument.inlineCompletion = nil
    end
    params.initializationOptions = vim.tbl_get(config, 'settings', 'draftwood') or vim.empty_dict()
  end,
  commands = commands(),
  handlers = {
    ['draftwood/status'] = function(_, status, context)
      require('draftwood.status').received(context.client_id, status)
    end,
    ['$/progress'] = function(err, result, context)
      -- Answers stream on tokens of our own; everything else is the editor's business.
      if not require('draftwood.answer').chunk(result) then
        vim.lsp.handlers['$/progress'](err, result, context)
      end
    end,
  },
  on_exit = function(code, signal, client_id)
    vim.schedule(function()
      require('draftwood.status').exited(client_id, code ~= 0 or signal ~= 0)
    end)
  end,
}
