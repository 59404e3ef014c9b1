/* SPDX-License-Identifier: MIT */
/* given.c - see given.h. */
#include "given.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

struct env env;
struct own own;
char bytes[1 << 12];

int take(void *arg)
{
    (void)arg;
    return TAKEN;
}

static int take_token(px_scope *token, void *arg)
{
    (void)arg;
    return token ? TAKEN : 0;
}

static int take_index(size_t i, void *arg)
{
    (void)arg;
    return (int)i;
}

int wait_at_gate(void *arg)
{
    (void)arg;
    return px_sem_down(&own.gate);
}

static int hold_theirs(void *arg)
{
    int code = px_mutex_try_lock(&own.theirs);

    (void)arg;
    EXPECT_EQ(code, 0);
    code = px_sem_down(&own.gate);
    EXPECT_EQ(px_mutex_unlock(&own.theirs), 0);
    return code;
}

/* Parks where no cancellation reaches it, twice as long as the test's scopes
 * last, or for ever. */
static int stay(void *arg)
{
    (void)arg;
    if (env.stubborn_for_ever)
        return px_sem_down(&own.gate);
    return px_sleep(20 * PX_MSEC);
}

int stay_shielded(void *arg)
{
    return px_with_shield(PX_FOREVER, stay, arg);
}

int witness(void *arg)
{
    (void)arg;
    own.witnessed++;
    return 0;
}

void start_queued(px_fn fn, void *arg)
{
    px_spawn_options options = {.queued = true};

    EXPECT_EQ(px_spawn_with(NULL, &options, fn, arg), 0);
}

long long wait_group(struct env *e)
{
    if (px_self())
        px_scope_guard_release(&own.scope);
    return px_group_wait(e->group);
}

int keep(int fd)
{
    EXPECT(fd >= 0 && own.n_descriptors < LENGTH(own.descriptors));
    own.descriptors[own.n_descriptors++] = fd;
    return fd;
}

void forget_descriptor(int fd)
{
    for (size_t i = 0; i < own.n_descriptors; i++) {
        if (own.descriptors[i] == fd)
            own.descriptors[i] = CLOSED;
    }
}

static int listen_unix(struct sockaddr_un *address, socklen_t *length)
{
    int fd = keep(socket(AF_UNIX, SOCK_STREAM, 0));

    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    *length = sizeof(*address);
    /* With the family alone the system finds a name. */
    EXPECT_EQ(bind(fd, (struct sockaddr *)address, sizeof(sa_family_t)), 0);
    EXPECT_EQ(getsockname(fd, (struct sockaddr *)address, length), 0);
    EXPECT_EQ(listen(fd, 8), 0);
    return fd;
}

static void set_up_descriptors(struct env *e)
{
    int ends[2], client;

    EXPECT_EQ(pipe(ends), 0);
    e->readable = keep(ends[0]);
    EXPECT_EQ(write(keep(ends[1]), "x", 1), 1);
    EXPECT_EQ(pipe(ends), 0);
    e->closable = keep(ends[0]);
    e->writable = keep(ends[1]);
    e->listener = listen_unix(&e->address, &e->address_length);
    client = keep(socket(AF_UNIX, SOCK_STREAM, 0));
    EXPECT_EQ(
        connect(client, (struct sockaddr *)&e->address, e->address_length), 0);
    e->socket = keep(socket(AF_UNIX, SOCK_STREAM, 0));
    e->signals = &own.signals;
    (void)raise(SIGUSR1);
}

/* A listener whose queue is full: nobody answers. */
static void set_up_deaf(struct env *e)
{
    int fd = keep(socket(AF_INET, SOCK_STREAM, 0)), ready;
    socklen_t length = sizeof(e->deaf);

    memset(&e->deaf, 0, sizeof(e->deaf));
    e->deaf.sin_family = AF_INET;
    e->deaf.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd, (struct sockaddr *)&e->deaf, length), 0);
    EXPECT_EQ(getsockname(fd, (struct sockaddr *)&e->deaf, &length), 0);
    EXPECT_EQ(listen(fd, 0), 0);
    do {
        struct pollfd one = {.events = POLLOUT};

        one.fd = keep(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
        (void)connect(one.fd, (struct sockaddr *)&e->deaf, length);
        ready = poll(&one, 1, 1);
    } while (ready == 1 && own.n_descriptors < 40);
    EXPECT_EQ(ready, 0);
    e->stuck = keep(socket(AF_INET, SOCK_STREAM, 0));
}

