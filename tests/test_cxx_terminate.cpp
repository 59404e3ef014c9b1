// SPDX-License-Identifier: MIT
//
// test_cxx_terminate.cpp - an exception that nobody catches in its fiber is one
// that nobody catches: std::terminate. Each end is that of a child process.
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <parataxis/parataxis.h>

extern "C" {
#include "support/px_test.h"
}

namespace
{

char output[8192];

int expect_abort(void (*fn)(void *), void *arg)
{
    int status = in_child(fn, arg, output, sizeof(output));

    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    return status;
}

void no_core()
{
    struct rlimit none = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &none);
}

int throw_it(void *)
{
    if (px_yield())
        return 1;
    throw std::runtime_error("nobody catches this");
}

int throw_at_once(void *)
{
    throw std::runtime_error("nobody catches this");
}

void run_throwing_main(void *)
{
    no_core();
    _exit(px_run(throw_it, nullptr) ? 2 : 3);
}

// The catch blocks of the spawner, and of px_run's caller, are on other stacks.
int spawn_in_try(void *arg)
{
    try {
        px_fiber *fiber = nullptr;

        if (px_spawn(&fiber, arg ? throw_at_once : throw_it, nullptr))
            return 1;
        return px_await(fiber, nullptr);
    } catch (...) {
        (void)!write(2, "caught by the spawner", 21);
        return 2;
    }
}

void run_throwing_child(void *arg)
{
    no_core();
    try {
        _exit(px_run(spawn_in_try, arg) ? 2 : 3);
    } catch (...) {
        (void)!write(2, "caught by the caller", 20);
        _exit(4);
    }
}

void R132_S_run_3_nobody_else_catches_a_fibers_exception(void **state)
{
    expect_abort(run_throwing_main, nullptr);
    assert_non_null(std::strstr(output, "nobody catches this"));
    expect_abort(run_throwing_child, nullptr);
    assert_non_null(std::strstr(output, "nobody catches this"));
    assert_null(std::strstr(output, "caught by"));
    expect_abort(run_throwing_child, state); // inside its eager start
    assert_non_null(std::strstr(output, "nobody catches this"));
    assert_null(std::strstr(output, "caught by"));
}

struct loud {
    ~loud()
    {
        (void)!write(2, "unwound", 7);
    }
};

int throw_past_objects(void *arg)
{
    loud object;

    return throw_it(arg);
}

[[noreturn]] void on_terminate()
{
    (void)!write(2, "in the handler", 14);
    std::abort();
}

void run_with_handler(void *)
{
    no_core();
    std::set_terminate(on_terminate);
    _exit(px_run(throw_past_objects, nullptr) ? 2 : 3);
}

void the_terminate_handler_runs_and_nothing_is_unwound(void **)
{
    expect_abort(run_with_handler, nullptr);
    assert_non_null(std::strstr(output, "in the handler"));
    assert_null(std::strstr(output, "unwound"));
}

const struct CMUnitTest tests[] = {
    PX_TEST(R132_S_run_3_nobody_else_catches_a_fibers_exception),
    PX_TEST(the_terminate_handler_runs_and_nothing_is_unwound),
};

} // namespace

PX_TEST_MAIN(tests)
