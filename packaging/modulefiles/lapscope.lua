-- lapscope for Lmod. It lies in share/modulefiles/lapscope of the tree that it stands for and finds that by its own
-- place. Where a copy of it lies elsewhere, write the tree's path here: local root = "/opt/lapscope"

local function tree_of(file)
   return (file:gsub("/[^/]+/[^/]+/[^/]+/[^/]+$", ""))
end

local root = tree_of(myFileName())
if not isFile(pathJoin(root, "bin/lapscope")) then -- perhaps a link to it
   root = tree_of((capture("readlink -f '" .. myFileName() .. "'"):gsub("%s+$", "")))
end

help([[
lapscope reports how much of an MPI program's communication is hidden behind computation, and why the
rest is not. It works with the MPI that the program was built with: load that one's module as always.

    lapscope run -- mpirun -n 4 ./app
    lapscope report
    man lapscope
]])
whatis("Name: lapscope")
whatis("Version: " .. myModuleVersion())
whatis("Description: overlap of MPI communication and computation, for binaries as they are")
conflict("lapscope")

if mode() == "load" and not isFile(pathJoin(root, "bin/lapscope")) then
   LmodError(root .. "/bin/lapscope is missing: this file belongs into share/modulefiles/lapscope of lapscope's tree; " ..
             "a copy elsewhere needs the tree's path, `local root`")
end

local function is_set(name)
   return (os.getenv(name) or "") ~= ""
end

-- man looks beside every bin in PATH, unless MANPATH says otherwise
prepend_path("PATH", pathJoin(root, "bin"))
if is_set("MANPATH") then
   append_path("MANPATH", pathJoin(root, "share/man"))
end

-- bash and fish look for completions there. Where the variable is not set, it stands for two directories that have to
-- stay; the mark says that they came from here and go again.
if not is_set("XDG_DATA_DIRS") or is_set("_LAPSCOPE_MODULE") then
   setenv("_LAPSCOPE_MODULE", "data")
   append_path("XDG_DATA_DIRS", "/usr/local/share")
   append_path("XDG_DATA_DIRS", "/usr/share")
end
prepend_path("XDG_DATA_DIRS", pathJoin(root, "share"))
