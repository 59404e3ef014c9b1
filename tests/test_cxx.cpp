// SPDX-License-Identifier: MIT
//
// test_cxx.cpp - from C++: exceptions thrown and caught in a fiber, kept apart
// between fibers, and passing through what holds something.
//
// C's headers come first, as C++ has them; px_test.h is then C's alone.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <parataxis/parataxis.h>

extern "C" {
#include "support/px_test.h"
}

namespace
{

int throw_text(void *arg)
{
    throw std::runtime_error(static_cast<const char *>(arg));
}

int throw_and_catch(void *arg)
{
    for (int turn = 0; turn < 3; turn++) {
        try {
            EXPECT_EQ(px_yield(), 0);
            throw_text(arg);
        } catch (const std::exception &e) {
            EXPECT(std::strcmp(e.what(), static_cast<const char *>(arg)) == 0);
        }
        EXPECT_EQ(px_yield(), 0);
    }
    return 0;
}

char text_a[] = "a", text_b[] = "b", text_c[] = "c";

int throw_together(void *)
{
    start(throw_and_catch, text_a);
    start(throw_and_catch, text_b);
    return throw_and_catch(text_c);
}

void exceptions_are_thrown_and_caught_within_a_fiber(void **)
{
    run_fibers(throw_together, nullptr);
    assert_log("");
}

// Parked inside a catch block; then `throw;` is to give its own exception.
struct catcher {
    std::string text;
    px_sem *gate;
    std::vector<std::string> *order;
};

int park_in_catch(void *arg)
{
    catcher *self = static_cast<catcher *>(arg);

    try {
        try {
            throw std::runtime_error(self->text);
        } catch (const std::exception &) {
            EXPECT_EQ(px_sem_down(self->gate), 0);
            throw;
        }
    } catch (const std::exception &e) {
        EXPECT(self->text == e.what());
        self->order->push_back(e.what());
    }
    EXPECT(!std::current_exception());
    return 0;
}

int park_many_in_catch(void *arg)
{
    auto *order = static_cast<std::vector<std::string> *>(arg);
    px_sem gate = PX_SEM_INIT(0);
    std::vector<catcher> catchers;

    for (int i = 0; i < 10; i++)
        catchers.push_back({"exception " + std::to_string(i), &gate, order});
    for (catcher &c : catchers)
        start(park_in_catch, &c);
    EXPECT(!std::current_exception());
    for (int i = 0; i < 10; i++) { // first in, first out
        EXPECT_EQ(px_sem_up(&gate), 0);
        settle();
    }
    return 0;
}

void each_fiber_parked_in_a_catch_block_rethrows_its_own(void **)
{
    std::vector<std::string> order;

    run_fibers(park_many_in_catch, &order);
    assert_int_equal(order.size(), 10);
    for (std::size_t i = 0; i < 10; i++)
        assert_string_equal(order[i].c_str(),
                            ("exception " + std::to_string(i)).c_str());
    assert_log("");
}

int spawn_in_catch(void *)
{
    try {
        throw std::runtime_error("mine");
    } catch (const std::exception &e) {
        // eager starts, nested catches, and parking below them
        start(throw_and_catch, text_a);
        try {
            throw std::logic_error("inner");
        } catch (const std::exception &inner) {
            start(throw_and_catch, text_b);
            settle();
            EXPECT(std::strcmp(inner.what(), "inner") == 0);
        }
        EXPECT(std::strcmp(e.what(), "mine") == 0);
        try {
            throw;
        } catch (const std::runtime_error &again) {
            EXPECT(std::strcmp(again.what(), "mine") == 0);
        }
    }
    return 0;
}

void catch_blocks_nest_across_switches(void **)
{
    run_fibers(spawn_in_catch, nullptr);
    assert_log("");
}

struct unwound {
    int *count;
    ~unwound()
    {
        if (std::uncaught_exception())
            ++*count;
        // parking while an exception is on its way
        EXPECT_EQ(px_yield(), 0);
    }
};

int yield_while_unwinding(void *arg)
{
    int *count = static_cast<int *>(arg);

    try {
        unwound guard = {count};
        throw std::runtime_error("on its way");
    } catch (const std::runtime_error &) {
    }
    EXPECT(!std::uncaught_exception());
    return 0;
}

int unwind_together(void *arg)
{
    for (int i = 0; i < 4; i++)
        start(yield_while_unwinding, arg);
    EXPECT(!std::uncaught_exception()); // theirs are under way
    for (int i = 0; i < 10; i++) {
        EXPECT(!std::uncaught_exception());
        EXPECT_EQ(px_yield(), 0);
    }
    return 0;
}

void a_destructor_may_park_while_an_exception_passes(void **)
{
    int count = 0;

    run_fibers(unwind_together, &count);
    assert_int_equal(count, 4);
    assert_log("");
}

// --- Through what holds something --------------------------------------------

template <class F> bool throws(F f)
{
    try {
        f();
    } catch (const std::runtime_error &e) {
        return std::strcmp(e.what(), "out") == 0;
    }
    return false;
}

char out[] = "out";

int throw_from_token(px_scope *, void *arg)
{
    return throw_text(arg);
}

int park_then_throw(void *arg)
{
    EXPECT_EQ(px_sleep(1), 0);
    return throw_text(arg);
}

int throw_inside_open_scope(void *arg)
{
    px_scope forgotten;

    EXPECT_EQ(px_scope_enter(&forgotten, PX_SEC), 0);
    return throw_text(arg);
}

int throw_through_everything(void *)
{
    px_sem sem = PX_SEM_INIT(1);
    px_mutex lock = PX_MUTEX_INIT;
    int err = 77;

    EXPECT(throws([&] { (void)!px_sem_with(&sem, throw_text, out); }));
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT(throws([&] { (void)!px_sem_with(&sem, park_then_throw, out); }));
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT(throws([&] { (void)!px_mutex_with(&lock, throw_text, out); }));
    EXPECT_EQ(px_mutex_owner(&lock), PX_NO_FIBER);

    EXPECT(throws([&] {
        PX_SEM_GUARD(guard, &sem);
        EXPECT_EQ(guard.status, 0);
        EXPECT_EQ(px_sem_count(&sem), 0);
        throw_text(out);
    }));
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT(throws([&] {
        PX_MUTEX_GUARD(guard, &lock);
        EXPECT_EQ(guard.status, 0);
        throw_text(out);
    }));
    EXPECT_EQ(px_mutex_owner(&lock), PX_NO_FIBER);
    EXPECT(throws([&] {
        PX_SEM_HOLD(&sem, err) {
            EXPECT_EQ(px_sem_count(&sem), 0);
            throw_text(out);
        }
    }));
    EXPECT_EQ(err, 0);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT(throws([&] {
        PX_MUTEX_HOLD(&lock, err) {
            EXPECT_EQ(px_mutex_owner(&lock), px_current_id());
            throw_text(out);
        }
    }));
    EXPECT_EQ(px_mutex_owner(&lock), PX_NO_FIBER);

    EXPECT(throws([&] { (void)!px_with_timeout(PX_SEC, throw_text, out); }));
    EXPECT_EQ(px_deadline(), PX_FOREVER); // the scope has been left
    EXPECT(throws([&] { (void)!px_with_deadline(PX_SEC, throw_text, out); }));
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    EXPECT(throws([&] { (void)!px_with_shield(PX_SEC, throw_text, out); }));
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    EXPECT(throws([&] { (void)!px_with_cancel(throw_from_token, out); }));
    EXPECT(throws([&] {
        PX_WITHIN(limit, PX_SEC) {
            EXPECT(px_deadline() != PX_FOREVER);
            throw_text(out);
        }
    }));
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    // a scope entered by hand and not left is forgotten on the way
    EXPECT(throws([&] {
        (void)!px_with_timeout(PX_MINUTE, throw_inside_open_scope, out);
    }));
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    EXPECT_EQ(px_sleep(2 * PX_SEC), 0);
    return 0;
}

void an_exception_on_its_way_releases_and_leaves(void **)
{
    run_fibers(throw_through_everything, nullptr);
    assert_log("");
}

int nest_with(void *arg)
{
    px_mutex *lock = static_cast<px_mutex *>(arg);

    return px_mutex_with(lock, park_then_throw, out);
}

int nest_everything(void *arg)
{
    px_sem sem = PX_SEM_INIT(1);
    px_mutex lock = PX_MUTEX_INIT;
    int left = 0;

    struct on_exit {
        int *left;
        ~on_exit()
        {
            ++*left;
        }
    };
    EXPECT(throws([&] {
        on_exit outer = {&left};
        PX_SEM_GUARD(guard, &sem);

        EXPECT_EQ(guard.status, 0);
        PX_WITHIN(limit, PX_SEC) {
            on_exit inner = {&left};

            (void)!px_with_shield(PX_SEC, nest_with, &lock);
        }
    }));
    EXPECT_EQ(left, 2);
    EXPECT_EQ(px_sem_count(&sem), 1);
    EXPECT_EQ(px_mutex_owner(&lock), PX_NO_FIBER);
    EXPECT_EQ(px_deadline(), PX_FOREVER);
    (void)arg;
    return 0;
}

void an_exception_passes_several_of_them_in_order(void **)
{
    run_fibers(nest_everything, nullptr);
    assert_log("");
}

// A permit is handed over when an exception gives it back.
int take_and_throw(void *arg)
{
    px_sem *sem = static_cast<px_sem *>(arg);

    return throws([&] { (void)!px_sem_with(sem, park_then_throw, out); }) ? 0
                                                                          : 1;
}

int take_after(void *arg)
{
    px_sem *sem = static_cast<px_sem *>(arg);

    EXPECT_EQ(px_sem_down(sem), 0);
    note("got it at %lld", static_cast<long long>(px_now()));
    return px_sem_up(sem);
}

int hand_over(void *)
{
    px_sem sem = PX_SEM_INIT(1);

    start(take_and_throw, &sem);
    return take_after(&sem);
}

void S_sem_31_what_an_exception_releases_goes_to_the_next(void **)
{
    run_fibers(hand_over, nullptr);
    assert_log("got it at 1");
}

// --- Objects and cancellation ------------------------------------------------

int hold_a_string(void *arg)
{
    auto shared = *static_cast<std::shared_ptr<std::string> *>(arg);
    int err = px_sleep(PX_MINUTE);

    EXPECT(*shared == "held by a fiber");
    return err;
}

int cancel_a_holder(void *)
{
    auto shared = std::make_shared<std::string>("held by a fiber");
    px_fiber *fiber = start_handle(hold_a_string, &shared);
    int value = 0;

    EXPECT_EQ(shared.use_count(), 2);
    EXPECT_EQ(px_cancel_and_await(fiber, &value), 0);
    EXPECT_EQ(value, PX_ECANCELED);
    EXPECT_EQ(shared.use_count(), 1); // its destructors have run
    return 0;
}

void R132_a_cancelled_fiber_runs_its_destructors(void **)
{
    run_fibers(cancel_a_holder, nullptr);
    assert_log("");
}

struct canceled {
    int code;
};

int throw_on_cancel(void *)
{
    try {
        int err = px_sleep(PX_MINUTE);

        if (err)
            throw canceled{err};
    } catch (const canceled &c) {
        return c.code;
    }
    return 0;
}

int cancel_a_thrower(void *)
{
    px_fiber *fiber = start_handle(throw_on_cancel, nullptr);
    int value = 0;

    EXPECT_EQ(px_cancel_and_await(fiber, &value), 0);
    EXPECT_EQ(value, PX_ECANCELED);
    return 0;
}

void a_code_may_be_turned_into_an_exception(void **)
{
    run_fibers(cancel_a_thrower, nullptr);
    assert_log("");
}

// --- The run -----------------------------------------------------------------

int throw_and_catch_deeply(void *arg)
{
    int depth = *static_cast<int *>(arg);

    if (depth == 0)
        throw std::runtime_error("deep");
    --*static_cast<int *>(arg);
    std::string unwound_here(100, 'x');
    return throw_and_catch_deeply(arg) + static_cast<int>(unwound_here.size());
}

int catch_from_the_deep(void *)
{
    int depth = 50;

    try {
        return throw_and_catch_deeply(&depth);
    } catch (const std::runtime_error &) {
        return 31;
    }
}

void an_exception_before_a_run_is_there_after_it(void **)
{
    try {
        throw std::runtime_error("before");
    } catch (const std::exception &e) {
        assert_int_equal(px_run(catch_from_the_deep, nullptr), 31);
        run_fibers(throw_together, nullptr);
        assert_string_equal(e.what(), "before");
        try {
            throw;
        } catch (const std::exception &again) {
            assert_string_equal(again.what(), "before");
        }
    }
    assert_true(!std::current_exception());
    assert_log("");
}

const struct CMUnitTest tests[] = {
    PX_TEST(exceptions_are_thrown_and_caught_within_a_fiber),
    PX_TEST(each_fiber_parked_in_a_catch_block_rethrows_its_own),
    PX_TEST(catch_blocks_nest_across_switches),
    PX_TEST(a_destructor_may_park_while_an_exception_passes),
    PX_TEST(an_exception_on_its_way_releases_and_leaves),
    PX_TEST(an_exception_passes_several_of_them_in_order),
    PX_TEST(S_sem_31_what_an_exception_releases_goes_to_the_next),
    PX_TEST(R132_a_cancelled_fiber_runs_its_destructors),
    PX_TEST(a_code_may_be_turned_into_an_exception),
    PX_TEST(an_exception_before_a_run_is_there_after_it),
};

} // namespace

PX_TEST_MAIN(tests)
