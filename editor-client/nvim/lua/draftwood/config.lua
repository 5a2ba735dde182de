--- The plugin's own options. What the server is to do is in its settings: |draftwood-settings|.
local M = {}

---@class draftwood.Keys
---@field accept string|false
---@field accept_word string|false
---@field accept_line string|false
---@field next string|false
---@field previous string|false
---@field dismiss string|false
---@field trigger string|false

---@class draftwood.Options
---@field keys? draftwood.Keys|false
---@field ghost_text? 'auto'|'builtin'|'own'|false
---@field debounce_ms? integer
---@field answer? { open: 'split'|'vsplit'|'float' }

M.defaults = {
  keys = {
    accept = '<Tab>',
    accept_word = '<M-w>',
    accept_line = '<M-l>',
    next = '<M-]>',
    previous = '<M-[>',
    dismiss = '<C-]>',
    trigger = '<M-\\>',
  },
  ghost_text = 'auto',
  debounce_ms = 75,
  answer = { open = 'vsplit' },
}

---@type draftwood.Options
M.options = vim.deepcopy(M.defaults)

--- Replaces the options; what is not named keeps its default.
---@param given? draftwood.Options
function M.set(given)
  given = given or {}
  vim.validate('keys', given.keys, { 'table', 'boolean' }, true)
  vim.validate('ghost_text', given.ghost_text, { 'string', 'boolean' }, true)
  vim.validate('debounce_ms', given.debounce_ms, 'number', true)
  vim.validate('answer', given.answer, 'table', true)
  for name in pairs(given) do
    if M.defaults[name] == nil then
      vim.notify(("draftwood: unknown option '%s'"):format(name), vim.log.levels.WARN)
    end
  end
  M.options = vim.tbl_deep_extend('force', M.defaults, given)
end

return M
