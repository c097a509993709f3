// Planted: dependency_bound. Impedance of a long resistor ladder, evaluated from its far end as a
// continued fraction: each divide+add needs the previous result, so latency, not the divider's
// throughput, sets the time.
#include <cstdio>
#include <vector>

struct Section { double series, shunt; };

static double impedance(const std::vector<Section> &ladder, double load)
{
    double z = load;
    for (const Section &s : ladder)
        z = s.series + s.shunt / (s.shunt * 0.25 + z);
    return z;
}

int main()
{
    std::vector<Section> ladder(1000);
    unsigned seed = 7;
    for (auto &s : ladder) {
        seed = seed * 1103515245u + 12345u;
        s.series = 1.0 + (seed >> 20) * 1e-3;
        s.shunt = 2.0 + (seed >> 22) * 1e-3;
    }
    double z = 50.0;
    for (int i = 0; i < 450000; i++)
        z = impedance(ladder, z);
    std::printf("checksum %.12g\n", z);
}
