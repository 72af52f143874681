/* Clients of CUPTI, of which a process has one at a time: who comes last gets all records, and nobody is told. */
#ifndef LAPSCOPE_CLIENT_H
#define LAPSCOPE_CLIENT_H

/* The CUPTI that somebody has loaded before we open one; NULL: nobody has. */
const char *client_library(void);

/* Whether somebody is linked with it, who may use it or not, and did not open it to use it. */
int client_is_linked(void);

/* Ours is open: who comes from now on is another; not where those that are linked with it do not use it. */
void client_begin(int is_shared);

/* Somebody asks the loader for a function of that name. */
void client_asked(const char *name);

/* Whether somebody has asked for those with which a client begins: what CUPTI has is his. */
int client_has_asked(void);

/* Whether another may have come since, who has asked or is linked with CUPTI; also one who is gone when this is asked again. */
int client_came(void);

#endif
