#%Module1.0
# lapscope for Environment Modules. It lies in share/modulefiles/lapscope of the tree that it stands for and finds that
# by its own place. Where a copy of it lies elsewhere, write the tree's path here: set root /opt/lapscope

set file [file normalize $ModulesCurrentModulefile]
while {[file type $file] eq "link"} {
    set file [file normalize [file join [file dirname $file] [file readlink $file]]]
}
set root [file dirname [file dirname [file dirname [file dirname $file]]]]

proc ModulesHelp {} {
    puts stderr "lapscope reports how much of an MPI program's communication is hidden behind computation, and why the
rest is not. It works with the MPI that the program was built with: load that one's module as always.

    lapscope run -- mpirun -n 4 ./app
    lapscope report
    man lapscope"
}
module-whatis "lapscope: overlap of MPI communication and computation, for binaries as they are"
conflict lapscope

if {[module-info mode load] && ![file executable $root/bin/lapscope]} {
    puts stderr "lapscope: $root/bin/lapscope is missing: this file belongs into share/modulefiles/lapscope of lapscope's\
        tree; a copy elsewhere needs the tree's path, `set root`"
    break
}

# man looks beside every bin in PATH, unless MANPATH says otherwise
prepend-path PATH $root/bin
if {[info exists env(MANPATH)] && $env(MANPATH) ne ""} {
    append-path MANPATH $root/share/man
}

# bash and fish look for completions there. Where the variable is not set, it stands for two directories that have to
# stay; the mark says that they came from here and go again.
if {![info exists env(XDG_DATA_DIRS)] || $env(XDG_DATA_DIRS) eq "" || [info exists env(_LAPSCOPE_MODULE)]} {
    setenv _LAPSCOPE_MODULE data
    append-path XDG_DATA_DIRS /usr/local/share
    append-path XDG_DATA_DIRS /usr/share
}
prepend-path XDG_DATA_DIRS $root/share
