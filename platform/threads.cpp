// The engine's own threads: a pool for each thread that makes sessions. Unlike OpenMP's libraries (openmp.cpp) they neither
// end the process if the system refuses a thread, nor make threads in a pass.
#include "platform/team.h"

#if defined(FOVEA_THREADS)
#include <pthread.h>
#include <signal.h>

#include <atomic>

#include "platform/epoch.h"
#endif

namespace fovea {

#if defined(FOVEA_THREADS)

namespace {

/// Nanoseconds that a worker waits for the next run before it sleeps. A caller chooses and prints a token in less time,
/// and waking a sleeper costs tens of microseconds.
constexpr std::uint64_t kIdleSpinNs = 200'000;
/// Bytes of stack; more if threads have more by default. Kernels hold up to 90 KB of panels on it.
constexpr std::size_t kStackBytes = 1 << 20;

/// One thread's; lives on its stack.
struct Worker {
    Worker* next = nullptr;
    std::uint32_t member = 0;
    pthread_t thread{};
    Epoch orders;  // how many there were; each is to do the pool's work, or to end
};

/// The threads that belong to one thread, and their present work.
struct Pool {
    Worker* first = nullptr;
    Worker* last = nullptr;
    std::uint32_t n_workers = 0;
    bool running = false, ending = false, alone = false;
    void (*work)(void* argument, std::uint32_t member) = nullptr;
    void* argument = nullptr;
    alignas(64) std::atomic<std::uint32_t> n_left{0};  // workers that have not done it yet
    Epoch n_done;                                      // runs, and workers that began
};

thread_local Pool own_pool;
pthread_key_t at_thread_end;
pthread_once_t once = PTHREAD_ONCE_INIT;
bool prepared = false;

void* run_worker(void* its_pool) noexcept {
    Pool& p = *static_cast<Pool*>(its_pool);
    Worker self;
    self.member = p.n_workers + 1;
    self.thread = pthread_self();
    (p.last ? p.last->next : p.first) = &self;
    p.last = &self;
    const bool alone = p.alone;
    const std::uint64_t spin_ns = alone ? kIdleSpinNs : kSpinNs;
    std::uint32_t n_orders = self.orders.value();
    p.n_done.set(p.n_done.value() + 1);
    for (;;) {
        self.orders.wait(n_orders, spin_ns, alone);
        n_orders = self.orders.value();
        if (p.ending) return nullptr;
        p.work(p.argument, self.member);
        const std::uint32_t run = p.n_done.value();
        if (p.n_left.fetch_sub(1, std::memory_order_acq_rel) == 1) p.n_done.set(run + 1);
    }
}

void order(Worker& worker) noexcept { worker.orders.set(worker.orders.value() + 1); }

/// Ends the workers behind the first `n_kept`.
void end_workers(Pool& p, std::uint32_t n_kept) noexcept {
    Worker** link = &p.first;
    Worker* last = nullptr;
    for (std::uint32_t i = 0; i < n_kept; ++i) {
        last = *link;
        link = &last->next;
    }
    if (n_kept == 0) pthread_setspecific(at_thread_end, nullptr);  // this code may be gone when the thread ends
    Worker* gone = *link;
    *link = nullptr;
    p.last = last;
    p.n_workers = n_kept;
    p.ending = true;
    while (gone) {
        const pthread_t thread = gone->thread;
        Worker* const next = gone->next;  // read before its stack goes
        order(*gone);
        pthread_join(thread, nullptr);
        gone = next;
    }
    p.ending = false;
}

void end_pool(void* its_pool) noexcept { end_workers(*static_cast<Pool*>(its_pool), 0); }

/// A forked child has the pool of the thread that forked, and none of its threads.
[[maybe_unused]] void forget_pool() noexcept {
    own_pool.first = own_pool.last = nullptr;
    own_pool.n_workers = 0;
}

void prepare() noexcept {
    prepared = pthread_key_create(&at_thread_end, end_pool) == 0 && pthread_atfork(nullptr, nullptr, forget_pool) == 0;
}

#if defined(_WIN32)  // which has no signals that arrive for a process

int start(pthread_t& thread, const pthread_attr_t& attributes, Pool& p) noexcept {
    return pthread_create(&thread, &attributes, run_worker, &p);
}

#else

/// Signals that arrive for the process are for the host's threads, not for ours; what a thread's own doing raises, and
/// profilers' clock, is not held back.
int start(pthread_t& thread, const pthread_attr_t& attributes, Pool& p) noexcept {
    sigset_t held, before;
    sigfillset(&held);
    constexpr int kOwnDoing[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    for (const int number : kOwnDoing) sigdelset(&held, number);
    pthread_sigmask(SIG_BLOCK, &held, &before);
    const int error = pthread_create(&thread, &attributes, run_worker, &p);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return error;
}

#endif

bool add_worker(Pool& p) noexcept {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    std::size_t stack_bytes = 0;
    if (pthread_attr_getstacksize(&attributes, &stack_bytes) == 0 && stack_bytes < kStackBytes)
        pthread_attr_setstacksize(&attributes, kStackBytes);
    const std::uint32_t n_done = p.n_done.value();
    pthread_t thread;
    const bool made = start(thread, attributes, p) == 0;
    pthread_attr_destroy(&attributes);
    if (!made) return false;
    p.n_done.wait(n_done, kSpinNs, p.alone);  // until it stands in the list
    ++p.n_workers;
    return true;
}

}  // namespace

bool has_threads() noexcept { return true; }

bool make_threads(std::uint32_t n_threads) noexcept {
    if (n_threads == 1) return true;
    Pool& p = own_pool;
    if (p.running) return n_threads <= 1 + p.n_workers;  // from within a pass: no more than there are
    if (pthread_once(&once, prepare) != 0 || !prepared || pthread_setspecific(at_thread_end, &p) != 0) return false;
    const std::uint32_t n_before = p.n_workers;
    p.alone = n_threads <= usable_cpus();
    while (p.n_workers + 1 < n_threads)
        if (!add_worker(p)) {
            end_workers(p, n_before);
            return false;
        }
    return true;
}

void drop_threads() noexcept {
    Pool& p = own_pool;
    if (!p.running && p.n_workers) end_workers(p, 0);
}

std::uint32_t threads_here() noexcept { return own_pool.running ? 1 : 1 + own_pool.n_workers; }

void run_on_threads(void*, std::uint32_t n_members, void (*work)(void* argument, std::uint32_t member),
                    void* argument) noexcept {
    Pool& p = own_pool;
    p.running = true;
    p.work = work;
    p.argument = argument;
    p.n_left.store(n_members - 1, std::memory_order_relaxed);
    const std::uint32_t n_done = p.n_done.value();
    Worker* worker = p.first;
    for (std::uint32_t i = 1; i < n_members; ++i, worker = worker->next) order(*worker);
    work(argument, 0);
    p.n_done.wait(n_done, kSpinNs, p.alone);
    p.running = false;
}

#else

bool has_threads() noexcept { return false; }

bool make_threads(std::uint32_t n_threads) noexcept { return n_threads == 1; }

void drop_threads() noexcept {}

std::uint32_t threads_here() noexcept { return 1; }

void run_on_threads(void*, std::uint32_t, void (*work)(void* argument, std::uint32_t member), void* argument) noexcept {
    work(argument, 0);
}

#endif

}  // namespace fovea
