/*
 * Mutexes, read-write locks, semaphores and condition variables of the program, held and waited for while messages are
 * pending. A second thread, which never calls MPI, takes turns with the first one; no signal is handled on it.
 */
#include "watch.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

enum { TURNS = 20, STEPS = 5000, ROUNDS = 150 };

static pthread_mutex_t mutex;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static int turn, over, disturbed;
static long counted;

/* Waits until it is `mine`. No such function returns EINTR: POSIX. */
static void take_turns(int mine)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    CHECK(pthread_mutex_lock(&mutex) == 0);
    while (turn != mine && !over)
        CHECK(pthread_cond_timedwait(&turn_changed, &mutex, &until) == 0);
    counted += 1 + (arithmetic(STEPS) > 2.0);
    turn = !mine;
    CHECK(pthread_cond_signal(&turn_changed) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
}

static void *other_thread(void *unused)
{
    while (!over) {
        take_turns(1);
        disturbed += is_disturbed(STEPS, 0, 0, 0);
        pthread_spin_lock(&spin);
        counted++;
        pthread_spin_unlock(&spin);
    }
    return unused;
}

static void work(int round)
{
    (void)round;
    for (int i = 0; i < TURNS; i++) {
        take_turns(0);
        CHECK(pthread_rwlock_rdlock(&table) == 0);
        CHECK(arithmetic(STEPS) < 2.0);
        CHECK(pthread_rwlock_unlock(&table) == 0 && pthread_rwlock_wrlock(&table) == 0);
        CHECK(arithmetic(STEPS) < 2.0);
        CHECK(pthread_rwlock_unlock(&table) == 0);
        CHECK(pthread_mutex_lock(&mutex) == 0);
        CHECK(pthread_mutex_lock(&mutex) == EDEADLK);
        CHECK(pthread_mutex_unlock(&mutex) == 0);
        pthread_spin_lock(&spin);
        CHECK(arithmetic(STEPS / 5) < 2.0);
        pthread_spin_unlock(&spin);
    }
}

static void make_locks(void)
{
    pthread_mutexattr_t checking;
    CHECK(pthread_mutexattr_init(&checking) == 0);
    CHECK(pthread_mutexattr_settype(&checking, PTHREAD_MUTEX_ERRORCHECK) == 0);
    CHECK(pthread_mutex_init(&mutex, &checking) == 0);
    CHECK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE) == 0);
}

static void stop(pthread_t thread)
{
    pthread_mutex_lock(&mutex);
    over = 1;
    pthread_cond_signal(&turn_changed);
    pthread_mutex_unlock(&mutex);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    start_funneled(&argc, &argv);
    make_locks();
    CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0);
    under_traffic(argc, argv, ROUNDS, work);
    stop(thread);
    CHECK(disturbed == 0);
    if (traffic.rank == 0)
        puts("locks were taken and given back");
    MPI_Finalize();
    return 0;
}
