/* Sends frames through a packet socket as fast as the kernel takes them: the generator of the `packet` benchmark.
 *
 *   packet_gen INTERFACE CORE LENGTH
 *
 * Frames of LENGTH bytes (without the check sequence), IPv4 and UDP, from 02:00:00:00:00:aa to 02:00:00:00:00:bb, 32 to a
 * call, past the queueing discipline. Reads lines from stdin:
 *   run MS    sends for MS milliseconds, answers `ok FRAMES NANOSECONDS SHARE`, where SHARE is CPU time over time
 * and ends with its input.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define BURST 32
#define LONGEST 1514

static uint64_t now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fail(const char *what)
{
	printf("error %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint16_t folded(const uint8_t *header)
{
	uint32_t sum = 0;
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void make(uint8_t *f, int length)
{
	static const uint8_t head[] = {
		2, 0, 0, 0, 0, 0xbb, 2, 0, 0, 0, 0, 0xaa, 8, 0,
		0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2,
		4, 0, 0, 9, 0, 0, 0, 0,
	};
	memset(f, 0, (size_t)length);
	memcpy(f, head, sizeof(head));
	f[16] = (uint8_t)((length - 14) >> 8);
	f[17] = (uint8_t)(length - 14);
	f[38] = (uint8_t)((length - 34) >> 8);
	f[39] = (uint8_t)(length - 34);
	uint16_t sum = folded(f + 14);
	f[24] = (uint8_t)(sum >> 8);
	f[25] = (uint8_t)sum;
}

static int open_on(const char *interface)
{
	int one = 1, room = 4 << 20;
	int s = socket(AF_PACKET, SOCK_RAW, 0);
	if (s < 0)
		fail("socket");
	if (setsockopt(s, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)))
		fail("PACKET_QDISC_BYPASS");
	setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(interface) };
	if (to.sll_ifindex == 0 || bind(s, (struct sockaddr *)&to, sizeof(to)))
		fail(interface);
	return s;
}

static void run(int s, struct mmsghdr *all, uint64_t ms)
{
	uint64_t frames = 0, start = now(CLOCK_MONOTONIC), ran = now(CLOCK_THREAD_CPUTIME_ID), end = start + ms * 1000000u, t;
	do {
		for (int i = 0; i < 8; i++) {
			int n = sendmmsg(s, all, BURST, 0);
			if (n < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
				fail("sendmmsg");
			frames += n > 0 ? (uint64_t)n : 0;
		}
		t = now(CLOCK_MONOTONIC);
	} while (t < end);
	double share = (double)(now(CLOCK_THREAD_CPUTIME_ID) - ran) / (double)(t - start);
	printf("ok %llu %llu %.4f\n", (unsigned long long)frames, (unsigned long long)(t - start), share);
}

int main(int argc, char **argv)
{
	static uint8_t frame[LONGEST];
	static struct iovec part;
	static struct mmsghdr all[BURST];
	char line[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	int length = argc == 4 ? atoi(argv[3]) : 0;
	if (length < 60 || length > LONGEST) {
		printf("error usage: packet_gen INTERFACE CORE LENGTH, 60 to %d\n", LONGEST);
		return 2;
	}
	cpu_set_t cores;
	CPU_ZERO(&cores);
	CPU_SET((size_t)atoi(argv[2]), &cores);
	if (sched_setaffinity(0, sizeof(cores), &cores))
		fail("core");
	make(frame, length);
	part = (struct iovec){ frame, (size_t)length };
	for (int i = 0; i < BURST; i++)
		all[i].msg_hdr = (struct msghdr){ .msg_iov = &part, .msg_iovlen = 1 };
	int s = open_on(argv[1]);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		unsigned long long ms;
		if (sscanf(line, "run %llu", &ms) == 1)
			run(s, all, ms);
		else
			printf("error `%s`\n", strtok(line, "\n"));
	}
	return 0;
}
