// Planted: serial_bound. Main thread parses a long ledger text by itself, then a pool (sleeping on
// a condition variable) sums the columns in no time: the team is idle over 90 % of the wall time.
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

class Pool {
    std::mutex m;
    std::condition_variable wake, done;
    std::function<void(unsigned)> job;
    unsigned round = 0, left = 0;
    bool stop = false;
    std::vector<std::thread> th;
    void loop(unsigned id)
    {
        unsigned seen = 0;
        for (;;) {
            std::unique_lock<std::mutex> l(m);
            wake.wait(l, [&] { return stop || round != seen; });
            if (stop) return;
            seen = round;
            l.unlock();
            job(id);
            l.lock();
            if (--left == 0) done.notify_one();
        }
    }
public:
    explicit Pool(unsigned n)
    {
        for (unsigned i = 0; i < n; i++) th.emplace_back(&Pool::loop, this, i);
    }
    unsigned size() const { return th.size(); }
    void run(std::function<void(unsigned)> f)
    {
        std::unique_lock<std::mutex> l(m);
        job = std::move(f);
        left = th.size();
        round++;
        wake.notify_all();
        done.wait(l, [&] { return left == 0; });
    }
    ~Pool()
    {
        { std::lock_guard<std::mutex> l(m); stop = true; }
        wake.notify_all();
        for (auto &t : th) t.join();
    }
};

int main()
{
    std::string page;
    uint32_t s = 9;
    for (int i = 0; i < 3000; i++) {
        s = s * 1664525u + 1013904223u;
        page += "acct" + std::to_string(s >> 20) + "," + std::to_string(s >> 8);
        page += "," + std::to_string(i) + "\n";
    }
    unsigned n = std::thread::hardware_concurrency();
    Pool pool(n < 2 ? 2 : n > 8 ? 8 : n);
    uint64_t total = 0;
    std::vector<uint64_t> field;
    for (int batch = 0; batch < 8; batch++) {
        for (int copy = 0; copy < 4500; copy++) {
            uint64_t v = 0, check = 0;
            if (copy % 64 == 0) field.clear();
            for (char c : page) {
                if (c >= '0' && c <= '9') v = v * 10 + static_cast<uint64_t>(c - '0');
                else if (c == ',' || c == '\n') { field.push_back(v + check); v = 0; }
                else check = check * 33 + static_cast<unsigned char>(c);
            }
        }
        std::vector<uint64_t> part(pool.size() * 8);
        pool.run([&](unsigned id) {
            uint64_t sum = 0;
            for (size_t i = id; i < field.size(); i += pool.size()) sum += field[i] >> 3;
            part[id * 8] = sum;
        });
        for (uint64_t p : part) total += p;
    }
    std::printf("checksum %llu\n", (unsigned long long)total);
}
