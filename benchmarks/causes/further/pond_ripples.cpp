// Planted: oversubscribed. 32 threads a CPU step one wave field, with a (sleeping) pthread barrier
// after each short step: the run queue is always long, time goes into switching between them.
#include <pthread.h>
#include <cstdio>
#include <thread>
#include <vector>

int main()
{
    int team = 32 * static_cast<int>(std::thread::hardware_concurrency());
    if (team < 32) team = 32;
    if (team > 512) team = 512;
    const int per = 128, steps = 12000, n = team * per;
    std::vector<float> h[2] = {std::vector<float>(n + 2), std::vector<float>(n + 2)};
    h[0][n / 2] = 1000.0f;
    pthread_barrier_t bar;
    pthread_barrier_init(&bar, nullptr, team);
    std::vector<std::thread> th;
    for (int id = 0; id < team; id++)
        th.emplace_back([&, id] {
            for (int s = 0; s < steps; s++) {
                const std::vector<float> &a = h[s & 1];
                std::vector<float> &b = h[~s & 1];
                for (int i = 1 + id * per; i <= (id + 1) * per; i++)
                    b[i] = 0.5f * a[i] + 0.25f * (a[i - 1] + a[i + 1]);
                pthread_barrier_wait(&bar);
            }
        });
    for (auto &t : th) t.join();
    pthread_barrier_destroy(&bar);
    double sum = 0;
    for (float v : h[0]) sum += static_cast<double>(v) * v;
    std::printf("checksum %.6g\n", sum);
}
