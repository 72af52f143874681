/* Names of hosts and users, dates, locales and variables while messages are pending: parts of the C library with locks of their own. */
#include "traffic.h"

#include <locale.h>
#include <netdb.h>
#include <pwd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { REPEAT = 10, ROUNDS = 150 };

static void look_up_hosts(void)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    static int expected = -1;
    int there = getaddrinfo("localhost", "80", &hints, &found);
    if (there == 0)
        freeaddrinfo(found);
    CHECK(expected == -1 || there == expected);
    expected = there;
    hints.ai_flags = AI_NUMERICHOST;
    CHECK(getaddrinfo("127.0.0.1", "80", &hints, &found) == 0);
    freeaddrinfo(found);
}

static void look_up_users(void)
{
    struct passwd *user = getpwuid(0);
    CHECK(user && strcmp(user->pw_name, "root") == 0);
    CHECK(getpwnam("nobody-of-this-name") == NULL);
}

static void tell_the_time(int round)
{
    time_t then = 1000000000 + round;
    struct tm *parts = localtime(&then);
    char text[64];
    CHECK(parts && mktime(parts) == then);
    CHECK(strftime(text, sizeof text, "%A %d %B %Y", parts) > 0 && strstr(text, "2001"));
}

static void change_circumstances(void)
{
    CHECK(setlocale(LC_ALL, "C.UTF-8") || setlocale(LC_ALL, "C"));
    CHECK(setlocale(LC_ALL, "C"));
    CHECK(setenv("TORTURE", "value", 1) == 0 && strcmp(getenv("TORTURE"), "value") == 0);
    CHECK(unsetenv("TORTURE") == 0 && !getenv("TORTURE"));
}

static void work(int round)
{
    for (int i = 0; i < REPEAT; i++) {
        look_up_hosts();
        look_up_users();
        tell_the_time(round);
        change_circumstances();
    }
}

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    under_traffic(argc, argv, ROUNDS, work);
    if (rank == 0)
        puts("hosts, users, dates, locales");
    MPI_Finalize();
    return 0;
}
