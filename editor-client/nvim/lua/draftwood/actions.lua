--- What can be done to a suggestion, whichever ghost text shows it: the one piece that keys and mappings use.
local text = require('draftwood.text')

--- A kind of ghost text. Functions that return a boolean say whether there was a suggestion to do it to.
---@class draftwood.Ghost
---@field attach fun(client: vim.lsp.Client, bufnr: integer)
---@field detach fun(bufnr: integer)
---@field accept fun(bufnr: integer, choose: fun(rest: string): string): boolean inserts what `choose` takes of it, and keeps showing what it leaves
---@field turn fun(bufnr: integer, by: integer): boolean shows the next alternative, or the one before
---@field dismiss fun(bufnr: integer): boolean
---@field trigger fun(bufnr: integer): boolean

---@type table<string, fun(ghost: draftwood.Ghost, bufnr: integer): boolean>
return {
  accept = function(ghost, bufnr)
    return ghost.accept(bufnr, text.all)
  end,
  accept_word = function(ghost, bufnr)
    return ghost.accept(bufnr, text.word)
  end,
  accept_line = function(ghost, bufnr)
    return ghost.accept(bufnr, text.line)
  end,
  next = function(ghost, bufnr)
    return ghost.turn(bufnr, 1)
  end,
  previous = function(ghost, bufnr)
    return ghost.turn(bufnr, -1)
  end,
  dismiss = function(ghost, bufnr)
    return ghost.dismiss(bufnr)
  end,
  trigger = function(ghost, bufnr)
    return ghost.trigger(bufnr)
  end,
}
