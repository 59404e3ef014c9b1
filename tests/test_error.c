/* SPDX-License-Identifier: MIT */
/* test_error.c - the codes, their names and texts, and the version. */
#include <ctype.h>
#include <limits.h>

#include "support/px_test.h"

static const struct {
    int code;
    const char *name;
} codes[] = {
    {PX_EINVAL, "PX_EINVAL"},         {PX_ENOMEM, "PX_ENOMEM"},
    {PX_EBUSY, "PX_EBUSY"},           {PX_EAGAIN, "PX_EAGAIN"},
    {PX_EPERM, "PX_EPERM"},           {PX_EDEADLK, "PX_EDEADLK"},
    {PX_EOVERFLOW, "PX_EOVERFLOW"},   {PX_ETIMEDOUT, "PX_ETIMEDOUT"},
    {PX_ECANCELED, "PX_ECANCELED"},   {PX_EBADF, "PX_EBADF"},
    {PX_EPIPE, "PX_EPIPE"},           {PX_ENOFIBER, "PX_ENOFIBER"},
    {PX_ENOTLOCKED, "PX_ENOTLOCKED"}, {PX_ENEGATIVE, "PX_ENEGATIVE"},
    {PX_ECLOSED, "PX_ECLOSED"},       {PX_ESTALLED, "PX_ESTALLED"},
};
static const size_t n_codes = sizeof(codes) / sizeof(codes[0]);

static int is_ours(int code)
{
    for (size_t i = 0; i < n_codes; i++) {
        if (codes[i].code == code)
            return 1;
    }
    return 0;
}

static void codes_that_errno_has_are_its_negatives(void **state)
{
    (void)state;
    assert_int_equal(PX_EINVAL, -EINVAL);
    assert_int_equal(PX_ENOMEM, -ENOMEM);
    assert_int_equal(PX_EBUSY, -EBUSY);
    assert_int_equal(PX_EAGAIN, -EAGAIN);
    assert_int_equal(PX_EPERM, -EPERM);
    assert_int_equal(PX_EDEADLK, -EDEADLK);
    assert_int_equal(PX_EOVERFLOW, -EOVERFLOW);
    assert_int_equal(PX_ETIMEDOUT, -ETIMEDOUT);
    assert_int_equal(PX_ECANCELED, -ECANCELED);
    assert_int_equal(PX_EBADF, -EBADF);
    assert_int_equal(PX_EPIPE, -EPIPE);
}

static void the_librarys_own_codes_lie_below_minus_5000(void **state)
{
    (void)state;
    assert_int_equal(PX_ENOFIBER, -5001);
    assert_int_equal(PX_ENOTLOCKED, -5002);
    assert_int_equal(PX_ENEGATIVE, -5003);
    assert_int_equal(PX_ECLOSED, -5004);
    assert_int_equal(PX_ESTALLED, -5005);
}

static void no_two_codes_are_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_codes; i++) {
        assert_true(codes[i].code < 0);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(codes[i].code, codes[k].code);
    }
}

static void every_code_has_its_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_codes; i++)
        assert_string_equal(px_err_name(codes[i].code), codes[i].name);
    assert_string_equal(px_err_name(0), "0");
}

static void a_code_without_a_name_is_called_so(void **state)
{
    static const int others[] = {1,     22,    INT_MAX, -5000,        -5006,
                                 -9999, -4095, INT_MIN, -ECONNREFUSED};

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_string_equal(px_err_name(others[i]), "PX_E?");
}

static void every_code_has_one_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_codes; i++) {
        const char *text = px_strerror(codes[i].code);

        assert_non_null(text);
        assert_true(strlen(text) > 8);
        assert_true(isupper((unsigned char)text[0]));
        assert_true(text[strlen(text) - 1] != '.');
        assert_null(strchr(text, '\n'));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(text, px_strerror(codes[k].code));
    }
}

