// Planted: spin_bound, syscall_bound. Two threads hand over a token by a condition variable.
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

static std::mutex gate;
static std::condition_variable changed;
static int turn = 0;

static void play(int me) {
    for (int i = 0; i < 150000; ++i) {
        std::unique_lock<std::mutex> held(gate);
        changed.wait(held, [me] { return turn == me; });
        turn = 1 - me;
        changed.notify_one();
    }
}

int main() {
    std::thread other(play, 1);
    play(0);
    other.join();
    std::puts("done");
}
