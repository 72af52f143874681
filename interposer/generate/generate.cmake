# The target `generated`: what lapscope-generate makes of calls.def, options.def, tables.def and job.def, in ${GENERATED}.
find_program(CARGO cargo REQUIRED)
set(GENERATED "${CMAKE_BINARY_DIR}/generated")
set(GENERATED_FILES calls.inc columns.inc functions.inc job.inc options.inc prototypes.h schema.sql signatures.inc sorted.inc substitutes.inc wrap_c.c wrap_fortran.c)
list(TRANSFORM GENERATED_FILES PREPEND "${GENERATED}/")
file(GLOB_RECURSE GENERATOR_SOURCES CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/src/*.rs")
# In a directory of its own, so that cargo can build the command beside it.
add_custom_command(
  OUTPUT "${GENERATED}/stamp"
  BYPRODUCTS ${GENERATED_FILES}
  COMMAND ${CARGO} run --quiet --manifest-path "${CMAKE_CURRENT_LIST_DIR}/Cargo.toml" --target-dir "${CMAKE_BINARY_DIR}/generator" --
          "${CMAKE_CURRENT_LIST_DIR}/../.." "${GENERATED}"
  COMMAND ${CMAKE_COMMAND} -E touch "${GENERATED}/stamp"
  DEPENDS "${CMAKE_CURRENT_LIST_DIR}/../calls.def" "${CMAKE_CURRENT_LIST_DIR}/../options.def"
          "${CMAKE_CURRENT_LIST_DIR}/../../schema/tables.def"
          "${CMAKE_CURRENT_LIST_DIR}/../../schema/job.def" ${GENERATOR_SOURCES}
  COMMENT "wrappers from calls.def, options from options.def, the database from tables.def" VERBATIM)
add_custom_target(generated DEPENDS "${GENERATED}/stamp")
include_directories("${GENERATED}")
