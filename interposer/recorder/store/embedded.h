/* The tables, made from schema/tables.def, and schema/views.sql, as text. */
#ifndef LAPSCOPE_EMBEDDED_H
#define LAPSCOPE_EMBEDDED_H

extern const char embedded_schema[] __attribute__((visibility("hidden")));
extern const char embedded_views[] __attribute__((visibility("hidden")));

#endif