void set_up_waits(struct env *e)
{
    int ends[2];
    socklen_t length;
    struct sockaddr_un address;

    EXPECT_EQ(pipe(ends), 0);
    e->silent = keep(ends[0]);
    (void)keep(ends[1]);
    EXPECT_EQ(pipe2(ends, O_NONBLOCK), 0);
    (void)keep(ends[0]);
    e->full = keep(ends[1]);
    while (write(e->full, bytes, sizeof(bytes)) > 0)
        ;
    e->quiet = listen_unix(&address, &length);
    e->other_signals = &own.other_signals;
    set_up_deaf(e);
}

static void close_descriptors(void)
{
    for (size_t i = 0; i < own.n_descriptors; i++) {
        if (own.descriptors[i] >= 0)
            (void)px_close(own.descriptors[i]);
    }
    own.n_descriptors = 0;
}

void set_up_objects(bool with_descriptors)
{
    struct env *e = &env;

    memset(&own, 0, sizeof(own));
    memset(e, 0, sizeof(*e));
    EXPECT_EQ(px_sem_init_bounded(&own.sem, 3), 0);
    EXPECT_EQ(px_waitgroup_init(&own.one, 1), 0);
    (void)sigemptyset(&own.signals);
    (void)sigaddset(&own.signals, SIGUSR1);
    (void)sigemptyset(&own.other_signals);
    (void)sigaddset(&own.other_signals, SIGUSR2);
    (void)sigprocmask(SIG_BLOCK, &own.signals, NULL);
    (void)sigprocmask(SIG_BLOCK, &own.other_signals, NULL);
    e->sem = &own.sem;
    e->empty = &own.empty;
    e->mutex = &own.mutex;
    e->mine = &own.mine;
    e->theirs = &own.theirs;
    e->wg = &own.wg;
    e->one = &own.one;
    e->scope = &own.scope;
    e->group = &own.group;
    e->fresh_scope = &own.fresh_scope;
    e->fresh_group = &own.fresh_group;
    e->sem_guard = &own.sem_guard;
    e->mutex_guard = &own.mutex_guard;
    e->fn = take;
    e->token_fn = take_token;
    e->map_fn = take_index;
    e->file = fopen("/dev/null", "w");
    EXPECT(e->file != NULL);
    if (with_descriptors)
        set_up_descriptors(e);
}

void tear_down_objects(void)
{
    struct timespec none = {0, 0};

    if (env.file)
        (void)fclose(env.file);
    close_descriptors();
    while (sigtimedwait(&own.signals, NULL, &none) > 0)
        ;
}

void set_up_fibers(px_nsec timeout)
{
    struct env *e = &env;

    own.in_run = true;
    EXPECT_EQ(px_mutex_try_lock(&own.mine), 0);
    e->parked = start_handle(wait_at_gate, NULL);
    EXPECT_EQ(px_set_name(e->parked, "parked"), 0);
    e->ended = start_handle(take, NULL);
    start(hold_theirs, NULL);
    e->loop = px_current_loop();
    EXPECT_EQ(px_scope_enter(&own.around, timeout), 0);
    EXPECT_EQ(px_group_open(&own.group), 0);
    EXPECT_EQ(px_scope_enter(&own.scope, PX_FOREVER), 0);
}

void tear_down_fibers(void)
{
    px_scope_guard_release(&own.scope);
    (void)!px_group_wait(&own.group);
    px_scope_guard_release(&own.around);
    if (px_mutex_owner(&own.mine) == px_current_id())
        EXPECT_EQ(px_mutex_unlock(&own.mine), 0);
    EXPECT_EQ(px_sem_up_n(&own.gate, 64), 0);
    EXPECT_EQ(px_sem_close(&own.empty), 0);
    if (px_waitgroup_waiters(&own.one) > 0)
        EXPECT_EQ(px_waitgroup_done(&own.one), 0);
    own.in_run = false;
}

void compare(const char *name, const char *when, long long actual,
             long long expected)
{
    char text[160];

    if (expected == ANY || actual == expected)
        return;
    (void)snprintf(text, sizeof(text), "%s %s: %lld (%s), not %lld (%s)", name,
                   when, actual, err((int)actual), expected,
                   err((int)expected));
    expect_at(0, text, __FILE__, __LINE__);
}
