#%Module1.0
# Lets lapscope help every MPI program that is started while this is loaded: docs/sites.md. For Environment Modules; like the
# module lapscope it finds its tree by its own place.

set file [file normalize $ModulesCurrentModulefile]
while {[file type $file] eq "link"} {
    set file [file normalize [file join [file dirname $file] [file readlink $file]]]
}
set root [file dirname [file dirname [file dirname [file dirname $file]]]]
set library $root/lib/lapscope/liblapscope.so

proc ModulesHelp {} {
    puts stderr "While this is loaded, lapscope looks whether MPI programs win time when their large messages move while
they compute, and sees to it where they do. It measures nothing else and changes nothing that a program
computes or prints. `module unload lapscope-auto` switches it off.

Where LAPSCOPE_DIR is set, it leaves a page there of what it decided and gained: lapscope report"
}
module-whatis "lapscope-auto: MPI messages that move while programs compute, where that gains"
conflict lapscope-auto

if {[module-info mode load] && ![file exists $library]} {
    puts stderr "lapscope-auto: $library is missing: this file belongs into share/modulefiles/lapscope-auto of lapscope's\
        tree; a copy elsewhere needs the tree's path, `set root`"
    break
}

prepend-path LD_PRELOAD $library
setenv LAPSCOPE_RECORD off
setenv LAPSCOPE_INJECT auto
setenv LAPSCOPE_QUIET on
