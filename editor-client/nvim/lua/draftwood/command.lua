--- `:Draftwood …`: the subcommands, each a few lines.
local M = {}

local NAME = 'draftwood'
--- The subcommands whose answer the server writes.
M.answering = { explain = true, fix = true, docstring = true, tests = true, edit = true, reason = true }
--- The subcommands that need words, where they go, and what is asked when there are none.
local WORDS = {
  edit = { key = 'instruction', prompt = 'What should change? ' },
  reason = { key = 'question', prompt = 'Question: ' },
  fix = { key = 'message' },
}

local function warn(message)
  vim.notify('Draftwood: ' .. message, vim.log.levels.WARN)
end

---@return vim.lsp.Client?
local function client_here()
  return vim.lsp.get_clients({ name = NAME, bufnr = 0 })[1]
end

---@param client vim.lsp.Client
---@return table<string, true> the answering commands that this server has
local function offered(client)
  local found = {}
  for _, command in ipairs(vim.tbl_get(client, 'server_capabilities', 'executeCommandProvider', 'commands') or {}) do
    found[command:gsub('^draftwood%.', '')] = true
  end
  return found
end

---@param client vim.lsp.Client
---@param invocation table
local function target(client, invocation)
  local encoding = client.offset_encoding
  local given = invocation.range > 0
  local range = vim.lsp.util.make_range_params(0, encoding).range
  if given then
    local last = vim.api.nvim_buf_get_lines(0, invocation.line2 - 1, invocation.line2, false)[1] or ''
    range = {
      start = { line = invocation.line1 - 1, character = 0 },
      ['end'] = { line = invocation.line2 - 1, character = vim.str_utfindex(last, encoding) },
    }
  end
  return { textDocument = vim.lsp.util.make_text_document_params(0), range = range, arguments = vim.empty_dict() }
end

--- The problems that other servers show on the lines of a range.
---@param range lsp.Range
local function diagnostics(range)
  local here = vim.tbl_filter(function(diagnostic)
    return diagnostic.lnum <= range['end'].line and (diagnostic.end_lnum or diagnostic.lnum) >= range.start.line
  end, vim.diagnostic.get(0))
  return vim.tbl_map(function(diagnostic)
    return {
      range = {
        start = { line = diagnostic.lnum, character = diagnostic.col },
        ['end'] = { line = diagnostic.end_lnum or diagnostic.lnum, character = diagnostic.end_col or diagnostic.col },
      },
      message = diagnostic.message,
      source = diagnostic.source,
    }
  end, here)
end

--- Asks the server, and before that the user where a command needs words and has none.
---@param client vim.lsp.Client
---@param name string
---@param words string
---@param about { textDocument: lsp.TextDocumentIdentifier, range: lsp.Range, arguments: table }
---@param bufnr integer
local function send(client, name, words, about, bufnr)
  local wants = WORDS[name]
  if wants and wants.prompt and words == '' then
    vim.ui.input({ prompt = wants.prompt }, function(said)
      if said and said ~= '' then
        about.arguments[wants.key] = said
        require('draftwood.answer').ask(client, name, about, bufnr)
      end
    end)
    return
  end
  if wants and words ~= '' then
    about.arguments[wants.key] = words
  end
  require('draftwood.answer').ask(client, name, about, bufnr)
end

---@param name string
---@param words string
---@param invocation table
local function ask(name, words, invocation)
  local client = client_here()
  if not client then
    return warn('no server for this buffer. `:Draftwood start` starts it.')
  end
  if not offered(client)[name] then
    return warn(("this server has no '%s'"):format(name))
  end
  local about = target(client, invocation)
  if name == 'fix' then
    about.arguments.diagnostics = diagnostics(about.range)
  end
  send(client, name, words, about, vim.api.nvim_get_current_buf())
end

--- A command that a code action or a code lens of the server names: its one argument says what it is about.
---@param name string
---@param command lsp.Command
---@param context { bufnr: integer, client_id: integer }
function M.run_lsp(name, command, context)
  local client = vim.lsp.get_client_by_id(context.client_id)
  local given = vim.deepcopy((command.arguments or {})[1] or {})
  if not client or not given.range then
    return warn(("'%s' does not say what it is about"):format(command.title))
  end
  local about = { textDocument = given.textDocument, range = given.range }
  given.textDocument, given.range = nil, nil
  about.arguments = vim.tbl_isempty(given) and vim.empty_dict() or given
  send(client, name, '', about, context.bufnr)
end

--- Also attaches the buffers that are open already.
function M.start()
  vim.lsp.enable(NAME)
end

function M.stop()
  require('draftwood.answer').stop()
  vim.lsp.enable(NAME, false)
  for _, client in ipairs(vim.lsp.get_clients({ name = NAME })) do
    client:stop()
  end
end

function M.restart()
  require('draftwood.status').forgive()
  M.stop()
  vim.wait(3000, function()
    return #vim.lsp.get_clients({ name = NAME }) == 0
  end, 20)
  M.start()
end

function M.status()
  local client, status = client_here(), require('draftwood.status').of(0)
  if not client or not status then
    return warn('no server for this buffer')
  end
  local lines = { '**' .. require('draftwood').status() .. '**', status.message }
  local function show()
    vim.lsp.util.open_floating_preview(lines, 'markdown', { border = 'rounded', focus_id = 'draftwood' })
  end
  if not offered(client).stats then
    return show()
  end
  local request = { command = 'draftwood.stats', arguments = { vim.empty_dict() } }
  client:request('workspace/executeCommand', request, function(_, stats)
    for name, value in vim.spairs(stats or {}) do
      table.insert(lines, ('- %s: %s'):format(name:gsub('_', ' '), tostring(value)))
    end
    show()
  end, vim.api.nvim_get_current_buf())
end

function M.log()
  vim.cmd.tabedit(vim.lsp.log.get_filename())
end

--- Checks the installation with the server's own command, in a terminal.
function M.doctor()
  local cmd = vim.deepcopy(vim.lsp.config[NAME].cmd)
  if type(cmd) ~= 'table' then
    return warn('the server is started by a function; run `draftwood doctor` in a terminal')
  end
  vim.cmd('botright split')
  vim.cmd.enew()
  vim.fn.jobstart(vim.list_extend(vim.tbl_filter(function(word)
    return word ~= 'serve'
  end, cmd), { 'doctor' }), { term = true })
end

function M.pause()
  require('draftwood').toggle()
end

local SUBCOMMANDS = {
  start = M.start,
  stop = M.stop,
  restart = M.restart,
  status = M.status,
  log = M.log,
  doctor = M.doctor,
  pause = M.pause,
}

---@param invocation table as |nvim_create_user_command()| hands it over
function M.run(invocation)
  local name = invocation.fargs[1]
  local words = table.concat(vim.list_slice(invocation.fargs, 2), ' ')
  if M.answering[name] then
    ask(name, words, invocation)
  elseif SUBCOMMANDS[name] then
    SUBCOMMANDS[name]()
  else
    warn(("no subcommand '%s'"):format(name))
  end
end

---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  if line:match('Draftwood%s+%S+%s') then
    return {}
  end
  local client = client_here()
  local names = vim.tbl_keys(SUBCOMMANDS)
  for name in pairs(M.answering) do
    if not client or offered(client)[name] then
      table.insert(names, name)
    end
  end
  table.sort(names)
  return vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, names)
end

return M
