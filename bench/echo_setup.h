/* SPDX-License-Identifier: MIT */
/*
 * echo_setup.h - the far end of row tcp-echo, the same for every library.
 *
 * echo_client, a process of its own on another core where there is one, keeps
 * one message in flight on each of 64 connections, and compares what comes back
 * with what it sent. Here it is started, and its connections are accepted; what
 * is measured begins with echo_start() and ends when it has closed them all.
 */
#ifndef PX_BENCH_ECHO_SETUP_H
#define PX_BENCH_ECHO_SETUP_H

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CONNECTIONS = 64, MESSAGE = 64 };

struct echo {
    FILE *client;
    int fds[CONNECTIONS]; /* accepted, blocking, without Nagle's delay */
    long messages;        /* that the client will send on all of them */
};

/* 0, or -1 with a word on stderr. At least `n` messages. */
int echo_open(struct echo *echo, long n);
void echo_start(struct echo *echo);
/* 0 if the client got back what it sent. */
int echo_end(struct echo *echo);

#ifdef __cplusplus
}
#endif

#endif
