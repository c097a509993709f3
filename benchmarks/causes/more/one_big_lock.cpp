// Planted: serial_bound. Two workers, but all of their work is done under one mutex.
#include <cmath>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

int main()
{
    std::mutex lock;
    double total = 0;
    std::vector<std::thread> workers;
    for (int t = 0; t < 2; t++)
        workers.emplace_back([&, t] {
            for (int i = 0; i < 1500; i++) {
                std::lock_guard<std::mutex> guard(lock);
                for (int k = 1; k < 60000; k++)
                    total += std::sqrt(k + t);
            }
        });
    for (auto &worker : workers)
        worker.join();
    std::printf("%g\n", total);
}
