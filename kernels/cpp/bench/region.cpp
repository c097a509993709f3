// Source of the fifo protocol: perf-stat(1), --control: commands `enable` and `disable` end in a
// newline and are answered by `ack`, a newline and, in some versions, a NUL that is left over for
// the next reader.
#include "region.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "plan_threads.h"

#ifdef MOE_HAVE_CALLGRIND_H
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION static_cast<void>(0)
#endif

namespace bench {

namespace {

constexpr std::chrono::seconds kTimeout{10};
constexpr std::chrono::milliseconds kRetry{10};

using Clock = std::chrono::steady_clock;

std::string failed(const std::string &what) {
    return "--roi-fifo: " + what + ": " + std::strerror(errno);
}

void toggle_collection([[maybe_unused]] moe_plan *plan) {
#ifdef MOE_HAVE_CALLGRIND_H
    if (plan == nullptr) {
        CALLGRIND_TOGGLE_COLLECT;
        return;
    }
    moe::on_each_thread(plan, [] { CALLGRIND_TOGGLE_COLLECT; });
#endif
}

// Why a name cannot be used, or nothing: commands must never be written into a file of the user's.
std::string check_fifo(const std::string &name) {
    struct stat found;
    if (stat(name.c_str(), &found) != 0) {
        return failed("cannot open " + name);
    }
    return S_ISFIFO(found.st_mode)
               ? ""
               : "--roi-fifo: " + name + " is not a fifo; make one by mkfifo and name it to perf too";
}

// Opens a fifo, and nothing that took its place since it was checked. Returns -1 with errno set.
int open_fifo(const std::string &name, int mode) {
    const int file = open(name.c_str(), mode | O_NONBLOCK | O_CLOEXEC);
    struct stat found;
    if (file >= 0 && (fstat(file, &found) != 0 || !S_ISFIFO(found.st_mode))) {
        close(file);
        errno = EINVAL;
        return -1;
    }
    return file;
}

// A fifo without a reader cannot be opened for writing yet: try until the profiler is there.
int open_for_writing(const std::string &name) {
    const Clock::time_point give_up = Clock::now() + kTimeout;
    for (;;) {
        const int file = open_fifo(name, O_WRONLY);
        if (file >= 0 || errno != ENXIO || Clock::now() >= give_up) {
            return file;
        }
        std::this_thread::sleep_for(kRetry);
    }
}

} // namespace

Region::Region(std::string control_fifo, std::string ack_fifo)
    : control_name_(std::move(control_fifo)), ack_name_(std::move(ack_fifo)) {}

Region::~Region() {
    if (control_ >= 0) {
        close(control_);
    }
    if (ack_ >= 0) {
        close(ack_);
    }
}

std::string Region::connect() {
    const std::string unusable = itt_.connect();
    if (!unusable.empty()) { // a variable left over in the environment spoils no run
        std::fprintf(stderr, "moe_bench: not under VTune's control: %s\n", unusable.c_str());
    }
    if (control_name_.empty()) {
        return "";
    }
    for (const std::string *name : {&ack_name_, &control_name_}) {
        std::string problem = check_fifo(*name);
        if (!problem.empty()) {
            return problem;
        }
    }
    std::signal(SIGPIPE, SIG_IGN); // a profiler that dies is reported as a failed write
    ack_ = open_fifo(ack_name_, O_RDONLY);
    if (ack_ < 0) {
        return failed("cannot open " + ack_name_);
    }
    control_ = open_for_writing(control_name_);
    if (control_ < 0) {
        return failed("cannot open " + control_name_ +
                      (errno == ENXIO ? " (nobody reads it; start it under perf --control)" : ""));
    }
    return "";
}

std::string Region::begin(moe_plan *plan) {
    const std::string problem = command("enable\n");
    if (problem.empty()) {
        toggle_collection(plan);
        itt_.resume();
    }
    return problem;
}

std::string Region::end(moe_plan *plan) {
    itt_.pause();
    toggle_collection(plan);
    return command("disable\n");
}

std::string Region::command(const char *text) {
    if (control_ < 0) {
        return "";
    }
    const ssize_t size = static_cast<ssize_t>(std::strlen(text));
    if (write(control_, text, static_cast<size_t>(size)) != size) {
        return failed("cannot write to " + control_name_);
    }
    return wait_for_ack(text);
}

std::string Region::wait_for_ack(const char *text) {
    const std::string asked(text, std::strlen(text) - 1);
    const Clock::time_point give_up = Clock::now() + kTimeout;
    std::string answer;
    while (Clock::now() < give_up) {
        pollfd waiting{ack_, POLLIN, 0};
        const int ready = poll(&waiting, 1, static_cast<int>(kRetry.count()));
        if (ready < 0 && errno != EINTR) {
            return failed("cannot wait on " + ack_name_);
        }
        char bytes[64];
        const ssize_t got = read(ack_, bytes, sizeof bytes);
        if (got < 0 && errno != EAGAIN && errno != EINTR) {
            return failed("cannot read " + ack_name_);
        }
        if (got > 0) {
            answer.append(bytes, static_cast<size_t>(got));
        } else if (got == 0) { // no writer yet: poll would return at once
            std::this_thread::sleep_for(kRetry);
        }
        if (answer.find("ack\n") != std::string::npos) {
            return "";
        }
    }
    return "--roi-fifo: no acknowledgement of '" + asked + "' on " + ack_name_ + " within " +
           std::to_string(kTimeout.count()) + " s";
}

void start_instrumentation() { CALLGRIND_START_INSTRUMENTATION; }

} // namespace bench
