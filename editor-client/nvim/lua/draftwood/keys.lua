--- The insert-mode keys of an attached buffer. A key with nothing to do does what it did before.
local config = require('draftwood.config')
local M = {}

local mapped = {} ---@type table<integer, string[]>

--- What the key did before us, as the keys that an <expr> mapping returns.
---@param lhs string
---@param before table the dict of `maparg()`, empty without a mapping
---@return string
local function passed_through(lhs, before)
  if vim.tbl_isempty(before) then
    return lhs
  end
  if before.callback then
    local keys = before.callback()
    return before.expr == 1 and keys or ''
  end
  return before.expr == 1 and vim.api.nvim_eval(before.rhs) or before.rhs
end

---@param bufnr integer
function M.map(bufnr)
  if mapped[bufnr] or not config.options.keys then
    return
  end
  mapped[bufnr] = {}
  for action, lhs in pairs(config.options.keys) do
    if lhs then
      local before = vim.api.nvim_buf_call(bufnr, function()
        return vim.fn.maparg(lhs, 'i', false, true)
      end)
      vim.keymap.set('i', lhs, function()
        if require('draftwood')[action]() then
          return ''
        end
        return passed_through(lhs, before)
      end, { buffer = bufnr, expr = true, desc = 'Draftwood: ' .. action:gsub('_', ' ') })
      table.insert(mapped[bufnr], lhs)
    end
  end
end

---@param bufnr integer
function M.unmap(bufnr)
  for _, lhs in ipairs(mapped[bufnr] or {}) do
    pcall(vim.keymap.del, 'i', lhs, { buffer = bufnr })
  end
  mapped[bufnr] = nil
end

return M
