#include "thread_pool.h"

#include <pthread.h>

namespace moe {
namespace {

// Threads of all regions that run in this process: pools that run at once share the CPUs.
std::atomic<int32_t> running_threads{0};

// Counts forks on the way from the process that loaded the library to this one.
std::atomic<uint32_t> fork_count{0};

void after_fork_in_child() {
    fork_count.fetch_add(1, std::memory_order_relaxed);
    running_threads.store(0, std::memory_order_relaxed);
}

void watch_forks() {
    static const int watching = pthread_atfork(nullptr, nullptr, after_fork_in_child);
    static_cast<void>(watching);
}

} // namespace

// What one thread of the team has for itself; whole cache lines.
struct alignas(64) ThreadPool::Lane {
    uint64_t in_regions = 0;  // ticks from its first to its last instruction in regions
    uint64_t at_barriers = 0; // of these, ticks in which it waited
};

struct ThreadPool::Worker {
    ThreadPool *pool = nullptr;
    int32_t thread = 0;
    pthread_t handle{};
};

ThreadPool::ThreadPool(int32_t threads, bool pin)
    : cpus_(CpuSet::of_caller()), pin_(pin), caller_(pin),
      inherits_binding_(CallerBinding::caller_is_bound()), threads_(threads),
      usable_cpus_(usable_cpus()), lanes_(new Lane[static_cast<std::size_t>(threads)]),
      workers_(new Worker[static_cast<std::size_t>(threads)]) {
    watch_forks();
    fork_generation_ = fork_count.load(std::memory_order_relaxed);
    start_workers();
}

ThreadPool::~ThreadPool() {
    if (fork_generation_ != fork_count.load(std::memory_order_relaxed)) {
        return; // the workers live in another process
    }
    stop_ = true;
    started_.raise();
    for (int32_t i = 1; i < threads_; ++i) {
        pthread_join(workers_[static_cast<std::size_t>(i - 1)].handle, nullptr);
    }
}

ThreadPool::SpinTicks ThreadPool::spin_ticks(const WaitPolicy &policy) const {
    const double ticks_per_ns = rate_.ticks_per_ns();
    return {static_cast<uint64_t>(policy.inside_ns * ticks_per_ns),
            static_cast<uint64_t>(policy.between_ns * ticks_per_ns)};
}

void ThreadPool::choose_spin(int32_t running) {
    spin_.store(running > usable_cpus_ ? &fewer_cpus_ : &enough_cpus_, std::memory_order_relaxed);
}

void ThreadPool::start_workers() {
    enough_cpus_ = spin_ticks(kEnoughCpus);
    fewer_cpus_ = spin_ticks(kFewerCpus);
    choose_spin(threads_);
    for (int32_t i = 1; i < threads_; ++i) {
        Worker &worker = workers_[static_cast<std::size_t>(i - 1)];
        worker.pool = this;
        worker.thread = i;
        if (pthread_create(&worker.handle, nullptr, worker_main, &worker) != 0) {
            threads_ = i;
        }
    }
}

void ThreadPool::restart_after_fork() {
    fork_generation_ = fork_count.load(std::memory_order_relaxed);
    started_.reset();
    finished_.reset();
    passed_.reset();
    working_.store(0, std::memory_order_relaxed);
    arrived_.store(0, std::memory_order_relaxed);
    start_workers();
}

void *ThreadPool::worker_main(void *argument) {
    const Worker &worker = *static_cast<const Worker *>(argument);
    worker.pool->work(worker.thread);
    return nullptr;
}

void ThreadPool::work(int32_t thread) {
    if (pin_) {
        cpus_.bind_caller_to(thread);
    } else if (inherits_binding_) {
        cpus_.bind_caller();
    }
    Lane &lane = lanes_[static_cast<std::size_t>(thread)];
    for (uint32_t seen = 0;; ++seen) {
        started_.wait(seen, spin().between);
        if (stop_) {
            return;
        }
        const uint64_t begin = wait_ticks();
        function_(object_, thread, team_);
        lane.in_regions += wait_ticks() - begin;
        if (working_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            finished_.raise();
        }
    }
}

void ThreadPool::run_region(Function function, const void *object) {
    if (fork_generation_ != fork_count.load(std::memory_order_relaxed)) {
        restart_after_fork();
    }
    const int32_t others = running_threads.fetch_add(threads_, std::memory_order_relaxed);
    choose_spin(others + threads_);
    function_ = function;
    object_ = object;
    team_ = threads_;
    working_.store(threads_ - 1, std::memory_order_relaxed);
    const uint32_t finished = finished_.value();
    Lane &lane = lanes_[0];
    const uint64_t begin = wait_ticks();
    if (threads_ > 1) {
        started_.raise();
    }
    function(object, 0, team_);
    lane.in_regions += wait_ticks() - begin;
    if (threads_ > 1) {
        finished_.wait(finished, spin().inside);
    }
    region_ticks_ += wait_ticks() - begin;
    running_threads.fetch_sub(threads_, std::memory_order_relaxed);
}

void ThreadPool::wait_for_team(int32_t thread) {
    const uint32_t passed = passed_.value();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == team_) {
        arrived_.store(0, std::memory_order_relaxed);
        passed_.raise();
        return;
    }
    Lane &lane = lanes_[static_cast<std::size_t>(thread)];
    const uint64_t begin = wait_ticks();
    passed_.wait(passed, spin().inside);
    lane.at_barriers += wait_ticks() - begin;
}

uint64_t ThreadPool::to_ns(uint64_t ticks) const {
    return static_cast<uint64_t>(static_cast<double>(ticks) / rate_.ticks_per_ns());
}

uint64_t ThreadPool::waited_ns(int32_t thread) const {
    const Lane &lane = lanes_[static_cast<std::size_t>(thread)];
    const uint64_t busy = lane.in_regions - lane.at_barriers;
    return busy < region_ticks_ ? to_ns(region_ticks_ - busy) : 0;
}

uint64_t ThreadPool::region_ns() const { return to_ns(region_ticks_); }

} // namespace moe
