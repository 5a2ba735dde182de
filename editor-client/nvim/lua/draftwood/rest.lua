--- Tells the server where the cursor rests, so that it reads there ahead: by the question that editors ask at a rest
--- anyway, what could be done here.
local M = {}

local METHOD = 'textDocument/codeAction'
local AUTOMATIC = 2

---@param bufnr integer
---@return integer
local function group(bufnr)
  return vim.api.nvim_create_augroup('draftwood.rest.' .. bufnr, {})
end

---@param client vim.lsp.Client
---@param bufnr integer
function M.attach(client, bufnr)
  vim.api.nvim_create_autocmd('CursorHold', {
    group = group(bufnr),
    buffer = bufnr,
    desc = 'Draftwood: the cursor rests',
    callback = function()
      if vim.g.draftwood_paused or not client:supports_method(METHOD) then
        return
      end
      local params = vim.lsp.util.make_range_params(0, client.offset_encoding)
      ---@diagnostic disable-next-line: inject-field
      params.context = { diagnostics = {}, triggerKind = AUTOMATIC }
      client:request(METHOD, params, function() end, bufnr)
    end,
  })
end

---@param bufnr integer
function M.detach(bufnr)
  vim.api.nvim_del_augroup_by_id(group(bufnr))
end

return M
