--- Pure functions over the text of suggestions. Knows strings in bytes; no buffer, no client.
local M = {}

---@param rest string
---@return string
function M.all(rest)
  return rest
end

--- The next word with the white space before it, or the next run of other characters.
---@param rest string
---@return string
function M.word(rest)
  return rest:match('^%s*[%w_\128-\255]+') or rest:match('^%s*[^%w%s_\128-\255]+') or rest
end

--- To the end of the line; at the end of a line, the next one.
---@param rest string
---@return string
function M.line(rest)
  return rest:match('^\n*[^\n]*')
end

--- What is still to come of `text` when `typed` stands before the cursor already; nil: it does not fit, or nothing is left.
---@param text string
---@param typed string
---@return string?
function M.rest(text, typed)
  if text:sub(1, #typed) == typed and #text > #typed then
    return text:sub(#typed + 1)
  end
end

--- How much of `tail`, the text after the cursor that a suggestion replaces, `part` of its `rest` replaces.
--- A whole first line takes all of it; a word takes the closing brackets that it brings itself.
---@param part string
---@param rest string
---@param tail string
---@return integer bytes
function M.replaced(part, rest, tail)
  if #part >= #rest:match('^[^\n]*') then
    return #tail
  end
  local taken = 0
  for character in part:gmatch('.') do
    if character == tail:sub(taken + 1, taken + 1) then
      taken = taken + 1
    end
  end
  return taken
end

--- Where the cursor stands after `text` was put at (row, column), 0-based, in bytes.
---@return integer row, integer column
function M.after(row, column, text)
  local lines = vim.split(text, '\n', { plain = true })
  if #lines == 1 then
    return row, column + #text
  end
  return row + #lines - 1, #lines[#lines]
end

return M
