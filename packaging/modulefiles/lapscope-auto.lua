-- Lets lapscope help every MPI program that is started while this is loaded: docs/sites.md. For Lmod; like the module lapscope
-- it finds its tree by its own place.

local function tree_of(file)
   return (file:gsub("/[^/]+/[^/]+/[^/]+/[^/]+$", ""))
end

local root = tree_of(myFileName())
if not isFile(pathJoin(root, "lib/lapscope/liblapscope.so")) then -- perhaps a link to it
   root = tree_of((capture("readlink -f '" .. myFileName() .. "'"):gsub("%s+$", "")))
end
local library = pathJoin(root, "lib/lapscope/liblapscope.so")

help([[
While this is loaded, lapscope looks whether MPI programs win time when their large messages move while
they compute, and sees to it where they do. It measures nothing else and changes nothing that a program
computes or prints. `module unload lapscope-auto` switches it off.

Where LAPSCOPE_DIR is set, it leaves a page there of what it decided and gained: lapscope report
]])
whatis("Name: lapscope-auto")
whatis("Version: " .. myModuleVersion())
whatis("Description: MPI messages that move while programs compute, where that gains")
conflict("lapscope-auto")

if mode() == "load" and not isFile(library) then
   LmodError(library .. " is missing: this file belongs into share/modulefiles/lapscope-auto of lapscope's tree; a copy " ..
             "elsewhere needs the tree's path, `local root`")
end

prepend_path("LD_PRELOAD", library)
setenv("LAPSCOPE_RECORD", "off")
setenv("LAPSCOPE_INJECT", "auto")
setenv("LAPSCOPE_QUIET", "on")
