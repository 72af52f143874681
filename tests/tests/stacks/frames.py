# For gdb: the frames of the process's first thread, innermost first, without those of inlined functions. A line for each: the address,
# the object that has it, what gdb calls the function.
import gdb

pid = gdb.selected_inferior().pid
for thread in gdb.selected_inferior().threads():
    if thread.ptid[1] == pid:
        thread.switch()
frame = gdb.newest_frame()
while frame is not None:
    if frame.type() != gdb.INLINE_FRAME:
        place = gdb.current_progspace().solib_name(frame.pc()) or "?"
        print("frame", hex(frame.pc()), place.replace(" ", "?"), frame.name() or "?")
    frame = frame.older()