static void S_run_13_timeouts_and_cancellations_read_as_documented(void **state)
{
    (void)state;
    assert_string_equal(px_strerror(PX_ETIMEDOUT), "The operation timed out");
    assert_string_equal(px_strerror(PX_ECANCELED),
                        "The operation was cancelled");
}

static void out_of_memory_names_the_three_limits(void **state)
{
    const char *text = px_strerror(PX_ENOMEM);

    (void)state;
    assert_non_null(strstr(text, "emory"));
    assert_non_null(strstr(text, "RLIMIT_AS"));
    assert_non_null(strstr(text, "vm.max_map_count"));
}

static void other_errno_values_give_the_systems_text(void **state)
{
    (void)state;
    for (int code = 1; code <= EHWPOISON; code++) {
        /* 41 and 58 have no name on Linux */
        if (is_ours(-code) || strncmp(strerror(code), "Unknown", 7) == 0)
            continue;
        assert_string_equal(px_strerror(-code), strerror(code));
    }
}

static void a_text_is_never_null(void **state)
{
    static const int others[] = {0,     1,     22,         INT_MAX, -41,
                                 -4095, -5000, -5006,      -9999,   INT_MIN,
                                 -58,   -4999, INT_MIN + 1};

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_non_null(px_strerror(others[i]));
        assert_true(strlen(px_strerror(others[i])) > 0);
    }
}

static void a_text_stays_when_others_are_asked_for(void **state)
{
    const char *refused = px_strerror(-ECONNREFUSED);
    const char *stalled = px_strerror(PX_ESTALLED);
    char *copies[2] = {strdup(refused), strdup(stalled)};

    (void)state;
    for (int code = 0; code < 200; code++)
        (void)px_strerror(-code);
    assert_string_equal(refused, copies[0]);
    assert_string_equal(stalled, copies[1]);
    free(copies[0]);
    free(copies[1]);
}

static void asking_for_a_text_leaves_errno(void **state)
{
    (void)state;
    errno = 4242;
    (void)px_strerror(PX_ENOMEM);
    (void)px_strerror(-ECONNREFUSED);
    (void)px_strerror(-123456);
    (void)px_strerror(17);
    (void)px_err_name(-123456);
    assert_int_equal(errno, 4242);
}

static void the_library_is_of_the_headers_version(void **state)
{
    char text[32];

    (void)state;
    assert_int_equal(PX_VERSION_MAJOR, 0);
    assert_int_equal(PX_VERSION_MINOR, 1);
    assert_int_equal(PX_VERSION_PATCH, 0);
    assert_int_equal(px_version(), PX_VERSION_MAJOR * 10000 +
                                       PX_VERSION_MINOR * 100 +
                                       PX_VERSION_PATCH);
    (void)snprintf(text, sizeof(text), "%d.%d.%d", PX_VERSION_MAJOR,
                   PX_VERSION_MINOR, PX_VERSION_PATCH);
    assert_string_equal(PX_VERSION_STRING, text);
    assert_string_equal(px_version_string(), text);
}

static const struct CMUnitTest tests[] = {
    PX_TEST(codes_that_errno_has_are_its_negatives),
    PX_TEST(the_librarys_own_codes_lie_below_minus_5000),
    PX_TEST(no_two_codes_are_the_same),
    PX_TEST(every_code_has_its_name),
    PX_TEST(a_code_without_a_name_is_called_so),
    PX_TEST(every_code_has_one_sentence),
    PX_TEST(S_run_13_timeouts_and_cancellations_read_as_documented),
    PX_TEST(out_of_memory_names_the_three_limits),
    PX_TEST(other_errno_values_give_the_systems_text),
    PX_TEST(a_text_is_never_null),
    PX_TEST(a_text_stays_when_others_are_asked_for),
    PX_TEST(asking_for_a_text_leaves_errno),
    PX_TEST(the_library_is_of_the_headers_version),
};

PX_TEST_MAIN(tests)
