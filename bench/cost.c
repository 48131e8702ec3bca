/* Runs a command and writes what it cost: `cost FILE COMMAND...`; into FILE go wall ns, CPU us,
 * peak resident kB and the wait status.
 *
 * A process's peak memory includes what it had before it became another program, and bench/run, a
 * Python program that starts the commands, is larger than many of them. This one is small.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: cost FILE COMMAND...\n");
        return 2;
    }
    FILE *out = fopen(argv[1], "we");
    if (!out) {
        perror(argv[1]);
        return 2;
    }
    const long long begin = now_ns();
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* what bench/run gives up, it gives up altogether */
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    struct rusage usage;
    int status;
    if (child < 0 || wait4(child, &status, 0, &usage) != child) {
        perror("cost");
        return 2;
    }
    const long long wall = now_ns() - begin;
    const long long cpu = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL +
                          usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
    fprintf(out, "%lld %lld %ld %d\n", wall, cpu, usage.ru_maxrss, status);
    return fclose(out) ? 2 : 0;
}
