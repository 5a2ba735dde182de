--- `:checkhealth draftwood`
local M = {}
local health = vim.health

local function check_editor()
  health.start('Editor')
  if vim.fn.has('nvim-0.11') == 0 then
    health.error('Neovim 0.11 or newer is needed')
    return
  end
  health.ok('Neovim ' .. tostring(vim.version()))
  local builtin = vim.lsp.inline_completion ~= nil
  health.ok(builtin and 'ghost text: vim.lsp.inline_completion' or "ghost text: the plugin's own")
end

local function check_program()
  health.start('Server program')
  local cmd = vim.lsp.config.draftwood and vim.lsp.config.draftwood.cmd
  if type(cmd) == 'function' then
    health.info('started by a function of your configuration')
  elseif not cmd then
    health.error('no configuration found', { 'is the plugin on the runtimepath?' })
  elseif vim.fn.executable(cmd[1]) == 0 then
    health.error(("'%s' is not executable"):format(cmd[1]), {
      'install the server: pip install draftwood',
      "or name it: vim.lsp.config('draftwood', { cmd = { '/path/to/draftwood', 'serve' } })",
    })
  else
    health.ok(vim.fn.exepath(cmd[1]))
  end
  if not vim.lsp.is_enabled or vim.lsp.is_enabled('draftwood') then
    health.ok('enabled')
  else
    health.warn('not enabled', { "call vim.lsp.enable('draftwood')" })
  end
end

local function check_clients()
  health.start('Running servers')
  local clients = vim.lsp.get_clients({ name = 'draftwood' })
  if #clients == 0 then
    health.info('none: open a Python file')
  end
  for _, client in ipairs(clients) do
    local bufnr = next(client.attached_buffers)
    local status = bufnr and require('draftwood.status').of(bufnr) or { state = 'starting' }
    local report = status.state == 'error' and health.error or health.ok
    report(('%s, model %s, positions in %s'):format(status.state, status.model or '?', client.offset_encoding))
    if not client:supports_method('textDocument/inlineCompletion') then
      health.error('this server offers no inline completion')
    end
  end
end

local function check_keys()
  health.start('Keys')
  local keys = require('draftwood.config').options.keys
  if not keys then
    health.info('none, by your options')
    return
  end
  for action, lhs in vim.spairs(keys) do
    health.info(('%s: %s'):format(action, lhs or 'none'))
  end
end

function M.check()
  check_editor()
  check_program()
  check_clients()
  check_keys()
end

return M
