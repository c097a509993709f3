// Starting, waking, waiting for and ending the pool's workers, in forked children too.
#include "thread_pool.h"

#include <pthread.h>

namespace moe {
namespace {

// Threads of all regions that run in this process: pools that run at once share the CPUs.
std::atomic<int32_t> running_threads{0};

// Up to this many threads everybody looks at everybody at a barrier: one transfer of a line. Larger
// teams wait for thread 0, which waits for all: two, but as many lines as threads.
constexpr int32_t kEverybodyLooks = 4;

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

// What one thread shows to the others: one cache line, and the one beside it, since processors
// fetch lines in pairs. Of thread 0 also the region that runs.
struct alignas(128) ThreadPool::Post {
    Signal passed; // points passed
    int32_t team = 1;
    Function function = nullptr; // NULL: no more regions
    const void *object = nullptr;
    uint64_t spin_inside = 0;
    std::atomic<uint64_t> spin_between{0}; // the workers look at any time
};

// What one thread of the team has for itself; whole cache lines.
struct alignas(128) ThreadPool::Lane {
    uint32_t step = 0;        // the last point it passed
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
      usable_cpus_(usable_cpus()), posts_(new Post[static_cast<std::size_t>(threads)]),
      lanes_(new Lane[static_cast<std::size_t>(threads)]),
      workers_(new Worker[static_cast<std::size_t>(threads)]) {
    watch_forks();
    fork_generation_ = fork_count.load(std::memory_order_relaxed);
    start_workers();
}

ThreadPool::~ThreadPool() {
    if (fork_generation_ != fork_count.load(std::memory_order_relaxed)) {
        return; // the workers live in another process
    }
    posts_[0].function = nullptr;
    posts_[0].passed.publish(lanes_[0].step + 1);
    for (int32_t i = 1; i < threads_; ++i) {
        pthread_join(workers_[static_cast<std::size_t>(i - 1)].handle, nullptr);
    }
}

ThreadPool::SpinTicks ThreadPool::spin_ticks(const WaitPolicy &policy) const {
    const double ticks_per_ns = rate_.ticks_per_ns();
    return {static_cast<uint64_t>(policy.inside_ns * ticks_per_ns),
            static_cast<uint64_t>(policy.between_ns * ticks_per_ns)};
}

const ThreadPool::SpinTicks &ThreadPool::spin_for(int32_t running) const {
    return running > usable_cpus_ ? fewer_cpus_ : enough_cpus_;
}

void ThreadPool::start_workers() {
    enough_cpus_ = spin_ticks(kEnoughCpus);
    fewer_cpus_ = spin_ticks(kFewerCpus);
    ticks_per_check_ = measure_ticks_per_check();
    posts_[0].spin_between.store(spin_for(threads_).between, std::memory_order_relaxed);
    for (int32_t i = 1; i < threads_; ++i) {
        Worker &worker = workers_[static_cast<std::size_t>(i - 1)];
        worker.pool = this;
        worker.thread = i;
        if (pthread_create(&worker.handle, nullptr, worker_main, &worker) != 0) {
            threads_ = i;
        }
    }
    posts_[0].team = threads_;
}

void ThreadPool::restart_after_fork() {
    fork_generation_ = fork_count.load(std::memory_order_relaxed);
    for (int32_t i = 0; i < threads_; ++i) {
        posts_[static_cast<std::size_t>(i)].passed.reset();
        lanes_[static_cast<std::size_t>(i)].step = 0;
    }
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
    Post &first = posts_[0];
    for (;;) {
        ++lane.step;
        if (!first.passed.reached(lane.step)) {
            first.passed.wait(lane.step, first.spin_between.load(std::memory_order_relaxed),
                              ticks_per_check_);
        }
        if (first.function == nullptr) {
            return;
        }
        const uint64_t begin = wait_ticks();
        first.function(first.object, thread, first.team);
        lane.in_regions += wait_ticks() - begin;
        posts_[static_cast<std::size_t>(thread)].passed.publish(++lane.step);
    }
}

void ThreadPool::run_region(Function function, const void *object) {
    if (fork_generation_ != fork_count.load(std::memory_order_relaxed)) {
        restart_after_fork();
    }
    const int32_t others = running_threads.fetch_add(threads_, std::memory_order_relaxed);
    const SpinTicks &spin = spin_for(others + threads_);
    Lane &lane = lanes_[0];
    Post &post = posts_[0];
    post.function = function;
    post.object = object;
    post.spin_inside = spin.inside;
    post.spin_between.store(spin.between, std::memory_order_relaxed);
    post.passed.publish(++lane.step);
    const uint64_t begin = wait_ticks();
    function(object, 0, post.team);
    lane.in_regions += wait_ticks() - begin;
    wait_for_others(0, ++lane.step, spin.inside);
    region_ticks_ += wait_ticks() - begin;
    running_threads.fetch_sub(threads_, std::memory_order_relaxed);
}

uint64_t ThreadPool::wait_for(int32_t thread, uint32_t step, uint64_t spin_ticks) {
    Signal &passed = posts_[static_cast<std::size_t>(thread)].passed;
    return passed.reached(step) ? 0 : passed.wait(step, spin_ticks, ticks_per_check_);
}

uint64_t ThreadPool::wait_for_others(int32_t thread, uint32_t step, uint64_t spin_ticks) {
    uint64_t waited = 0;
    const int32_t team = posts_[0].team;
    for (int32_t i = 0; i < team; ++i) {
        waited += i == thread ? 0 : wait_for(i, step, spin_ticks);
    }
    return waited;
}

void ThreadPool::wait_for_team(int32_t thread) {
    Lane &lane = lanes_[static_cast<std::size_t>(thread)];
    Signal &own = posts_[static_cast<std::size_t>(thread)].passed;
    const uint64_t spin_ticks = posts_[0].spin_inside;
    const uint32_t step = ++lane.step;
    if (posts_[0].team <= kEverybodyLooks) {
        own.publish(step);
        lane.at_barriers += wait_for_others(thread, step, spin_ticks);
    } else if (thread == 0) {
        lane.at_barriers += wait_for_others(thread, step, spin_ticks);
        own.publish(step);
    } else {
        own.publish(step);
        lane.at_barriers += wait_for(0, step, spin_ticks);
    }
}

void ThreadPool::expect_arrival(int32_t thread) {
    if (threads_ > 1) {
        posts_[static_cast<std::size_t>(thread)].passed.claim();
    }
}

double ThreadPool::region_cost_ns() {
    constexpr int kRegions = 32; // the first ones wake the workers
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < kRegions && threads_ > 1; ++i) {
        const uint64_t start = wait_ticks();
        run([this](int32_t thread, int32_t) { barrier(thread); });
        const uint64_t spent = wait_ticks() - start;
        least = spent < least ? spent : least;
    }
    return threads_ > 1 ? static_cast<double>(least) / rate_.ticks_per_ns() : 0.0;
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
