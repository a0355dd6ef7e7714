/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A peer for the ring benchmark: DPDK's rte_ring between two pinned threads, one block at a time.
 *
 *     rte_ring PRODUCER_CORE CONSUMER_CORE RING_SIZE [-- EAL ARGUMENTS]
 *
 * Reads one line per block from stdin:
 *     run sp|mp 8|16 BULK WARMUP_MS WINDOW_MS
 * and answers with one line on stdout:
 *     ok ITEMS NANOSECONDS PRODUCER_SHARE CONSUMER_SHARE SENT SENT_SUM RECEIVED RECEIVED_SUM
 * or `error WORDS`. `version` answers `version WORDS`. End of input ends the program.
 *
 * The loops do what the other candidates' loops do: the producer writes fresh numbers into each item, the consumer
 * sums the first words, a full or empty ring costs one pause, the clock is read once in CLOCK_EVERY bulks.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include <rte_version.h>

#define MAX_BULK 64
#define CLOCK_EVERY 64

struct wide {
	uint64_t word[2];
};

struct tally {
	uint64_t items;
	uint64_t sum;
	double share;
};

/* One block. The threads only read it, but for their own tally and the two flags. */
struct block {
	struct rte_ring *ring;
	bool multi;
	unsigned int esize;
	unsigned int bulk;
	uint64_t warmup_ns;
	uint64_t window_ns;
	int core[2];
	atomic_int ready;
	_Alignas(128) atomic_bool stop;     /* set by the consumer: the window is over */
	_Alignas(128) atomic_bool finished; /* set by the producer: nothing more will come */
	_Alignas(128) struct tally sent;
	_Alignas(128) struct tally received;
	uint64_t window_items;
	uint64_t measured_ns;
};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set) != 0) {
		printf("error cannot pin a thread to core %d\n", core);
		exit(1);
	}
}

static void meet(struct block *b)
{
	atomic_fetch_add(&b->ready, 1);
	while (atomic_load(&b->ready) < 2)
		;
}

/* MULTI, ESIZE and the bulk are compile-time constants in each instance, as they are in the peers' real users. */
static __rte_always_inline unsigned int enqueue(struct block *b, const void *items, bool multi, unsigned int esize,
						unsigned int bulk)
{
	return multi ? rte_ring_mp_enqueue_bulk_elem(b->ring, items, esize, bulk, NULL)
		     : rte_ring_sp_enqueue_bulk_elem(b->ring, items, esize, bulk, NULL);
}

static __rte_always_inline unsigned int dequeue(struct block *b, void *items, bool multi, unsigned int esize,
						unsigned int bulk)
{
	return multi ? rte_ring_mc_dequeue_bulk_elem(b->ring, items, esize, bulk, NULL)
		     : rte_ring_sc_dequeue_bulk_elem(b->ring, items, esize, bulk, NULL);
}

static __rte_always_inline void fill(void *items, unsigned int esize, unsigned int bulk, uint64_t from)
{
	for (unsigned int i = 0; i < bulk; i++) {
		if (esize == 16)
			((struct wide *)items)[i] = (struct wide){{from + i, ~(from + i)}};
		else
			((uint64_t *)items)[i] = from + i;
	}
}

static __rte_always_inline uint64_t sum(const void *items, unsigned int esize, unsigned int bulk)
{
	uint64_t total = 0;

	for (unsigned int i = 0; i < bulk; i++)
		total += esize == 16 ? ((const struct wide *)items)[i].word[0] : ((const uint64_t *)items)[i];
	return total;
}

static __rte_always_inline void produce(struct block *b, bool multi, unsigned int esize, unsigned int bulk)
{
	_Alignas(64) struct wide items[MAX_BULK];
	uint64_t next = 0, total = 0;

	while (!atomic_load_explicit(&b->stop, memory_order_relaxed)) {
		for (int i = 0; i < CLOCK_EVERY; i++) {
			fill(items, esize, bulk, next);
			if (enqueue(b, items, multi, esize, bulk) == 0) {
				rte_pause();
				continue;
			}
			total += sum(items, esize, bulk);
			next += bulk;
		}
	}
	b->sent.items = next;
	b->sent.sum = total;
}

static __rte_always_inline void consume(struct block *b, bool multi, unsigned int esize, unsigned int bulk)
{
	_Alignas(64) struct wide items[MAX_BULK];
	uint64_t begin = clock_ns(CLOCK_MONOTONIC) + b->warmup_ns, end = begin + b->window_ns;
	uint64_t at = 0, first = 0, since = 0;
	bool last = false;

	for (;;) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (since == 0 && now >= begin) {
			since = now;
			first = at;
		}
		if (now >= end && !atomic_load_explicit(&b->stop, memory_order_relaxed)) {
			b->window_items = at - first;
			b->measured_ns = now - since;
			atomic_store(&b->stop, true);
		}
		for (int i = 0; i < CLOCK_EVERY; i++) {
			if (dequeue(b, items, multi, esize, bulk) == 0) {
				rte_pause();
				continue;
			}
			b->received.sum += sum(items, esize, bulk);
			at += bulk;
		}
		b->received.items = at;
		if (last)
			return;
		last = atomic_load(&b->finished) && rte_ring_empty(b->ring);
	}
}

