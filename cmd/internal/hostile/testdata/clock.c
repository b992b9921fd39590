// Sets the clock of a program that asks gettimeofday and time, as Redis does: loaded before the C
// library, it adds the seconds that are in the file of CLOCK_AHEAD. libfaketime and the allocator
// of Redis call each other without end.
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const volatile int64_t *ahead;

__attribute__((constructor)) static void start(void) {
	int file = open(getenv("CLOCK_AHEAD"), O_RDONLY);
	ahead = mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
	if (ahead == MAP_FAILED) abort();
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
	(void)zone;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	t->tv_sec = now.tv_sec + *ahead;
	t->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *t) {
	struct timeval now;
	gettimeofday(&now, NULL);
	if (t) *t = now.tv_sec;
	return now.tv_sec;
}
