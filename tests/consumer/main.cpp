/* SPDX-License-Identifier: MIT */
/* main.cpp - a user's program in C++: an exception passes through a guard and
 * through px_mutex_with(), and both release. */
#include <parataxis/parataxis.h>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

px_mutex mutex = PX_MUTEX_INIT;
px_sem sem = PX_SEM_INIT(1);

int throws(void *)
{
    PX_SEM_GUARD(permit, &sem);

    if (permit.status == 0)
        throw std::runtime_error("from a fiber");
    return permit.status;
}

int body(void *arg)
{
    std::string &caught = *static_cast<std::string *>(arg);

    try {
        return px_mutex_with(&mutex, throws, nullptr);
    } catch (const std::exception &exception) {
        caught = exception.what();
    }
    return 0;
}

} // namespace

int main()
{
    std::string caught;
    int err = px_run(body, &caught);

    std::printf("%s: %s, %s\n", px_version_string(), px_err_name(err),
                caught.c_str());
    return err == 0 && caught == "from a fiber" && px_sem_count(&sem) == 1 &&
                   px_mutex_owner(&mutex) == PX_NO_FIBER
               ? 0
               : 1;
}