#define ROLE(role, b)                                                                                                  \
	do {                                                                                                           \
		bool m = (b)->multi, w = (b)->esize == 16;                                                             \
		switch ((b)->bulk) {                                                                                   \
		case 8:                                                                                                \
			m ? (w ? role(b, true, 16, 8) : role(b, true, 8, 8))                                           \
			  : (w ? role(b, false, 16, 8) : role(b, false, 8, 8));                                        \
			break;                                                                                         \
		default:                                                                                               \
			m ? (w ? role(b, true, 16, 32) : role(b, true, 8, 32))                                         \
			  : (w ? role(b, false, 16, 32) : role(b, false, 8, 32));                                      \
		}                                                                                                      \
	} while (0)

static double share_since(uint64_t wall, uint64_t ran)
{
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran) / (double)(clock_ns(CLOCK_MONOTONIC) - wall);
}

static void *producer(void *arg)
{
	struct block *b = arg;

	pin(b->core[0]);
	meet(b);
	uint64_t wall = clock_ns(CLOCK_MONOTONIC), ran = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	ROLE(produce, b);
	b->sent.share = share_since(wall, ran);
	atomic_store(&b->finished, true);
	return NULL;
}

static void *consumer(void *arg)
{
	struct block *b = arg;

	pin(b->core[1]);
	meet(b);
	uint64_t wall = clock_ns(CLOCK_MONOTONIC), ran = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	ROLE(consume, b);
	b->received.share = share_since(wall, ran);
	return NULL;
}

/* The ring of a kind; made once. */
static struct rte_ring *ring_of(bool multi, unsigned int esize, unsigned int size)
{
	static struct rte_ring *made[2][2];
	struct rte_ring **at = &made[multi][esize == 16];

	if (*at == NULL) {
		char name[32];

		snprintf(name, sizeof(name), "bench_%d_%u", multi, esize);
		*at = rte_ring_create_elem(name, esize, size, SOCKET_ID_ANY,
					   multi ? 0 : RING_F_SP_ENQ | RING_F_SC_DEQ);
	}
	return *at;
}

static void run(struct block *b)
{
	pthread_t thread[2];

	if (pthread_create(&thread[0], NULL, producer, b) != 0 || pthread_create(&thread[1], NULL, consumer, b) != 0) {
		puts("error cannot start a thread");
		exit(1);
	}
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	printf("ok %" PRIu64 " %" PRIu64 " %.4f %.4f %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
	       b->window_items, b->measured_ns, b->sent.share, b->received.share, b->sent.items, b->sent.sum,
	       b->received.items, b->received.sum);
}

static void command(const char *line, const int core[2], unsigned int size)
{
	char kind[3] = "";
	unsigned int esize, bulk, warmup, window;

	if (strncmp(line, "version", 7) == 0) {
		printf("version %s\n", rte_version());
		return;
	}
	if (sscanf(line, "run %2s %u %u %u %u", kind, &esize, &bulk, &warmup, &window) != 5 ||
	    (esize != 8 && esize != 16) || (bulk != 8 && bulk != 32)) {
		puts("error usage: run sp|mp 8|16 8|32 WARMUP_MS WINDOW_MS");
		return;
	}
	bool multi = strcmp(kind, "mp") == 0;
	struct block b = {.ring = ring_of(multi, esize, size),
			  .multi = multi,
			  .esize = esize,
			  .bulk = bulk,
			  .warmup_ns = warmup * 1000000ull,
			  .window_ns = window * 1000000ull,
			  .core = {core[0], core[1]}};
	if (b.ring == NULL) {
		printf("error no memory for the ring: %s\n", rte_strerror(rte_errno));
		return;
	}
	run(&b);
}

int main(int argc, char **argv)
{
	char line[128];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 4) {
		puts("error usage: rte_ring PRODUCER_CORE CONSUMER_CORE RING_SIZE [-- EAL ARGUMENTS]");
		return 2;
	}
	const int core[2] = {atoi(argv[1]), atoi(argv[2])};
	const unsigned int size = (unsigned int)atoi(argv[3]);

	/* What follows "--" belongs to the EAL, which takes the separator for its program name. */
	if (argc > 4 && rte_eal_init(argc - 4, argv + 4) < 0) {
		printf("error EAL: %s\n", rte_strerror(rte_errno));
		return 1;
	}
	while (fgets(line, sizeof(line), stdin) != NULL)
		command(line, core, size);
	rte_eal_cleanup();
	return 0;
}
