if vim.g.loaded_draftwood then
  return
end
vim.g.loaded_draftwood = true

vim.api.nvim_create_user_command('Draftwood', function(invocation)
  require('draftwood.command').run(invocation)
end, {
  nargs = '+',
  range = true,
  desc = 'Draftwood: a local coding assistant',
  complete = function(lead, line)
    return require('draftwood.command').complete(lead, line)
  end,
})

vim.api.nvim_set_hl(0, 'DraftwoodGhost', { link = 'Comment', default = true })

local group = vim.api.nvim_create_augroup('draftwood', {})
vim.api.nvim_create_autocmd('LspAttach', {
  group = group,
  desc = 'Draftwood: suggestions and keys for this buffer',
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'draftwood' then
      require('draftwood').attach(client, event.buf)
    end
  end,
})
vim.api.nvim_create_autocmd('LspDetach', {
  group = group,
  desc = 'Draftwood: no suggestions without the server',
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == 'draftwood' then
      require('draftwood').detach(client, event.buf)
    end
  end,
})
